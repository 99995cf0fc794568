// The fourth purpose of a hello: locking and checkpointing another session of the same identity, named by the
// client process that it serves. The question travels in the hello, the answer in the welcome. Values; no
// thread rules.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "wire/hello.hh"

namespace outboard::wire {

inline constexpr purpose purpose_checkpoint{4};

enum class checkpoint_step : std::uint8_t { state = 1, lock, checkpoint, restore, unlock };

using device_uuid = std::array<std::byte, 16>;

struct checkpoint_question {
  checkpoint_step step = checkpoint_step::state;
  std::int32_t process = 0;                                  ///< the client process whose session is meant
  std::uint32_t milliseconds = 0;                            ///< lock: how long to try, 0: indefinitely
  std::vector<std::pair<device_uuid, device_uuid>> devices;  ///< restore: pairs of old and new device
};

inline constexpr std::size_t max_checkpoint_devices = 64;

struct checkpoint_answer {
  bool known = false;      ///< false: no session of this identity serves that process
  std::int32_t code = 0;   ///< CUresult
  std::int32_t state = 0;  ///< CUprocessState, for the step that asks for it
};

/// For hello.admin_question.
std::string encode(const checkpoint_question& m);
result<checkpoint_question> decode_checkpoint_question(const std::string& text);
/// For welcome.content.
std::vector<std::byte> encode(const checkpoint_answer& m);
result<checkpoint_answer> decode_checkpoint_answer(std::span<const std::byte> content);

}  // namespace outboard::wire
