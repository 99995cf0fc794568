// One client of the helper: the devices it may see, the handles it was given, whose processes are its own.
// Answers one question at a time, on the thread of its connection.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "backend/nvml/sessions.hh"
#include "backend/nvml/system_events.hh"
#include "base/configuration/config.hh"
#include "device/nvml.hh"
#include "marshal/nvml/question.hh"

namespace outboard::backend::nvml {

/// What all visitors share; outlives them.
struct house {
  const device::nvml_device* device = nullptr;
  std::vector<std::string> visible;  ///< PCI addresses of the devices that this server lends
  bool in_order = false;             ///< they are shown in that order, else in the device's own
  shape_settings shape;              ///< names and memory as clients see them
  session_book sessions;
  system_events events;
};

class visitor final : public marshal::nvml::handle_book {
 public:
  /// `process`: the client's, by its own word.
  visitor(house& where, identity who, unsigned process = 0);
  ~visitor() override;
  visitor(const visitor&) = delete;
  visitor& operator=(const visitor&) = delete;

  /// False: malformed. Appends the answer to `reply`.
  bool answer(std::uint32_t opcode, std::span<const std::byte> question, std::vector<std::byte>& reply);

  void* find(api::nvml::handle_kind kind, std::uint64_t handle) override;
  std::uint64_t handle_of(api::nvml::handle_kind kind, void* object) override;

  /// As this client sees them, in its order.
  std::span<const api::nvml::nvmlDevice_t> devices() const { return devices_; }
  const api::nvml::function_table& real() const { return house_.device->nvml(); }
  /// What a function says that the device does not have.
  api::nvml::nvmlReturn_t absent() const { return house_.device->absent(); }
  std::vector<own_process> processes() const { return house_.sessions.of(who_); }
  system_events& events() const { return house_.events; }
  const shape_settings& shape() const { return house_.shape; }
  /// What the client's own process holds of a board, or if that holds no session all its processes.
  std::uint64_t held_on(std::uint64_t board) const { return house_.sessions.held_on(board, who_, process_); }
  void forget(api::nvml::handle_kind kind, void* object);
  bool is_full(api::nvml::handle_kind kind) const;  ///< no more handles of this kind

 private:
  struct slot {
    void* object = nullptr;  ///< nullptr: gone
    std::uint16_t generation = 0;
  };
  struct book {
    std::vector<slot> slots;  ///< by number
    std::unordered_map<void*, std::uint64_t> numbers;
  };
  void find_devices();

  house& house_;
  const identity who_;
  const unsigned process_;
  std::vector<api::nvml::nvmlDevice_t> devices_;
  std::array<book, static_cast<std::size_t>(api::nvml::handle_kind::count)> books_;
};

/// The visitor whose question this thread answers: entries of the table carry no pointer to it.
visitor& current_visitor();

/// What a visitor gets instead of the device's own entry: everything that would show more than is lent, or
/// other clients' processes. Null where the device's own serves.
const api::nvml::function_table& shielded();

}  // namespace outboard::backend::nvml
