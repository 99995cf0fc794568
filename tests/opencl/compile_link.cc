// Programs in parts: compiled with a header, linked into an executable and into a library, built in the
// background, and which queries each of them answers when.
#include <atomic>
#include <chrono>
#include <thread>

#include "codes.hh"

static const char* const header_text = "#define STEP 3\nint twice(int v);\n";
static const char* const part_text =
    "#include \"parts/twice.h\"\nint twice(int v) { return 2 * v + STEP; }\n";
static const char* const main_text =
    "#include \"parts/twice.h\"\n"
    "__kernel void apply(__global int* v) { size_t i = get_global_id(0); v[i] = twice(v[i]); }\n";

static cl_program from_text(const machine& m, const char* text) {
  cl_int code = CL_SUCCESS;
  cl_program made = clCreateProgramWithSource(m.context, 1, &text, nullptr, &code);
  CHECK_CL(code);
  return made;
}

static void say_build(const machine& m, const char* what, cl_program program) {
  cl_build_status status = 12345;
  CHECK_CL(
      clGetProgramBuildInfo(program, m.device, CL_PROGRAM_BUILD_STATUS, sizeof status, &status, nullptr));
  cl_program_binary_type type = 12345;
  CHECK_CL(clGetProgramBuildInfo(program, m.device, CL_PROGRAM_BINARY_TYPE, sizeof type, &type, nullptr));
  std::printf("%s: status %d, type %u\n", what, status, type);
}

struct told {
  cl_program program = nullptr;
  std::atomic<int> times{0};
  std::atomic<bool> returned{false};
};

static void CL_CALLBACK tell(cl_program program, void* data) {
  auto* const t = static_cast<told*>(data);
  t->program = program;
  ++t->times;
}

static void wait_for(told& t) {
  for (int tries = 0; t.times.load() == 0 && tries < 6000; ++tries)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  REQUIRE(t.times.load() == 1);
}

static void run(const machine& m, cl_program program, const char* what) {
  cl_kernel apply = m.kernel(program, "apply");
  std::vector<cl_int> values{1, 2, 3, 4};
  cl_mem buffer = m.buffer(values, CL_MEM_COPY_HOST_PTR | CL_MEM_READ_WRITE);
  set_arguments(apply, buffer);
  const std::size_t n = values.size();
  CHECK_CL(clEnqueueNDRangeKernel(m.queue, apply, 1, nullptr, &n, nullptr, 0, nullptr, nullptr));
  CHECK_CL(clEnqueueReadBuffer(m.queue, buffer, CL_TRUE, 0, n * sizeof(cl_int), values.data(), 0, nullptr,
                               nullptr));
  std::printf("%s: %d %d %d %d\n", what, values[0], values[1], values[2], values[3]);
  CHECK_CL(clReleaseMemObject(buffer));
  CHECK_CL(clReleaseKernel(apply));
}

/// Loads the program's binary again: what is known of it before it is built, and that it runs afterwards.
static void load_again(const machine& m, cl_program program, const char* what, bool runs) {
  std::size_t size = 0;
  CHECK_CL(clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof size, &size, nullptr));
  std::vector<unsigned char> code(size);
  unsigned char* place = code.data();
  CHECK_CL(clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof place, &place, nullptr));
  cl_int status = 12345, made = 12345;
  const unsigned char* from = place;
  cl_program loaded = clCreateProgramWithBinary(m.context, 1, &m.device, &size, &from, &status, &made);
  CHECK_CL(made);
  CHECK_CL(status);
  say_build(m, what, loaded);
  if (runs) {
    CHECK_CL(clBuildProgram(loaded, 1, &m.device, nullptr, nullptr, nullptr));
    run(m, loaded, what);
  }
  CHECK_CL(clReleaseProgram(loaded));
}

/// Compilers differ in what they report about arguments of kernels without any.
static void build_without_arguments(const machine& m) {
  cl_program program = from_text(m, "__kernel void idle() {}\n");
  CHECK_CL(clBuildProgram(program, 0, nullptr, nullptr, nullptr, nullptr));
  cl_kernel idle = m.kernel(program, "idle");
  const std::size_t n = 1;
  CHECK_CL(clEnqueueNDRangeKernel(m.queue, idle, 1, nullptr, &n, nullptr, 0, nullptr, nullptr));
  CHECK_CL(clFinish(m.queue));
  CHECK_CL(clReleaseKernel(idle));
  CHECK_CL(clReleaseProgram(program));
}

int main() {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const machine m;
  cl_program header = from_text(m, header_text), part = from_text(m, part_text),
             main_part = from_text(m, main_text);
  const char* name = "parts/twice.h";
  say_build(m, "before", part);
  CHECK_CL(clCompileProgram(part, 0, nullptr, nullptr, 1, &header, &name, nullptr, nullptr));
  say_build(m, "compiled", part);
  told compiled;
  CHECK_CL(clCompileProgram(main_part, 1, &m.device, "-DUNUSED=1", 1, &header, &name, tell, &compiled));
  wait_for(compiled);
  REQUIRE(compiled.program == main_part);
  say_build(m, "compiled meanwhile", main_part);
  cl_program parts[] = {part, main_part};
  cl_int code = 12345;
  cl_program linked = clLinkProgram(m.context, 0, nullptr, nullptr, 2, parts, nullptr, nullptr, &code);
  CHECK_CL(code);
  say_build(m, "linked", linked);
  run(m, linked, "linked");
  cl_program library =
      clLinkProgram(m.context, 0, nullptr, "-create-library", 1, &part, nullptr, nullptr, &code);
  CHECK_CL(code);
  say_build(m, "library", library);
  cl_program with_library[] = {main_part, library};
  told later;
  cl_program second = clLinkProgram(m.context, 1, &m.device, nullptr, 2, with_library, tell, &later, &code);
  CHECK_CL(code);
  wait_for(later);
  REQUIRE(later.program == second);
  say_build(m, "linked meanwhile", second);
  run(m, second, "with a library");
  MAKES(clLinkProgram(m.context, 0, nullptr, nullptr, 1, &main_part, nullptr, nullptr, &code));

  load_again(m, linked, "an executable loaded", true);
  load_again(m, library, "a library loaded", false);
  build_without_arguments(m);

  // A build in the background, a second one, and a failing one.
  told built;
  cl_program text = from_text(
      m, "__kernel void apply(__global int* v) { size_t i = get_global_id(0); v[i] = v[i] * v[i]; }\n");
  CHECK_CL(clBuildProgram(text, 0, nullptr, nullptr, tell, &built));
  wait_for(built);
  REQUIRE(built.program == text);
  run(m, text, "built meanwhile");
  told failed;
  cl_program broken = from_text(m, "__kernel void apply( {");
  // It depends on the platform whether the build has failed by now.
  (void)clBuildProgram(broken, 0, nullptr, nullptr, tell, &failed);
  wait_for(failed);
  say_build(m, "broken", broken);
  for (cl_program each : {header, part, main_part, linked, library, second, text, broken})
    CHECK_CL(clReleaseProgram(each));
}
