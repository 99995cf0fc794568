#include "execution.hh"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "cuda.hh"
#include "objects.hh"
#include "operands.hh"

namespace conformance {
namespace {

constexpr std::size_t in_bytes = 1u << 20, out_bytes = 4u << 20, scratch_bytes = 64u << 10;

void must(CUresult code, const char* what) {
  if (code == CUDA_SUCCESS) return;
  std::fprintf(stderr, "%s: %s\n", what, cuda().error_name(code).c_str());
  std::exit(1);
}

}  // namespace

device::device() {
  const driver& d = cuda();
  must(d.cuInit(0), "cuInit");
  must(d.cuDeviceGet(&device_, 0), "cuDeviceGet");
  must(d.cuDevicePrimaryCtxRetain(&context_, device_), "cuDevicePrimaryCtxRetain");
  must(d.cuCtxSetCurrent(context_), "cuCtxSetCurrent");
  must(d.cuMemAlloc(&in_, in_bytes), "cuMemAlloc");
  must(d.cuMemAlloc(&out_, out_bytes), "cuMemAlloc");
  must(d.cuMemAlloc(&scratch_, scratch_bytes), "cuMemAlloc");
}

std::string device::name() const {
  char text[256] = "";
  int version = 0;
  cuda().cuDeviceGetName(text, sizeof text, device_);
  cuda().cuDriverGetVersion(&version);
  return std::string(text) + ", driver API " + std::to_string(version / 1000) + "." +
         std::to_string(version % 1000 / 10);
}

run_result device::run(const kernel& k) {
  const std::string text = text_of(k);
  char log[4096] = "";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* option_values[] = {log, reinterpret_cast<void*>(sizeof log)};
  CUmodule module = nullptr;
  const CUresult loaded = cuda().cuModuleLoadDataEx(&module, text.c_str(), 2, options, option_values);
  if (loaded != CUDA_SUCCESS) {
    run_result r;
    r.refused = true;
    r.failure = "load: " + cuda().error_name(loaded) + " " + log;
    return r;
  }
  run_result r = launch(k, module);
  cuda().cuModuleUnload(module);
  return r;
}

run_result device::launch(const kernel& k, CUmodule module) {
  const driver& d = cuda();
  run_result r;
  const auto step = [&](CUresult code, const char* what) {
    if (code != CUDA_SUCCESS && r.failure.empty()) r.failure = std::string(what) + ": " + d.error_name(code);
    return r.failure.empty();
  };
  CUfunction function = nullptr;
  if (!step(d.cuModuleGetFunction(&function, module, "k"), "cuModuleGetFunction")) return r;
  const auto operands = operands_of(k);
  r.threads = operands.size() / operand_stride;
  r.rows.resize(r.threads * result_bytes * std::max<std::size_t>(k.out.size(), 1));
  r.scratch.resize(k.scratch);
  const auto blocks = static_cast<unsigned>(r.threads / k.threads);
  const image_object image(k.texture);
  if (!image.failure().empty()) {
    r.failure = image.failure();
    return r;
  }
  CUtexObject object = image.handle();
  auto parameter = parameter_bytes();
  void* arguments[] = {&out_, &in_, &scratch_, &object, parameter.data()};
  step(d.cuMemcpyHtoD(in_, operands.data(), operands.size()), "cuMemcpyHtoD") &&
      step(d.cuMemsetD8(out_, 0xcc, r.rows.size()), "cuMemsetD8") &&
      step(d.cuMemsetD8(scratch_, 0, scratch_bytes), "cuMemsetD8") &&
      step(k.cooperative
               ? d.cuLaunchCooperativeKernel(function, blocks, 1, 1, k.threads, 1, 1, 0, nullptr, arguments)
               : d.cuLaunchKernel(function, blocks, 1, 1, k.threads, 1, 1, 0, nullptr, arguments, nullptr),
           "cuLaunchKernel") &&
      step(d.cuCtxSynchronize(), "cuCtxSynchronize") &&
      step(d.cuMemcpyDtoH(r.rows.data(), out_, r.rows.size()), "cuMemcpyDtoH") &&
      (k.scratch == 0 || step(d.cuMemcpyDtoH(r.scratch.data(), scratch_, k.scratch), "cuMemcpyDtoH"));
  if (r.failure.empty() && k.texture.surface && !image.read(r.scratch))
    r.failure = "the surface cannot be read";
  return r;
}

}  // namespace conformance
