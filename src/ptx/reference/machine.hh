// A second way to run kernels, for tests only: deliberately simple, one thread after the other, a plain
// switch over the parsed instruction. It shares the parser with the interpreter and nothing else, so that an
// error must be made twice to stay unseen. A thread runs until it ends or must wait for others. Never part of
// the product. One thread.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hh"
#include "ptx/reference/operation.hh"
#include "ptx/text/tree.hh"

namespace outboard::ptx::reference {

using dimensions = std::array<std::uint32_t, 3>;

struct launch {
  const program* code = nullptr;
  std::string_view kernel;
  dimensions grid{1, 1, 1}, block{1, 1, 1};
  std::span<const std::byte> parameters;                ///< each at the next multiple of its alignment
  std::map<std::string_view, std::uint64_t> variables;  ///< addresses of .global and .const variables
};

/// Generic addresses are host addresses, and whatever a kernel touches must be there: wild ones end the
/// process.
status run(const launch& l);

}  // namespace outboard::ptx::reference
