// The first version of the memory functions: sizes and device addresses of 32 bits, for contexts of the first
// version (cuCtxCreate of CUDA 3.1), as drivers have it; in any other they are CUDA_ERROR_INVALID_CONTEXT.
// Each is the later version with its numbers widened. The window lies above 32 bits, so nothing can be
// allocated.
#include "frontend/cuda/ends.hh"
#include "frontend/cuda/remote.hh"

namespace outboard::frontend::cuda {
namespace {

constexpr unsigned first_version = 3010;

CUresult refusal() {
  lane& own = this_lane();
  if (const CUresult code = process::instance().gate(own); code != CUDA_SUCCESS) return code;
  return own.current()->api_version <= first_version ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

/// An address or a size that later versions gave, where it fits.
template <class T>
CUresult narrow(CUresult code, T wide, unsigned* out) {
  if (code != CUDA_SUCCESS || !out) return code;
  if (wide > 0xffffffffu) return CUDA_ERROR_OUT_OF_MEMORY;
  *out = static_cast<unsigned>(wide);
  return CUDA_SUCCESS;
}

}  // namespace

#define OUTBOARD_FIRST_VERSION \
  if (const CUresult refused = refusal(); refused != CUDA_SUCCESS) return refused

namespace ends {

CUresult cuMemAlloc(CUdeviceptr_v1* dptr, unsigned bytesize) {
  OUTBOARD_FIRST_VERSION;
  return dptr && bytesize ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuMemAllocPitch(CUdeviceptr_v1* dptr, unsigned* pPitch, unsigned WidthInBytes, unsigned Height,
                         unsigned ElementSizeBytes) {
  OUTBOARD_FIRST_VERSION;
  const bool sound = dptr && pPitch && WidthInBytes && Height &&
                     (ElementSizeBytes == 4 || ElementSizeBytes == 8 || ElementSizeBytes == 16);
  return sound ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuMemFree(CUdeviceptr_v1 dptr) {
  OUTBOARD_FIRST_VERSION;
  return dptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
CUresult cuMemGetAddressRange(CUdeviceptr_v1*, unsigned*, CUdeviceptr_v1) {
  OUTBOARD_FIRST_VERSION;
  return CUDA_ERROR_NOT_FOUND;
}
CUresult cuMemHostGetDevicePointer(CUdeviceptr_v1* pdptr, void* p, unsigned Flags) {
  OUTBOARD_FIRST_VERSION;
  CUdeviceptr wide = 0;
  const CUresult code = ends::cuMemHostGetDevicePointer_v2(pdptr ? &wide : nullptr, p, Flags);
  return narrow(code, wide, pdptr);
}
CUresult cuModuleGetGlobal(CUdeviceptr_v1* dptr, unsigned* bytes, CUmodule hmod, const char* name) {
  lane& own = this_lane();
  if (const CUresult code = process::instance().gate(own, false); code != CUDA_SUCCESS) return code;
  if (!find_object<object>(hmod)) return CUDA_ERROR_INVALID_HANDLE;
  OUTBOARD_FIRST_VERSION;
  CUdeviceptr address = 0;
  std::size_t size = 0;
  CUresult code = ends::cuModuleGetGlobal_v2(dptr ? &address : nullptr, bytes ? &size : nullptr, hmod, name);
  code = narrow(code, size, bytes);
  return narrow(code, address, dptr);
}

CUresult cuTexRefSetAddress(unsigned* ByteOffset, CUtexref hTexRef, CUdeviceptr_v1 dptr, unsigned bytes) {
  OUTBOARD_FIRST_VERSION;
  std::size_t offset = 0;
  const CUresult code = remote<api::opcode::cuTexRefSetAddress_v2>(ByteOffset ? &offset : nullptr, hTexRef,
                                                                   CUdeviceptr{dptr}, size_t{bytes});
  return narrow(code, offset, ByteOffset);
}
CUresult cuTexRefSetAddress2D(CUtexref hTexRef, const CUDA_ARRAY_DESCRIPTOR_v1* desc, CUdeviceptr_v1 dptr,
                              unsigned Pitch) {
  OUTBOARD_FIRST_VERSION;
  if (!desc) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_ARRAY_DESCRIPTOR wide{desc->Width, desc->Height, desc->Format, desc->NumChannels};
  return remote<api::opcode::cuTexRefSetAddress2D_v3>(hTexRef, &wide, CUdeviceptr{dptr}, size_t{Pitch});
}
CUresult cuTexRefGetAddress(CUdeviceptr_v1* pdptr, CUtexref hTexRef) {
  OUTBOARD_FIRST_VERSION;
  CUdeviceptr wide = 0;
  const CUresult code = remote<api::opcode::cuTexRefGetAddress_v2>(pdptr ? &wide : nullptr, hTexRef);
  return narrow(code, wide, pdptr);
}

CUresult cuMemcpyHtoD(CUdeviceptr_v1 dstDevice, const void* srcHost, unsigned ByteCount) {
  OUTBOARD_FIRST_VERSION;
  return ends::cuMemcpyHtoD_v2(dstDevice, srcHost, ByteCount);
}
CUresult cuMemcpyDtoH(void* dstHost, CUdeviceptr_v1 srcDevice, unsigned ByteCount) {
  OUTBOARD_FIRST_VERSION;
  return ends::cuMemcpyDtoH_v2(dstHost, srcDevice, ByteCount);
}
CUresult cuMemcpyDtoD(CUdeviceptr_v1 dstDevice, CUdeviceptr_v1 srcDevice, unsigned ByteCount) {
  OUTBOARD_FIRST_VERSION;
  return remote<api::opcode::cuMemcpyDtoD_v2>(CUdeviceptr{dstDevice}, CUdeviceptr{srcDevice},
                                              size_t{ByteCount});
}
CUresult cuMemcpyHtoDAsync(CUdeviceptr_v1 dstDevice, const void* srcHost, unsigned ByteCount,
                           CUstream hStream) {
  OUTBOARD_FIRST_VERSION;
  return ends::cuMemcpyHtoDAsync_v2(dstDevice, srcHost, ByteCount, hStream);
}
CUresult cuMemcpyDtoHAsync(void* dstHost, CUdeviceptr_v1 srcDevice, unsigned ByteCount, CUstream hStream) {
  OUTBOARD_FIRST_VERSION;
  return ends::cuMemcpyDtoHAsync_v2(dstHost, srcDevice, ByteCount, hStream);
}
CUresult cuMemcpyDtoDAsync(CUdeviceptr_v1 dstDevice, CUdeviceptr_v1 srcDevice, unsigned ByteCount,
                           CUstream hStream) {
  OUTBOARD_FIRST_VERSION;
  return remote<api::opcode::cuMemcpyDtoDAsync_v2>(CUdeviceptr{dstDevice}, CUdeviceptr{srcDevice},
                                                   size_t{ByteCount}, hStream);
}

CUresult cuMemcpyDtoA(CUarray dstArray, unsigned dstOffset, CUdeviceptr_v1 srcDevice, unsigned ByteCount) {
  OUTBOARD_FIRST_VERSION;
  return remote<api::opcode::cuMemcpyDtoA_v2>(dstArray, size_t{dstOffset}, CUdeviceptr{srcDevice},
                                              size_t{ByteCount});
}
CUresult cuMemcpyAtoD(CUdeviceptr_v1 dstDevice, CUarray srcArray, unsigned srcOffset, unsigned ByteCount) {
  OUTBOARD_FIRST_VERSION;
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
  OUTBOARD_FIRST_VERSION;
  return remote<api::opcode::cuMemsetD8_v2>(CUdeviceptr{dstDevice}, uc, size_t{N});
}
CUresult cuMemsetD16(CUdeviceptr_v1 dstDevice, unsigned short us, unsigned N) {
  OUTBOARD_FIRST_VERSION;
  return remote<api::opcode::cuMemsetD16_v2>(CUdeviceptr{dstDevice}, us, size_t{N});
}
CUresult cuMemsetD32(CUdeviceptr_v1 dstDevice, unsigned ui, unsigned N) {
  OUTBOARD_FIRST_VERSION;
  return remote<api::opcode::cuMemsetD32_v2>(CUdeviceptr{dstDevice}, ui, size_t{N});
}
CUresult cuMemsetD2D8(CUdeviceptr_v1 dstDevice, unsigned dstPitch, unsigned char uc, unsigned Width,
                      unsigned Height) {
  OUTBOARD_FIRST_VERSION;
  return remote<api::opcode::cuMemsetD2D8_v2>(CUdeviceptr{dstDevice}, size_t{dstPitch}, uc, size_t{Width},
                                              size_t{Height});
}
CUresult cuMemsetD2D16(CUdeviceptr_v1 dstDevice, unsigned dstPitch, unsigned short us, unsigned Width,
                       unsigned Height) {
  OUTBOARD_FIRST_VERSION;
  return remote<api::opcode::cuMemsetD2D16_v2>(CUdeviceptr{dstDevice}, size_t{dstPitch}, us, size_t{Width},
                                               size_t{Height});
}
CUresult cuMemsetD2D32(CUdeviceptr_v1 dstDevice, unsigned dstPitch, unsigned ui, unsigned Width,
                       unsigned Height) {
  OUTBOARD_FIRST_VERSION;
  return remote<api::opcode::cuMemsetD2D32_v2>(CUdeviceptr{dstDevice}, size_t{dstPitch}, ui, size_t{Width},
                                               size_t{Height});
}

}  // namespace ends
}  // namespace outboard::frontend::cuda
