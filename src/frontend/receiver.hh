// Reads frames of the server off a connection and hands each to its sink; the bytes of copies go straight
// from the connection into the program's memory. One thread at a time (the session's leader).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.hh"
#include "marshal/cuda/bodies.hh"
#include "marshal/data_bodies.hh"
#include "transport/buffered.hh"
#include "wire/frame.hh"

namespace outboard::frontend {

class frame_sink {
 public:
  virtual ~frame_sink() = default;
  /// The buffer that waits for this reply, or nullptr: no call has this ticket (the server is at fault).
  virtual std::vector<std::byte>* reply_target(std::uint64_t ticket) = 0;
  virtual void reply_arrived(std::uint64_t ticket) = 0;
  /// Where bytes [offset, offset + size) of the copy with this ticket go, one run behind the other; false: no
  /// such copy, or beyond its end.
  virtual bool landing_places(std::uint64_t ticket, std::uint64_t offset, std::uint64_t size,
                              std::vector<std::span<std::byte>>& places) = 0;
  /// Those bytes, up to `end`, are in their place, or known to come aside.
  virtual void landed(std::uint64_t ticket, std::uint64_t end) = 0;
  /// Bytes are about to be written there: those of earlier copies that come another way must be there first.
  virtual status before_landing(std::span<const std::span<std::byte>> places) = 0;
  /// The copy with this ticket will bring no (more) bytes: it failed on the server.
  virtual void copy_failed(std::uint64_t ticket) = 0;
  /// These bytes come over a data connection.
  virtual status aside(const marshal::aside_body& piece, std::span<const std::span<std::byte>> places) = 0;
  /// The server says that work is complete: what it has said to come aside is to be in its place.
  virtual status collect_asides() = 0;
  virtual void notice(std::uint64_t context, std::int32_t code) = 0;
  virtual void output(int descriptor, std::string_view text) = 0;
  /// `number` 0: nobody waits for an answer.
  virtual void callback(std::uint64_t number, const marshal::callback_body& errand) = 0;
  /// For the call with this ticket; nobody's is closed.
  virtual void descriptor(std::uint64_t ticket, unique_fd fd) = 0;
};

class receiver {
 public:
  /// `received` grows by the bytes of each frame.
  receiver(transport::connection& connection, frame_sink& sink, std::atomic<std::uint64_t>& received)
      : connection_(connection), from_(connection), sink_(sink), received_(received) {}

  /// Reads and delivers one frame, waiting for it. An error: the connection is lost or the server broke the
  /// protocol.
  status receive_frame();

 private:
  status fill(std::span<std::byte> into);
  status fill_body(std::vector<std::byte>& into, std::size_t size);
  status receive_data(const wire::frame_header& header);
  status receive_aside();
  status receive_output();
  status receive_descriptor(const wire::frame_header& header);

  transport::connection& connection_;
  transport::buffered_receiver from_;
  frame_sink& sink_;
  std::atomic<std::uint64_t>& received_;
  std::vector<std::byte> body_;
  std::vector<std::span<std::byte>> places_;
};

}  // namespace outboard::frontend
