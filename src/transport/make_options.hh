// What every make_<scheme>() takes, so that the list of transports (transport/list) can make them all in the
// same way. A transport uses the options that concern it. A value.
#pragma once

#include <chrono>

namespace outboard::transport {

struct make_options {
  /// tcp: a peer whose kernel has not answered for this long is considered gone. A peer that is merely
  /// stopped in a debugger is not: its kernel answers.
  std::chrono::milliseconds silence = std::chrono::seconds(30);
};

}  // namespace outboard::transport
