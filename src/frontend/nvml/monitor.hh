// NVML's state in the program's process: a connection to the server's NVML helper while the program has
// called nvmlInit, answers that never change, and how often NVML was initialised. The one singleton that the
// C ABI needs; any thread, one question at a time on the connection.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "marshal/nvml/question.hh"
#include "transport/transport.hh"

namespace outboard::frontend::nvml {

using api::nvml::nvmlReturn_t;

/// What the shim knows: the transports linked in.
using add_transports = status (*)(transport::registry& to,
                                  const std::vector<std::pair<std::string, std::string>>& plugins);

class monitor {
 public:
  static monitor& instance();

  void boot(add_transports add);
  /// The program ends, or has forked: a child's NVML is not initialised, and the parent's connection is not
  /// touched.
  void shut_down();
  void forked_child();

  nvmlReturn_t init();
  nvmlReturn_t shutdown();
  bool initialised() const { return users_.load(std::memory_order_acquire) > 0; }

  /// Asks the server, or itself where the answer never changes.
  nvmlReturn_t ask(const api::nvml::function_form& form, const api::nvml::words& arguments);

 private:
  monitor() = default;
  nvmlReturn_t connect();
  void disconnect(bool orderly);
  bool exchange(std::uint32_t opcode, const std::vector<std::byte>& question, std::vector<std::byte>& answer);
  nvmlReturn_t lost(const std::string& why);

  add_transports add_ = nullptr;
  std::mutex mutex_;  ///< guards what follows
  std::atomic<int> users_{0};
  bool ended_ = false, told_ = false;
  std::unique_ptr<transport::registry> transports_;
  std::unique_ptr<transport::connection> connection_;
  std::uint64_t last_ticket_ = 0;
  using kept_key = std::pair<std::uint32_t, std::vector<std::byte>>;
  std::map<kept_key, std::vector<std::byte>> kept_;
  marshal::nvml::text_pool texts_;  ///< never emptied: programs keep the pointers
};

/// The code for a function of the tables: its own for bad arguments, else the server's.
nvmlReturn_t ask(api::nvml::opcode code, const api::nvml::words& arguments);

}  // namespace outboard::frontend::nvml
