// The first version of the memory functions: sizes and device addresses of 32 bits. Each is the later version
// with its numbers widened. (Those that give a device address out have no place for one of 64 bits.)
#include "frontend/cuda/ends.hh"
#include "frontend/cuda/remote.hh"

namespace outboard::frontend::cuda::ends {

CUresult cuMemcpyHtoD(CUdeviceptr_v1 dstDevice, const void* srcHost, unsigned ByteCount) {
  return ends::cuMemcpyHtoD_v2(dstDevice, srcHost, ByteCount);
}
CUresult cuMemcpyDtoH(void* dstHost, CUdeviceptr_v1 srcDevice, unsigned ByteCount) {
  return ends::cuMemcpyDtoH_v2(dstHost, srcDevice, ByteCount);
}
CUresult cuMemcpyDtoD(CUdeviceptr_v1 dstDevice, CUdeviceptr_v1 srcDevice, unsigned ByteCount) {
  return remote<api::opcode::cuMemcpyDtoD_v2>(CUdeviceptr{dstDevice}, CUdeviceptr{srcDevice},
                                              size_t{ByteCount});
}
CUresult cuMemcpyHtoDAsync(CUdeviceptr_v1 dstDevice, const void* srcHost, unsigned ByteCount,
                           CUstream hStream) {
  return ends::cuMemcpyHtoDAsync_v2(dstDevice, srcHost, ByteCount, hStream);
}
CUresult cuMemcpyDtoHAsync(void* dstHost, CUdeviceptr_v1 srcDevice, unsigned ByteCount, CUstream hStream) {
  return ends::cuMemcpyDtoHAsync_v2(dstHost, srcDevice, ByteCount, hStream);
}
CUresult cuMemcpyDtoDAsync(CUdeviceptr_v1 dstDevice, CUdeviceptr_v1 srcDevice, unsigned ByteCount,
                           CUstream hStream) {
  return remote<api::opcode::cuMemcpyDtoDAsync_v2>(CUdeviceptr{dstDevice}, CUdeviceptr{srcDevice},
                                                   size_t{ByteCount}, hStream);
}

CUresult cuMemcpyDtoA(CUarray dstArray, unsigned dstOffset, CUdeviceptr_v1 srcDevice, unsigned ByteCount) {
  return remote<api::opcode::cuMemcpyDtoA_v2>(dstArray, size_t{dstOffset}, CUdeviceptr{srcDevice},
                                              size_t{ByteCount});
}
CUresult cuMemcpyAtoD(CUdeviceptr_v1 dstDevice, CUarray srcArray, unsigned srcOffset, unsigned ByteCount) {
  return remote<api::opcode::cuMemcpyAtoD_v2>(CUdeviceptr{dstDevice}, srcArray, size_t{srcOffset},
                                              size_t{ByteCount});
}
CUresult cuMemcpyAtoA(CUarray dstArray, unsigned dstOffset, CUarray srcArray, unsigned srcOffset,
                      unsigned ByteCount) {
  return remote<api::opcode::cuMemcpyAtoA_v2>(dstArray, size_t{dstOffset}, srcArray, size_t{srcOffset},
                                              size_t{ByteCount});
}
CUresult cuMemcpyHtoA(CUarray dstArray, unsigned dstOffset, const void* srcHost, unsigned ByteCount) {
  return ends::cuMemcpyHtoA_v2(dstArray, dstOffset, srcHost, ByteCount);
}
CUresult cuMemcpyAtoH(void* dstHost, CUarray srcArray, unsigned srcOffset, unsigned ByteCount) {
  return ends::cuMemcpyAtoH_v2(dstHost, srcArray, srcOffset, ByteCount);
}
CUresult cuMemcpyHtoAAsync(CUarray dstArray, unsigned dstOffset, const void* srcHost, unsigned ByteCount,
                           CUstream hStream) {
  return ends::cuMemcpyHtoAAsync_v2(dstArray, dstOffset, srcHost, ByteCount, hStream);
}
CUresult cuMemcpyAtoHAsync(void* dstHost, CUarray srcArray, unsigned srcOffset, unsigned ByteCount,
                           CUstream hStream) {
  return ends::cuMemcpyAtoHAsync_v2(dstHost, srcArray, srcOffset, ByteCount, hStream);
}

CUresult cuMemsetD8(CUdeviceptr_v1 dstDevice, unsigned char uc, unsigned N) {
  return remote<api::opcode::cuMemsetD8_v2>(CUdeviceptr{dstDevice}, uc, size_t{N});
}
CUresult cuMemsetD16(CUdeviceptr_v1 dstDevice, unsigned short us, unsigned N) {
  return remote<api::opcode::cuMemsetD16_v2>(CUdeviceptr{dstDevice}, us, size_t{N});
}
CUresult cuMemsetD32(CUdeviceptr_v1 dstDevice, unsigned ui, unsigned N) {
  return remote<api::opcode::cuMemsetD32_v2>(CUdeviceptr{dstDevice}, ui, size_t{N});
}
CUresult cuMemsetD2D8(CUdeviceptr_v1 dstDevice, unsigned dstPitch, unsigned char uc, unsigned Width,
                      unsigned Height) {
  return remote<api::opcode::cuMemsetD2D8_v2>(CUdeviceptr{dstDevice}, size_t{dstPitch}, uc, size_t{Width},
                                              size_t{Height});
}
CUresult cuMemsetD2D16(CUdeviceptr_v1 dstDevice, unsigned dstPitch, unsigned short us, unsigned Width,
                       unsigned Height) {
  return remote<api::opcode::cuMemsetD2D16_v2>(CUdeviceptr{dstDevice}, size_t{dstPitch}, us, size_t{Width},
                                               size_t{Height});
}
CUresult cuMemsetD2D32(CUdeviceptr_v1 dstDevice, unsigned dstPitch, unsigned ui, unsigned Width,
                       unsigned Height) {
  return remote<api::opcode::cuMemsetD2D32_v2>(CUdeviceptr{dstDevice}, size_t{dstPitch}, ui, size_t{Width},
                                               size_t{Height});
}

}  // namespace outboard::frontend::cuda::ends
