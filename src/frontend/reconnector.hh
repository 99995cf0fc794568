// Brings the connections of a session back when the link between client and server breaks. It knows the
// server and the session's secret, and has a thread that looks after all streams of the session. Shared by
// the session's owner and that thread, which ends with the session. Any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/fd.hh"
#include "frontend/dial.hh"
#include "transport/resumable/stream.hh"
#include "transport/transport.hh"
#include "wire/resume.hh"

namespace outboard::frontend {

class reconnector : public std::enable_shared_from_this<reconnector> {
 public:
  /// For the session that was dialed like this, which has terms. The transports outlive it.
  static std::shared_ptr<reconnector> make(const transport::registry& transports, const dialed& with,
                                           std::vector<std::byte> token,
                                           std::shared_ptr<encryption> encrypts);

  /// The session's own connection becomes a stream; first of all, once.
  std::unique_ptr<transport::connection> adopt_session(std::unique_ptr<transport::connection> link);
  /// A data connection that the server knows by this name becomes one.
  std::unique_ptr<transport::connection> adopt(const wire::stream_name& name,
                                               std::unique_ptr<transport::connection> link);

  /// Waits while the session's own connection is interrupted. False: the session has ended.
  bool await_link();

 private:
  struct watched {
    wire::stream_name name{};
    std::shared_ptr<transport::resumable_stream> stream;
    std::atomic<bool> redialing{false};
    std::mutex resuming;        ///< held by who brings the stream a link
    std::uint64_t resumes = 0;  ///< how often one was brought; with `resuming`
  };
  /// One try to bring the stream back, and the next one of the same thread if it fails.
  enum class outcome : std::uint8_t { resumed, again, over };

  reconnector(const transport::registry& transports, const dialed& with, std::vector<std::byte> token,
              std::shared_ptr<encryption> encrypts);
  /// What one thread has met so far.
  struct tries {
    std::string problem;                                        ///< the last one
    transport::deadline absent_since = transport::no_deadline;  ///< since then nothing listens there
    std::uint64_t asked_after = 0;  ///< `resumes` when the last question to the server was written
  };
  std::unique_ptr<transport::connection> watch(const wire::stream_name& name,
                                               std::unique_ptr<transport::connection> link,
                                               transport::stream_options options);
  bool start_thread();
  void look_after_all();
  std::vector<std::shared_ptr<watched>> all();
  void bring_back(const std::shared_ptr<watched>& one);
  void keep_trying(watched& one, std::chrono::nanoseconds patience);
  outcome attempt(watched& one, std::chrono::nanoseconds patience, tries& so_far);
  outcome refused(watched& one, const error& why, tries& so_far);
  outcome go_on(watched& one, std::unique_ptr<transport::connection> link,
                const result<std::uint64_t>& server_has, tries& so_far);
  static bool out_of_date(const watched& one, const tries& so_far);

  const transport::registry& transports_;
  const std::string url_;
  const std::vector<std::byte> token_;
  const std::shared_ptr<encryption> encrypts_;
  const std::uint64_t session_;
  const wire::resume_terms terms_;
  const unique_fd run_;                   ///< to `outboard run`, if that started the program
  const std::chrono::nanoseconds quick_;  ///< in which a server that can be reached greets

  std::mutex mutex_;  // guards what follows; never held while a stream is used
  std::condition_variable wanted_;
  bool changed_ = false, running_ = false;
  std::shared_ptr<watched> own_;  ///< the session's own stream
  std::vector<std::shared_ptr<watched>> watched_;
};

}  // namespace outboard::frontend
