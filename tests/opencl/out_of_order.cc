// Threads that share an out-of-order queue: chains of kernels and copies tied by events, held back by user
// events and reported by callbacks.
#include <atomic>
#include <thread>

#include "program.hh"

static const char* const source =
    "__kernel void affine(__global uint* v, uint a, uint b) { size_t i = get_global_id(0); v[i] = v[i] * a + "
    "b; }\n";

static std::atomic<int> told{0};

static void CL_CALLBACK count(cl_event, cl_int status, void* expected) {
  if (status == CL_COMPLETE) told.fetch_add(*static_cast<int*>(expected));
}

static void chain(const machine& m, cl_program program, cl_uint seed) {
  cl_kernel affine = m.kernel(program, "affine");  // arguments belong to a kernel object: one a thread
  const std::size_t n = 4096;
  std::vector<cl_uint> values(n, seed), wanted(n, seed);
  cl_mem a = m.buffer(values, CL_MEM_COPY_HOST_PTR | CL_MEM_READ_WRITE),
         b = m.buffer(values, CL_MEM_READ_WRITE);
  cl_int code = CL_SUCCESS;
  cl_event gate = clCreateUserEvent(m.context, &code);
  CHECK_CL(code);
  cl_event before = gate;
  CHECK_CL(clRetainEvent(gate));  // the chain lets one go, the end the other
  static int one = 1;
  for (cl_uint step = 1; step <= 8; ++step) {
    set_arguments(affine, a, step, seed);
    cl_event ran = nullptr, copied = nullptr;
    CHECK_CL(clEnqueueNDRangeKernel(m.queue, affine, 1, nullptr, &n, nullptr, 1, &before, &ran));
    CHECK_CL(clEnqueueCopyBuffer(m.queue, a, b, 0, 0, n * sizeof(cl_uint), 1, &ran, &copied));
    CHECK_CL(clReleaseEvent(before));
    if (step == 8) CHECK_CL(clSetEventCallback(ran, CL_COMPLETE, count, &one));
    CHECK_CL(clReleaseEvent(ran));
    before = copied;
    for (cl_uint& w : wanted) w = w * step + seed;
    if (step == 1) {
      cl_int status = 0;
      CHECK_CL(clGetEventInfo(copied, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr));
      REQUIRE(status > CL_COMPLETE);
    }
    if (step == 4) CHECK_CL(clSetUserEventStatus(gate, CL_COMPLETE));
  }
  CHECK_CL(
      clEnqueueReadBuffer(m.queue, b, CL_TRUE, 0, n * sizeof(cl_uint), values.data(), 1, &before, nullptr));
  REQUIRE(values == wanted);
  for (cl_event each : {before, gate}) CHECK_CL(clReleaseEvent(each));
  for (cl_mem each : {a, b}) CHECK_CL(clReleaseMemObject(each));
  CHECK_CL(clReleaseKernel(affine));
}

int main() {
  const machine m(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
  cl_program program = m.build(source);
  const int threads = 8;
  std::vector<std::thread> all;
  for (int i = 0; i < threads; ++i)
    all.emplace_back([&, i] { chain(m, program, static_cast<cl_uint>(i + 1)); });
  for (std::thread& each : all) each.join();
  CHECK_CL(clFinish(m.queue));
  for (int tries = 0; told.load() != threads && tries < 500; ++tries)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  REQUIRE(told.load() == threads);
  CHECK_CL(clReleaseProgram(program));
  std::printf("%d chains\n", threads);
}
