// A worker's part in resuming: it keeps the streams of its session, takes new connections for them at the
// door, and ends the session when its client has been away for too long. Owned by the worker's main(), which
// outlives the session; any thread.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "backend/daemon/control.hh"
#include "backend/session/resume_messages.hh"
#include "transport/resumable/stream.hh"
#include "transport/transport.hh"

namespace outboard::backend {

class resumption {
 public:
  /// Continues a descriptor by the transport of that name.
  using attach_link =
      std::function<result<std::unique_ptr<transport::connection>>(const std::string& scheme, unique_fd)>;
  /// Reports that the client cannot be reached, or can be again.
  using report_link = std::function<void(bool interrupted)>;

  resumption(std::uint64_t session, unique_fd door, const wire::resume_terms& terms, attach_link attach,
             report_link report);
  /// The session is over.
  ~resumption();
  resumption(const resumption&) = delete;
  resumption& operator=(const resumption&) = delete;

  /// The session's own connection: bytes pass as they are until welcomed().
  std::unique_ptr<transport::connection> begin_session(std::unique_ptr<transport::connection> link);
  /// The welcome has been sent, and nothing else: the client gets its secret, and the stream begins.
  void welcomed();
  /// The session has ended its connection: waits shortly for the client to have what was said last.
  void await_end();
  /// A data connection that the client knows by this name.
  std::unique_ptr<transport::connection> adopt(const wire::stream_name& name,
                                               std::unique_ptr<transport::connection> link);

 private:
  struct kept {
    wire::stream_name name{};
    std::shared_ptr<transport::resumable_stream> stream;
    std::mutex resuming;  ///< held by the one knock that brings the stream a link
  };
  struct caller {
    std::atomic<bool> over{false};
    std::thread thread;
  };
  enum class standing : std::uint8_t { kept, unknown, over };

  std::unique_ptr<transport::connection> keep(const wire::stream_name& name,
                                              std::unique_ptr<transport::connection> link,
                                              transport::stream_options options, bool plain);
  void stand_at_door();
  bool look_after_streams();
  void answer(control_message& m);
  bool has_spoken(const unique_fd& client) const;
  void let_in(const knock_message& m, unique_fd descriptor);
  std::pair<standing, std::shared_ptr<kept>> find(const wire::stream_name& name);
  void refuse(transport::connection& link, wire::refusal_reason reason, const std::string& why) const;
  status welcome(transport::connection& link, const knock_message& m, std::uint64_t arrived) const;

  const std::uint64_t session_;
  const unique_fd door_;
  /// To be read when a stream has lost its link, has another one, or has ended. Shared with the streams.
  const std::shared_ptr<unique_fd> changed_;
  const wire::resume_terms terms_;
  const attach_link attach_;
  const report_link report_;
  std::atomic<bool> stopped_{false};
  std::list<caller> callers_;  // the thread's: one for each knock, because sending again takes time
  /// The thread's: since when, as reported.
  std::optional<transport::clock::time_point> interrupted_;

  std::mutex mutex_;  // guards what follows; never held while a stream is used
  std::shared_ptr<kept> own_;
  std::vector<std::shared_ptr<kept>> streams_;
  std::deque<wire::stream_name> past_;  ///< names of streams that have ended, the latest ones

  std::thread thread_;  ///< the last member: it begins when all others are there
};

}  // namespace outboard::backend
