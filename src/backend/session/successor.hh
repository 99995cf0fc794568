// The two ends of a replacement: the worker that has a session, and the one that goes on with it. The daemon
// chooses the second and gives both an end of a socket pair; the rest is between them. Until the first has
// said `go`, the session is its own and goes on there, whatever becomes of the second; from then on it is the
// second's, and the first touches neither the connection nor the device.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <semaphore>
#include <string>
#include <thread>

#include "backend/session/session_api.hh"
#include "backend/session/session_image.hh"
#include "base/schemes.hh"

namespace outboard::backend {

/// Continues a descriptor by the transport of that name.
using attach_connection =
    std::function<result<std::unique_ptr<transport::connection>>(const std::string& scheme, unique_fd)>;

/// The scheme of what the daemon gives the two workers: a local socket.
inline std::string successor_scheme() {
  return std::string(scheme_with(&scheme_traits::has_socket_file).name);
}

/// In the worker that has a session: waits for the daemon's wish that another one goes on with it. Owned by
/// main(), outlives the session. is_named() from any thread; the rest by the session's main thread.
class successor {
 public:
  /// `socket`: the daemon's messages of this kind.
  successor(unique_fd socket, attach_connection attach);
  ~successor();
  successor(const successor&) = delete;
  successor& operator=(const successor&) = delete;

  /// `wake` is called, by a thread of this object, when there is a wish.
  void watch(std::function<void()> wake);
  /// No wish is taken any more, and `wake` is not called.
  void stop();
  /// There is a wish that the session has to see to: with prepare() first, then with give() or refuse().
  bool is_named() const { return named_.load(); }
  /// The other worker has done what it can before the session comes.
  bool is_prepared() const { return prepared_; }
  /// What it may do, which takes it a while: the session goes on, and is_named() says false meanwhile. An
  /// error: the session cannot leave. Answers the wish then.
  void prepare(result<std::unique_ptr<session_api::preparation>> what);
  /// How long the session may be held up by work that is under way.
  std::chrono::milliseconds patience() const { return patience_; }
  /// OK: the session is the other worker's from now on. An error: it goes on here. Answers the wish.
  status give(const session_image& image);
  /// The session cannot leave now, though the other worker is prepared. Answers the wish.
  void refuse(const std::string& why);

 private:
  void listen();
  status open_channel(unique_fd descriptor);
  status let_prepare();
  bool let_session_see();
  void answer(const std::string& why);

  const unique_fd socket_;
  const attach_connection attach_;
  std::function<void()> wake_;
  std::unique_ptr<transport::connection> channel_;  // the thread's until `named_`, then the session's
  std::chrono::milliseconds patience_{0};
  std::atomic<bool> named_{false};
  bool prepared_ = false;  // as `channel_`
  std::unique_ptr<session_api::preparation> preparation_;
  std::string why_not_;                 // there is no preparation
  std::counting_semaphore<8> seen_{0};  // the session has done its part, or is over
  std::mutex end_mutex_;                // guards what follows, and `channel_` where the thread has it
  bool stopped_ = false;
  std::thread thread_;
};

/// In the worker that goes on with a session. Owned by main(), outlives the session; one thread.
class predecessor {
 public:
  explicit predecessor(std::unique_ptr<transport::connection> channel) : channel_(std::move(channel)) {}

  /// Waits for what may be done before the session comes, for worker_api::load_ahead(). Once, first.
  result<std::vector<std::byte>> receive_preparation();
  /// It is done. An error: it could not be.
  status tell_prepared(const status& done);
  /// Waits for the session. Once.
  status receive();
  session_image& image() { return image_; }
  /// Everything has been made again. OK: the session is ours. An error: it stays where it was.
  status accept();
  /// It cannot be made again here: it stays where it was.
  void decline(const std::string& why);

 private:
  std::unique_ptr<transport::connection> channel_;
  session_image image_;
};

}  // namespace outboard::backend
