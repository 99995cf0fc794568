// Functions of extensions: they are found by name if the platform shows their extension, and they work.
#include <cstring>

#include "program.hh"

using set_content_size = cl_int(CL_API_CALL*)(cl_mem, cl_mem);

int main() {
  const machine m;
  const std::string shown = platform_text(m.platform, CL_PLATFORM_EXTENSIONS);
  std::printf("%s\n", shown.c_str());
  const auto find = [&](const char* name) {
    return clGetExtensionFunctionAddressForPlatform(m.platform, name);
  };
  const auto set = reinterpret_cast<set_content_size>(find("clSetContentSizeBufferPoCL"));
  const bool has = shown.find("cl_pocl_content_size") != std::string::npos;
  std::printf("cl_pocl_content_size: %s, %s\n", has ? "shown" : "not shown", set ? "there" : "not there");
  REQUIRE(find("clSetContentSizeBufferPoC") == nullptr && find("clNoSuchFunctionPOCL") == nullptr);
  if (!set) return 0;
  std::vector<int> values(1024, 3);
  std::vector<cl_ulong> sizes(1, 512);
  cl_mem buffer = m.buffer(values, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR);
  cl_mem size = m.buffer(sizes, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR);
  cl_mem copy = m.buffer(values, CL_MEM_READ_WRITE);
  std::printf("set: %d\n", set(buffer, size));
  std::printf("no buffer: %d\n", set(nullptr, size));
  std::printf("no size: %d\n", set(buffer, nullptr));
  // The buffer still works.
  CHECK_CL(clEnqueueCopyBuffer(m.queue, buffer, copy, 0, 0, 512, 0, nullptr, nullptr));
  std::vector<int> back(128);
  CHECK_CL(clEnqueueReadBuffer(m.queue, copy, CL_TRUE, 0, 512, back.data(), 0, nullptr, nullptr));
  for (const int value : back) REQUIRE(value == 3);
  for (cl_mem each : {copy, buffer, size}) CHECK_CL(clReleaseMemObject(each));
}
