// Which multiprocessors lie together on the board. The driver tells it in an export table without a name,
// which libraries (cuBLASLt) ask before they choose how to multiply; without it they choose otherwise than
// beside the GPU.
#include "backend/cuda/driver_call.hh"
#include "backend/cuda/ends.hh"
#include "backend/cuda/session.hh"

namespace outboard::backend {
namespace {

constexpr CUuuid id{{0x17, 0x34, static_cast<char>(0xdc), 0x26, static_cast<char>(0x80), 0x0d, 0x47, 0x45,
                     static_cast<char>(0x87), 0x26, static_cast<char>(0xc0), static_cast<char>(0xf1),
                     static_cast<char>(0xe7), static_cast<char>(0xdd), static_cast<char>(0x8b),
                     static_cast<char>(0xca)}};

/// Words of 8 bytes: the table's size, then functions. Of driver 580: 17 words.
struct layout_table {
  std::size_t size;
  void* unknown[3];
  CUresult (*get)(std::uint8_t** clusters, std::uint8_t** numbers);  ///< of the current context; allocates
  void* unknown_too[8];
  CUresult (*release)(std::uint8_t* clusters, std::uint8_t* numbers);
};

/// What cuBLASLt takes for the arrays' length.
CUresult pairs_of_current(const api::driver_table& d, std::size_t& pairs) {
  CUdevice device = 0;
  int multiprocessors = 0;
  CUresult code = call_driver(d.cuCtxGetDevice, &device);
  if (code == CUDA_SUCCESS)
    code = call_driver(d.cuDeviceGetAttribute, &multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
                       device);
  if (code == CUDA_SUCCESS) pairs = static_cast<std::size_t>(multiprocessors) / 2;
  return code;
}

}  // namespace

outcome ends::board_layout(call& c) {
  if (c.refused != CUDA_SUCCESS) return outcome::answer(c.refused);
  const api::driver_table& d = c.driver();
  const void* found = nullptr;
  if (!d.cuGetExportTable || d.cuGetExportTable(&found, &id) != CUDA_SUCCESS || !found)
    return outcome::answer(CUDA_ERROR_NOT_SUPPORTED);
  const auto& table = *static_cast<const layout_table*>(found);
  if (table.size < sizeof table || !table.get || !table.release)
    return outcome::answer(CUDA_ERROR_NOT_SUPPORTED);
  std::size_t pairs = 0;
  if (const CUresult code = pairs_of_current(d, pairs); code != CUDA_SUCCESS) return outcome::answer(code);
  std::uint8_t *clusters = nullptr, *numbers = nullptr;
  if (const CUresult code = table.get(&clusters, &numbers); code != CUDA_SUCCESS)
    return outcome::answer(code);
  if (!clusters || !numbers) return outcome::answer(CUDA_ERROR_NOT_SUPPORTED);
  marshal::put_body(c.reply,
                    marshal::board_layout_reply{{clusters, clusters + pairs}, {numbers, numbers + pairs}});
  table.release(clusters, numbers);
  return outcome::answer(CUDA_SUCCESS);
}

}  // namespace outboard::backend
