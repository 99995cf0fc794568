// The answers to the command's questions, as JSON text. Pure functions of what the daemon knows; its one
// thread. Texts from clients may be any bytes: bytes that are not UTF-8 are replaced.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "backend/daemon/probe.hh"
#include "backend/daemon/workers/workers.hh"
#include "base/configuration/config.hh"

namespace outboard::backend {

/// What a server has for OpenCL programs, as far as it can be told without loading a platform.
struct opencl_offer {
  std::vector<std::string> platforms;  ///< the libraries that its .icd files name
  std::string confine;                 ///< worker.confine
  std::string lacks;                   ///< what this kernel cannot do of it, in words
  bool served = true;                  ///< false: its sessions are refused
};

opencl_offer look_at_opencl(confine_choice confine, const variable_source& own_environment);

/// How workers are locked in.
struct confinement_state {
  std::string confine;                     ///< worker.confine
  std::string has;                         ///< what this kernel does of it, in words
  std::string lacks;                       ///< what it cannot do
  bool served = true;                      ///< false: CUDA sessions are refused
  std::vector<std::string> reads, writes;  ///< what the operator has opened beside what workers need
  bool reaches_all_memory = false;         ///< probe.hh
};

confinement_state look_at_confinement(const config& c, const probed_device& device);

struct daemon_facts {
  const probed_device& device;
  opencl_offer opencl;
  confinement_state workers;
  cgroup_choice cgroup;
  const group_choice& groups;
  std::vector<std::string> listening;
  std::vector<std::string> transports;
  bool token_required = false;
  bool munge = false;               ///< clients over a network may show by it who they are
  std::string_view tls;             ///< the setting
  std::string fingerprint;          ///< of the server's key; empty: it has none
  std::string certificate_warning;  ///< empty: its certificate is valid for some time
  bool draining = false;
  pool_settings pool;
  std::size_t guests = 0;
  std::uint64_t refused = 0;
  std::chrono::system_clock::time_point started;
  std::string asker;       ///< who asks
  const share& has;        ///< and what is its share
  bool several = false;    ///< do identities share the places?
  std::string audit_file;  ///< shown to administrators alone; empty: there is none
};

/// One object for each device; the second: for each that an identity gets.
std::string devices_json(const probed_device& device);
std::string devices_json(const probed_device& device, const share& has);
std::string opencl_json(const opencl_offer& opencl);
/// One object for each session; never the connection that asks. `only_of`: the identity whose sessions are
/// listed; empty: everybody's.
std::string sessions_json(const workers& w, const std::string& only_of);
/// What came of reading the configuration again; `later`: the keys that only a start takes up.
std::string reread_json(const config& read, const std::vector<std::string>& later);
std::string problem_json(const std::string& why);
/// "replace ID MILLISECONDS": have another worker go on with the session, which work under way may hold up
/// for so long; "replace ID": what became of that.
struct replace_question {
  std::uint64_t session = 0;
  std::optional<std::chrono::milliseconds> patience;
};
std::optional<replace_question> decode_replace_question(const std::string& question);
/// Does what it asks, and says what has become of it so far.
std::string replace_json(workers& w, const replace_question& asked);

/// The back-end's half of `outboard doctor`.
std::string doctor_json(const daemon_facts& facts, const workers& w);

}  // namespace outboard::backend
