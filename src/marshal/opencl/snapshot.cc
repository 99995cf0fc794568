#include "marshal/opencl/snapshot.hh"

#include <algorithm>

namespace outboard::marshal::opencl {

std::vector<std::byte> encode(const snapshot& s) { return payload_of(s); }

result<snapshot> decode_snapshot(std::span<const std::byte> bytes) {
  wire::reader r(bytes);
  auto s = take_body<snapshot>(r);
  if (!r.finished()) return failure("the server's list of OpenCL devices was not understood");
  return s;
}

const info_value* find(const std::vector<info_value>& info, std::uint32_t name) {
  const auto found = std::ranges::find(info, name, &info_value::name);
  return found == info.end() ? nullptr : &*found;
}

}  // namespace outboard::marshal::opencl
