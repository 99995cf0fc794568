// What the daemon keeps of one worker, for the files that implement `workers`. Owned by it; the daemon's one
// thread.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/daemon/bounds/worker_output.hh"
#include "backend/daemon/control_reader.hh"
#include "backend/daemon/workers.hh"
#include "wire/resume.hh"

namespace outboard::backend {

/// What a list says of a session without a worker, as its client describes it.
session_info info_of(const accepted_session& session);

struct workers::worker {
  worker_id id = 0;
  child process;
  variables driver;
  std::string key;
  bool warm = false;  ///< was started without a session
  bool cuda = true;   ///< else it speaks OpenCL
  std::chrono::system_clock::time_point started = std::chrono::system_clock::now();
  std::unique_ptr<control_reader> control;
  std::unique_ptr<worker_output> output;
  event_loop::id connection_watch = 0, timer = 0;
  std::optional<ready_message> ready;
  std::string problem;              ///< why the device could not be opened
  std::string folder;               ///< where it may write, if it is confined
  std::optional<cache_lease> kept;  ///< where its compilers keep what later sessions may find
  // With a session:
  std::optional<session_info> session;
  wire::hello hello;
  std::string scheme, identity;
  credential who;
  shared_terms terms;
  image_terms images;
  wire::seal seal = {};
  // Our copy of the descriptor, which reports that the client leaves. Closed with the worker at the latest.
  unique_fd connection;
  unique_fd answers;  ///< as accepted_session has it, until the worker serves
  event_loop::clock::time_point session_began;
  std::optional<ended_message> end;
  bool client_gone = false;
  // For a session that can be resumed (worker_links.cc):
  unique_fd door;  ///< connections for its streams go in there; empty: it cannot be resumed
  wire::session_secret secret{};
  std::optional<event_loop::clock::time_point> interrupted;  ///< since then its client cannot be reached
  std::vector<worker_id> makes_room_for;                     ///< workers that wait for its end
  unique_fd activity;                                        ///< its activity page, once it serves
  std::optional<memory_lease> memory;                        ///< its slot among its identity's sessions
  std::optional<session_hold> hold;
};

}  // namespace outboard::backend
