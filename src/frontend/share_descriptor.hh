// Descriptors that stand for something shared on the server, which cuMemExportToShareableHandle and its kin
// give to the program. Each is one end of a pair of sockets with the token waiting in it. It may be
// duplicated, inherited and passed on like a driver's descriptor, and every holder reads the same token. The
// other end, which is ours, shows when the last copy is closed. Any thread.
#pragma once

#include <cstdint>
#include <optional>

#include "base/fd.hh"
#include "marshal/cuda/sharing_bodies.hh"

namespace outboard::frontend {

/// What the token names: a descriptor of one kind is none of another.
enum class share_kind : std::uint32_t { allocation = 1, pool = 2 };

struct share_descriptor {
  unique_fd given;  ///< the program's
  unique_fd watch;  ///< ours
};

/// Nothing: no descriptors left.
std::optional<share_descriptor> make_share_descriptor(share_kind kind, const marshal::share_token& token);

/// Nothing: the number is no descriptor, or not one of these. Whatever it is keeps its bytes.
std::optional<marshal::share_token> read_share_descriptor(share_kind kind, int fd);

/// Does anybody hold a copy of the program's end?
bool held_by_anyone(const unique_fd& watch);

}  // namespace outboard::frontend
