// What a back-end tells a front-end at the hello: the snapshot. The server may be anybody.
#include <span>

#include "base/check.hh"
#include "marshal/cuda/snapshot.hh"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace outboard;
  auto snapshot = marshal::decode_snapshot({reinterpret_cast<const std::byte*>(data), size});
  if (snapshot.ok()) CHECK(marshal::decode_snapshot(marshal::encode(*snapshot)).ok());
  return 0;
}
