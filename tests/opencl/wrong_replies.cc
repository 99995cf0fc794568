// Makes one call whose reply a server damages (wrong_replies_test.py), and shows what the program sees then.
// usage: opencl_wrong_replies FUNCTION. Prints "ready", waits for a line, and prints the codes of the
// function and of the calls after it.
#include <cstring>
#include <functional>
#include <map>

#include "program.hh"

namespace {

const char* const source = "__kernel void twice(__global int* v) { v[get_global_id(0)] *= 2; }\n";

struct objects {
  const machine m{CL_QUEUE_PROFILING_ENABLE};
  std::vector<int> values = std::vector<int>(1024, 1);
  cl_mem buffer = m.buffer(values, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR);
  cl_program program = m.build(source);
  cl_kernel kernel = m.kernel(program, "twice");
  cl_program compiled = nullptr;
  cl_event event = nullptr, unfinished = nullptr;
  std::vector<unsigned char> binary;

  objects() {
    set_arguments(kernel, buffer);
    const std::size_t n = values.size();
    CHECK_CL(clEnqueueNDRangeKernel(m.queue, kernel, 1, nullptr, &n, nullptr, 0, nullptr, &event));
    CHECK_CL(clFinish(m.queue));
    std::size_t size = 0;
    CHECK_CL(clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof size, &size, nullptr));
    binary.resize(size);
    unsigned char* place = binary.data();
    CHECK_CL(clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof place, &place, nullptr));
    cl_int code = CL_SUCCESS;
    const char* text = source;
    compiled = clCreateProgramWithSource(m.context, 1, &text, nullptr, &code);
    CHECK_CL(code);
    CHECK_CL(clCompileProgram(compiled, 0, nullptr, nullptr, 0, nullptr, nullptr, nullptr, nullptr));
    CHECK_CL(clEnqueueMarkerWithWaitList(m.queue, 0, nullptr, &unfinished));
  }
};

/// Each makes one call and returns its code.
using step = std::function<cl_int(objects&)>;

cl_int image(objects& o) {
  const cl_image_format format{CL_RGBA, CL_FLOAT};
  cl_image_desc shape{};
  shape.image_type = CL_MEM_OBJECT_IMAGE2D, shape.image_width = 4, shape.image_height = 4;
  cl_int code = CL_SUCCESS;
  clCreateImage(o.m.context, CL_MEM_READ_WRITE, &format, &shape, nullptr, &code);
  return code;
}

cl_int formats(objects& o) {
  cl_uint count = 0;
  return clGetSupportedImageFormats(o.m.context, CL_MEM_READ_WRITE, CL_MEM_OBJECT_IMAGE2D, 0, nullptr,
                                    &count);
}

cl_int divide(objects& o) {
  const cl_device_partition_property how[] = {CL_DEVICE_PARTITION_EQUALLY, 1, 0};
  cl_uint count = 0;
  return clCreateSubDevices(o.m.device, how, 0, nullptr, &count);
}

cl_int from_binary(objects& o) {
  const unsigned char* bytes = o.binary.data();
  const std::size_t size = o.binary.size();
  cl_int code = CL_SUCCESS;
  clCreateProgramWithBinary(o.m.context, 1, &o.m.device, &size, &bytes, nullptr, &code);
  return code;
}

cl_int link(objects& o) {
  cl_int code = CL_SUCCESS;
  clLinkProgram(o.m.context, 0, nullptr, nullptr, 1, &o.compiled, nullptr, nullptr, &code);
  return code;
}

cl_int binaries(objects& o) {
  std::size_t size = 0;
  return clGetProgramInfo(o.program, CL_PROGRAM_BINARY_SIZES, sizeof size, &size, nullptr);
}

cl_int status(objects& o) {
  cl_int answer = 0;
  return clGetEventInfo(o.unfinished, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof answer, &answer, nullptr);
}

cl_int times(objects& o) {
  cl_ulong begun = 0;
  return clGetEventProfilingInfo(o.event, CL_PROFILING_COMMAND_START, sizeof begun, &begun, nullptr);
}

cl_int timer(objects& o) {
  cl_ulong now = 0;
  return clGetHostTimer(o.m.device, &now);
}

cl_int read(objects& o) {
  return clEnqueueReadBuffer(o.m.queue, o.buffer, CL_TRUE, 0, o.values.size() * sizeof(int), o.values.data(),
                             0, nullptr, nullptr);
}

cl_int shared(objects& o) {
  return clSVMAlloc(o.m.context, CL_MEM_READ_WRITE, 4096, 0) ? CL_SUCCESS : CL_DEVICE_NOT_AVAILABLE;
}

const std::map<std::string, step> steps{
    {"clBuildProgram",
     [](objects& o) {
       clReleaseKernel(o.kernel);
       return clBuildProgram(o.program, 0, nullptr, nullptr, nullptr, nullptr);
     }},
    {"clCreateImageWithProperties", image},
    {"clCreateProgramWithBinary", from_binary},
    {"clCreateSubDevices", divide},
    {"clEnqueueReadBuffer", read},
    {"clFinish", [](objects& o) { return clFinish(o.m.queue); }},
    {"clGetEventInfo", status},
    {"clGetEventProfilingInfo", times},
    {"clGetProgramInfo", binaries},
    {"clGetSupportedImageFormats", formats},
    {"clLinkProgram", link},
    {"clSVMAlloc", shared},
};

}  // namespace

int main(int count, char** arguments) {
  const auto found = steps.find(count == 2 ? arguments[1] : "");
  REQUIRE(found != steps.end());
  auto* const o = new objects;  // never deleted: its objects cannot be released in order any more
  std::printf("ready\n");
  std::fflush(stdout);
  REQUIRE(std::getchar() == '\n');
  std::printf("%d", found->second(*o));
  // Later calls, which would otherwise wait, send or create something.
  cl_int code = CL_SUCCESS;
  clCreateBuffer(o->m.context, CL_MEM_READ_WRITE, 64, nullptr, &code);
  std::printf(" %d %d %d\n", clFinish(o->m.queue), timer(*o), code);
}
