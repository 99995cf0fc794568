// What the daemon knows of one worker process. A part of the workers (workers.hh), for their own files alone;
// the daemon's one thread.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "backend/daemon/control_reader.hh"
#include "backend/daemon/workers/workers.hh"

namespace outboard::backend {

struct workers::worker {
  worker_id id = 0;
  child process;
  variables driver;
  std::string key;
  bool warm = false;  ///< was started without a session
  bool cuda = true;   ///< else it speaks OpenCL
  std::chrono::system_clock::time_point started = std::chrono::system_clock::now();
  event_loop::id connection_watch = 0, timer = 0;
  std::optional<control_reader> reader;  ///< of what it says
  std::optional<ready_message> ready;
  std::string problem;  ///< why the device could not be opened
  std::string folder;   ///< where it may write, if it is confined
  std::string group;    ///< its control group; empty: it has none
  /// Whose sessions may use what its compilers keep; nothing: they keep it where all do.
  std::optional<cache_owner> owner;
  std::optional<cache_lease> kept;  ///< and where, if that stays after the session
  // With a session:
  std::optional<session_info> session;
  wire::hello hello;
  std::string scheme;
  proven_identity who;
  share_ptr has;
  image_terms images;
  wire::seal seal{};
  // Our copy of its descriptor tells us when the client leaves; it is closed with the worker at the latest.
  unique_fd connection;
  unique_fd answers;  ///< as accepted_session has it, until the worker serves
  event_loop::clock::time_point session_began;
  std::optional<ended_message> end;
  bool client_gone = false;
  // For a session that can be resumed (worker_links.cc):
  unique_fd door;  ///< connections for its streams go in there; empty: it cannot be resumed
  wire::session_secret secret{};
  std::chrono::seconds lingers{0};  ///< by the configuration that was in force when it began
  std::optional<event_loop::clock::time_point> interrupted;  ///< since then its client cannot be reached
  std::vector<worker_id> makes_room_for;                     ///< workers that wait for its end
  std::string ended_because;  ///< not empty: we have ended it, and it does not begin again
  unique_fd activity;         ///< its page, once it serves
  std::optional<session_hold> hold;
  // While another worker is to go on with the session (replacing.cc):
  unique_fd exit;                             ///< it hears of that there
  std::optional<control_reader> exit_reader;  ///< of what it answers
  worker_id successor = 0;                    ///< who is to go on with it
  worker_id predecessor = 0;                  ///< whose session this is to go on with
  bool handed_on = false;                     ///< its session is another's: it is about to end
  bool goes_on = false;               ///< the client is its own already, though the other has not ended
  std::string account;                ///< whose memory it counts in `slot`
  std::optional<std::uint32_t> slot;  ///< none: its identity has no limit
};

}  // namespace outboard::backend
