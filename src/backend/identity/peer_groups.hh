// The groups of the process at the other end of a local socket, as the kernel reports them. Any thread.
#pragma once

#include <cstdint>
#include <vector>

namespace outboard::backend {

/// Its effective group and all further ones; empty where the kernel does not say.
std::vector<std::uint32_t> peer_groups(int socket);

}  // namespace outboard::backend
