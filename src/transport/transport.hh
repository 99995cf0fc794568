// The contract of a transport: how bytes travel between a front-end and a back-end. A connection is a
// two-way, private, reliable, ordered stream of bytes. Owned by whoever created it (session, worker, listener
// loop). Threads: at any time at most one sender and one receiver, which may be different threads and run at
// once; interrupt() and shutdown() may come from any thread at any time. Nothing here throws.
#pragma once

#include <sys/uio.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.hh"
#include "base/result.hh"

namespace outboard::transport {

using clock = std::chrono::steady_clock;
using deadline = clock::time_point;
inline constexpr deadline no_deadline = deadline::max();

/// What a connection can do, as data: upper layers choose by it and tests skip by it, never by a scheme's
/// name.
struct capabilities {
  bool same_host = false;           ///< both ends share one kernel
  bool passes_descriptors = false;  ///< send_descriptor()/receive_descriptor() work
  bool detachable = false;     ///< detach() gives a descriptor that attach() in another process continues
  bool peer_identity = false;  ///< peer() tells the user and process at the other end
  std::size_t preferred_chunk = 1 << 16;  ///< bytes per receive() that this transport likes for bulk data
  bool send_is_a_call = false;  ///< each send() is a system call, so that small ones are better sent together
};

enum class io : std::uint8_t {
  done,         ///< at least one byte moved (receive), everything moved (send)
  closed,       ///< the peer closed in order, at a byte boundary of the stream
  broken,       ///< reset, cut, or shut down by our side
  timed_out,    ///< the deadline passed; nothing is lost
  interrupted,  ///< interrupt() was called; nothing is lost
};

struct io_result {
  io status = io::broken;
  std::size_t bytes = 0;
};

struct peer_identity {
  std::uint32_t user = ~0u;
  std::uint32_t group = ~0u;
  std::int32_t process = -1;
  std::vector<std::uint32_t> groups = {};  ///< further ones that its process had when it connected
};

/// A stream in the middle, on its way to another process.
struct shared_stream {
  std::string scheme;  ///< of the transport that attaches the first descriptor
  std::vector<unique_fd> descriptors;
  std::vector<std::uint64_t> positions;  ///< the transport's own
};

class connection {
 public:
  virtual ~connection() = default;

  virtual const capabilities& what() const = 0;

  /// Sends all parts in order, waiting as long as the peer accepts bytes; a peer that takes none until
  /// `until` gives timed_out, after which the stream is unusable for sending (some bytes may have left).
  virtual io_result send(std::span<const iovec> parts, deadline until = no_deadline) = 0;

  /// A short send will follow soon, by whoever is the sender then: what it needs is fetched meanwhile. Any
  /// thread, without waiting. Default: nothing.
  virtual void expect_send();

  /// Receives at least one byte into `into`, up to its size. Waits until `until`; no_deadline waits for ever,
  /// a time in the past polls. An interrupt() that came before or during the wait ends it, unless bytes are
  /// there.
  virtual io_result receive(std::span<std::byte> into, deadline until = no_deadline) = 0;

  /// Waits until receive() would not block. done, closed/broken (receive() will say which), timed_out,
  /// interrupted.
  virtual io wait_readable(deadline until) = 0;

  /// Ends the current or the next wait of the receiver once. Sticky until one wait has seen it.
  virtual void interrupt() = 0;

  /// Has the other end closed or vanished, though bytes of it may still be unread? Any thread, without
  /// waiting. Default: not known (false).
  virtual bool peer_gone();

  /// Ends both directions at once: blocked and later calls of either side return. Our side gives broken from
  /// then on; the peer may read what was sent before and then sees closed. Idempotent.
  virtual void shutdown() = 0;

  /// How long receive() and wait_readable() poll before they sleep; 0, the default, sleeps at once. The
  /// budget is ignored while as many threads spin as this process may burn cores (spin.hh). Called by the
  /// receiver.
  virtual void set_spin(std::chrono::microseconds budget);

  /// Hands one descriptor to the peer beside the byte stream (capability passes_descriptors). The peer must
  /// call receive_descriptor() at the agreed point of the protocol: exactly one byte of the stream carries
  /// it. receive() stops short of that byte, so a reader that takes all it can get does not swallow it; a
  /// receive() that starts at that byte gets the byte and the descriptor is closed. send_descriptor() counts
  /// as the sender, receive_descriptor() as the receiver; its errors are retry when timed out or interrupted
  /// (nothing is lost), reconnect when the stream ended, fail when the byte carried no descriptor.
  virtual status send_descriptor(int fd);
  virtual result<unique_fd> receive_descriptor(deadline until);

  /// Capability detachable: gives up the descriptor; this object is then closed without ending the stream. No
  /// send or receive may be in progress.
  virtual result<unique_fd> detach();
  /// What another process needs to continue the stream, wherever it stands. The stream is that process's from
  /// the moment on at which it sends or receives; this object must do neither any more, and not be destroyed
  /// before its process ends. An error with action::retry: not at this point. Default: not supported.
  virtual result<shared_stream> share() const;
  /// In the other process, on what attach() made of the first descriptor: where the stream stands.
  virtual status go_on(shared_stream& from);

  virtual result<peer_identity> peer() const;

  /// For logs: "unix:/run/x", "tcp:10.0.0.1:1234".
  virtual std::string describe() const = 0;
};

/// Receives exactly `into`, whatever interrupts. closed only before the first byte; what came before another
/// end is lost.
io receive_whole(connection& from, std::span<std::byte> into, deadline until = no_deadline);

/// In error::reason: the connection stood and then broke, so that another one may fare better.
inline constexpr int connection_broke = -1;

/// The error of a peer that was expected to speak: "it closed the connection".
error gone(io status);

struct listen_options {
  int backlog = 512;
  bool allow_foreign_hosts =
      false;  ///< tcp: may bind an address that is not loopback (a token or --insecure)
};

class listener {
 public:
  virtual ~listener() = default;

  /// Waits for a connection until `until`. `interrupted` and `timed_out` as error actions retry; a broken
  /// listener gives action::fail. Thread-safe against interrupt() only.
  virtual result<std::unique_ptr<connection>> accept(deadline until) = 0;
  virtual void interrupt() = 0;

  /// A descriptor that polls readable when accept() has work, or -1.
  virtual int poll_descriptor() const = 0;

  /// The URL clients use, with the port that was really bound.
  virtual std::string url() const = 0;
};

class transport {
 public:
  virtual ~transport() = default;
  virtual std::string_view scheme() const = 0;
  virtual result<std::unique_ptr<connection>> connect(std::string_view address, deadline until) = 0;
  virtual result<std::unique_ptr<listener>> listen(std::string_view address,
                                                   const listen_options& options) = 0;

  /// Continues a detached connection or adopts a listening socket (socket activation). Default: not
  /// supported.
  virtual result<std::unique_ptr<connection>> attach(unique_fd fd);
  virtual result<std::unique_ptr<listener>> adopt_listener(unique_fd fd);
};

/// The transports of this process, in the order main() listed them. Not thread-safe while adding.
class registry {
 public:
  void add(std::unique_ptr<transport> t) { transports_.push_back(std::move(t)); }
  transport* find(std::string_view scheme) const;
  /// All schemes, for error messages and `doctor`.
  std::vector<std::string_view> schemes() const;

  /// "scheme:address". An unknown scheme names the known ones.
  result<std::unique_ptr<connection>> connect(std::string_view url, deadline until) const;
  result<std::unique_ptr<listener>> listen(std::string_view url, const listen_options& options) const;

 private:
  std::vector<std::unique_ptr<transport>> transports_;
};

}  // namespace outboard::transport
