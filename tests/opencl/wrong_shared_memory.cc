// Wrong calls about shared virtual memory.
#include "codes.hh"

static const char* const source =
    "__kernel void twice(__global int* v) { size_t i = get_global_id(0); v[i] *= 2; }\n";

int main() {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const machine m;
  cl_program program = m.build(source);
  auto* const p = static_cast<char*>(clSVMAlloc(m.context, CL_MEM_READ_WRITE, 256, 0));
  REQUIRE(p != nullptr);
  char host[64] = {};
  cl_command_queue q = m.queue;
  std::printf("no memory: %d %d %d %d\n", clSVMAlloc(m.context, CL_MEM_READ_WRITE, 0, 0) != nullptr,
              clSVMAlloc(m.context, CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY, 64, 0) != nullptr,
              clSVMAlloc(m.context, CL_MEM_READ_WRITE, 64, 3) != nullptr,
              clSVMAlloc(m.context, CL_MEM_READ_WRITE, ~std::size_t{0}, 0) != nullptr);
  std::printf("more: %d %d\n", clSVMAlloc(nullptr, CL_MEM_READ_WRITE, 64, 0) != nullptr,
              clSVMAlloc(m.context, CL_MEM_READ_WRITE | CL_MEM_SVM_ATOMICS, 64, 0) != nullptr);
  CODE(clEnqueueSVMMap(nullptr, CL_TRUE, CL_MAP_READ, p, 64, 0, nullptr, nullptr));
  CODE(clEnqueueSVMMap(q, CL_TRUE, CL_MAP_READ, nullptr, 64, 0, nullptr, nullptr));
  CODE(clEnqueueSVMMap(q, CL_TRUE, CL_MAP_READ, p, 0, 0, nullptr, nullptr));
  CODE(clEnqueueSVMMap(q, CL_TRUE, CL_MAP_READ, p, 64, 1, nullptr, nullptr));
  CODE(clEnqueueSVMUnmap(q, nullptr, 0, nullptr, nullptr));
  CODE(clEnqueueSVMUnmap(nullptr, p, 0, nullptr, nullptr));
  CODE(clEnqueueSVMMemcpy(q, CL_TRUE, nullptr, p, 64, 0, nullptr, nullptr));
  CODE(clEnqueueSVMMemcpy(q, CL_TRUE, host, nullptr, 64, 0, nullptr, nullptr));
  CODE(clEnqueueSVMMemcpy(q, CL_TRUE, p, p + 16, 64, 0, nullptr, nullptr));
  CODE(clEnqueueSVMMemcpy(q, CL_TRUE, host, p, 0, 0, nullptr, nullptr));
  CODE(clEnqueueSVMMemFill(q, nullptr, host, 4, 64, 0, nullptr, nullptr));
  CODE(clEnqueueSVMMemFill(q, p, host, 3, 63, 0, nullptr, nullptr));
  CODE(clEnqueueSVMMemFill(q, p, host, 4, 63, 0, nullptr, nullptr));
  CODE(clEnqueueSVMMemFill(q, p + 2, host, 4, 64, 0, nullptr, nullptr));
  CODE(clEnqueueSVMMemFill(q, p, host, 4, 0, 0, nullptr, nullptr));
  void* pointers[] = {p};
  const void* const_pointers[] = {p};
  CODE(clEnqueueSVMFree(q, 0, pointers, nullptr, nullptr, 0, nullptr, nullptr));
  CODE(clEnqueueSVMFree(q, 1, nullptr, nullptr, nullptr, 0, nullptr, nullptr));
  CODE(clEnqueueSVMMigrateMem(q, 0, const_pointers, nullptr, 0, 0, nullptr, nullptr));
  CODE(clEnqueueSVMMigrateMem(q, 1, nullptr, nullptr, 0, 0, nullptr, nullptr));
  CODE(clEnqueueSVMMigrateMem(q, 1, const_pointers, nullptr, 1u << 9, 0, nullptr, nullptr));
  cl_kernel twice = m.kernel(program, "twice");
  CODE(clSetKernelArgSVMPointer(nullptr, 0, p));
  CODE(clSetKernelArgSVMPointer(twice, 9, p));
  CODE(clSetKernelArgSVMPointer(twice, 0, p));
  CODE(clSetKernelArgSVMPointer(twice, 0, p + 16));
  CODE(clSetKernelArgSVMPointer(twice, 0, nullptr));
  CODE(clSetKernelExecInfo(nullptr, CL_KERNEL_EXEC_INFO_SVM_PTRS, sizeof pointers, pointers));
  CHECK_CL(clReleaseKernel(twice));
  clSVMFree(m.context, nullptr);
  clSVMFree(m.context, p);
  CHECK_CL(clReleaseProgram(program));
}
