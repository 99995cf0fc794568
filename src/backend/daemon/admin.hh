// The answers to the command's questions, as JSON text. Pure functions of what the daemon knows; its one
// thread. Texts from clients may contain any bytes: those that are not UTF-8 and control characters are
// replaced, and of long texts only the beginning is shown, so that a list of many sessions stays small.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "backend/daemon/probe.hh"
#include "backend/daemon/workers.hh"

namespace outboard::backend {

struct daemon_facts {
  const probed_device& device;
  std::vector<std::string> listening;
  std::vector<std::string> transports;
  bool token_required = false;
  std::string_view tls;
  std::string fingerprint;  ///< of the server's key; empty: it has no TLS
  std::string certificate_warning;
  bool draining = false;
  confine_choice confine = confine_choice::automatic, confine_cuda = confine_choice::automatic;
  pool_settings pool;
  limit_settings limits;
  std::size_t guests = 0;
  std::uint64_t refused = 0;
  std::chrono::system_clock::time_point started;
};

/// One object for each device that the identity's programs see.
std::string devices_json(const probed_device& device, const identity_terms& who);
/// One object for each device.
std::string devices_json(const probed_device& device);
/// One object for each session that the asker may see, also for those that wait for a place. `device`: the
/// kind that CUDA sessions use.
std::string sessions_json(const workers& w, const std::string& device, const asker& who);
/// The server's half of `outboard doctor`. What warm workers were started for is shown to those who see all.
std::string doctor_json(const daemon_facts& facts, const workers& w, const asker& who);

/// Why a server with so many sessions, of which limits.sessions allows `most`, takes no more.
std::string describe_full(std::uint64_t running, std::uint64_t waiting, std::uint64_t most);

}  // namespace outboard::backend
