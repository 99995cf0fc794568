// For tests that put the two sides on different connections. `ipc_offer` prints a handle of its memory in hex
// and stays until its input ends; `ipc_offer HEX` tries to open one and prints the code and the first word.
#include <cuda.h>

#include <cstring>
#include <string>

#include "../common.hh"

int main(int count, char** values) {
  CUcontext context;
  CUdeviceptr data = 0;
  CUipcMemHandle handle{};
  auto* bytes = reinterpret_cast<unsigned char*>(&handle);
  MUST(cuInit(0));
  MUST(cuDevicePrimaryCtxRetain(&context, 0));
  MUST(cuCtxSetCurrent(context));
  if (count == 1) {
    MUST(cuMemAlloc(&data, 2 << 20));
    MUST(cuMemsetD32(data, 4711, 1 << 19));
    MUST(cuCtxSynchronize());
    MUST(cuIpcGetMemHandle(&handle, data));
    for (std::size_t i = 0; i < sizeof handle; i++) std::printf("%02x", bytes[i]);
    std::printf("\n");
    std::fflush(stdout);
    while (std::getchar() != EOF) {
    }
    unsigned word = 0;
    MUST(cuMemcpyDtoH(&word, data, sizeof word));
    EXPECT(word == 4711);
    return pass("ipc_offer");
  }
  const std::string hex = values[1];
  EXPECT(hex.size() == 2 * sizeof handle);
  for (std::size_t i = 0; i < sizeof handle; i++)
    bytes[i] = static_cast<unsigned char>(std::stoi(hex.substr(2 * i, 2), nullptr, 16));
  const CUresult code = cuIpcOpenMemHandle(&data, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
  unsigned word = 0;
  if (code == CUDA_SUCCESS) MUST(cuMemcpyDtoH(&word, data, sizeof word));
  std::printf("code %d word %u\n", static_cast<int>(code), word);
  return 0;
}
