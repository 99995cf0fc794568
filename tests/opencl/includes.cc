// Programs that include files of their own machine: with -I, from the current folder, by full paths and by
// macros; headers that include headers, headers that change, and the compiler's messages about wrong or
// missing ones. usage: opencl_includes FOLDER (created anew; server and program need not share it)
//        opencl_includes TEXT OPTIONS (a single build)
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <fstream>
#include <sstream>
#include <thread>

#include "codes.hh"

static const char* const kernel_text = "\n__kernel void k(__global int* p) { *p = VALUE; }\n";

static void write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::trunc);
  file << text;
  file.close();
  REQUIRE(file.good());
}

static std::string build_text(const machine& m, cl_program program, cl_program_build_info what) {
  std::size_t size = 0;
  CHECK_CL(clGetProgramBuildInfo(program, m.device, what, 0, nullptr, &size));
  std::string text(size, '\0');
  CHECK_CL(clGetProgramBuildInfo(program, m.device, what, size, text.data(), nullptr));
  text.resize(std::strlen(text.c_str()));
  return text;
}

static cl_program from_text(const machine& m, const std::string& text) {
  const char* source = text.c_str();
  cl_int code = CL_SUCCESS;
  cl_program made = clCreateProgramWithSource(m.context, 1, &source, nullptr, &code);
  CHECK_CL(code);
  return made;
}

static int value_of(const machine& m, cl_program program) {
  cl_kernel k = m.kernel(program, "k");
  std::vector<cl_int> values{-1};
  cl_mem buffer = m.buffer(values, CL_MEM_COPY_HOST_PTR | CL_MEM_READ_WRITE);
  set_arguments(k, buffer);
  const std::size_t one = 1;
  cl_int code = CL_SUCCESS;
  cl_command_queue queue = clCreateCommandQueueWithProperties(m.context, m.device, nullptr, &code);
  CHECK_CL(code);
  CHECK_CL(clEnqueueNDRangeKernel(queue, k, 1, nullptr, &one, nullptr, 0, nullptr, nullptr));
  CHECK_CL(
      clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, sizeof(cl_int), values.data(), 0, nullptr, nullptr));
  CHECK_CL(clReleaseCommandQueue(queue));
  CHECK_CL(clReleaseMemObject(buffer));
  CHECK_CL(clReleaseKernel(k));
  return values[0];
}

/// Builds, and returns the result as one text.
static std::string built(const machine& m, const std::string& includes, const char* options) {
  const std::string text = includes + kernel_text;
  cl_program program = from_text(m, text);
  const cl_int code = clBuildProgram(program, 0, nullptr, options, nullptr, nullptr);
  std::string what = code == CL_SUCCESS ? "value " + std::to_string(value_of(m, program))
                                        : "code " + std::to_string(code) + ", log:\n" +
                                              build_text(m, program, CL_PROGRAM_BUILD_LOG);
  const std::string kept = build_text(m, program, CL_PROGRAM_BUILD_OPTIONS);
  if (kept != (options ? options : "")) what += ", and other options: " + kept;
  std::string source(text.size() + 1, '\0');
  CHECK_CL(clGetProgramInfo(program, CL_PROGRAM_SOURCE, source.size(), source.data(), nullptr));
  if (source.c_str() != text) what += ", and another source: " + source;
  CHECK_CL(clReleaseProgram(program));
  return what;
}

static void say(const machine& m, const char* title, const std::string& includes,
                const std::string& options) {
  std::printf("%s: %s\n", title, built(m, includes, options.empty() ? nullptr : options.c_str()).c_str());
}

static void make_files(const std::string& here) {
  for (const char* each : {"", "/inc", "/inc/deep", "/more", "/other", "/run", "/run/sub"})
    (void)!::mkdir((here + each).c_str(), 0755);
  (void)!::symlink("inc", (here + "/link").c_str());
  write_file(here + "/inc/one.h", "#define VALUE 1\n");
  write_file(here + "/inc/nested.h", "#include \"deep/in.h\"\n#define VALUE (IN + UP)\n");
  write_file(here + "/inc/deep/in.h", "#include \"../up.h\"\n#define IN 20\n");
  write_file(here + "/inc/up.h", "#ifndef UP\n#define UP 2\n#include <more.h>\n#endif\n");
  write_file(here + "/more/more.h", "#include \"up.h\"\n");
  write_file(here + "/run/common.h", "#define VALUE 33\n");
  write_file(here + "/run/sub/common.h", "#define VALUE 34\n");
  write_file(here + "/run/sub/near.h", "#include \"common.h\"\n");
  write_file(here + "/other/full.h", "#include \"" + here + "/inc/one.h\"\n");
  write_file(here + "/other/named.h", "#define WHERE \"" + here + "/inc/one.h\"\n#include WHERE\n");
  write_file(here + "/inc/wrong.h", "#define VALUE 1\n#error this header is wrong\n");
  write_file(here + "/other/twice.h", "#define VALUE 7\n");
  write_file(here + "/more/twice.h", "#define VALUE 8\n");
}

static void ordinary_ones(const machine& m, const std::string& here) {
  say(m, "-I", "#include \"one.h\"", "-I ../inc");
  say(m, "-I, joined", "#include <one.h>", "-I../inc -cl-std=CL1.2");
  say(m, "-I, a full path", "#include \"one.h\"", "-I" + here + "/inc -DUNUSED=" + here);
  say(m, "-I, a link", "#include \"one.h\"", "-I ../link");
  say(m, "-I, through a folder", "#include \"one.h\"", "-I sub/../../inc");
  say(m, "two of one name", "#include \"twice.h\"", "-I ../more -I ../other");
  say(m, "the second of two", "#include \"one.h\"", "-I ../more -I ../inc");
  say(m, "headers of headers", "#include \"nested.h\"", "-I../inc -I ../more");
  say(m, "the current folder", "#include \"common.h\"", "");
  say(m, "below the current folder", "#include \"sub/near.h\"", "");
  say(m, "above the current folder", "#include \"../inc/one.h\"", "");
  say(m, "a full path", "#include \"" + here + "/inc/one.h\"", "");
  say(m, "a full path in angles", "#include <" + here + "/inc/one.h>", "");
  say(m, "a full path in a header", "#include \"full.h\"", "-I../other");
  say(m, "in a comment", "/*\n#include \"nowhere.h\"\n*/\n# /* well */ inc\\\nlude \"one.h\"", "-I../inc");
  say(m, "not in this case", "#if 0\n#include \"nowhere.h\"\n#endif\n#include \"one.h\"", "-I../inc");
  say(m, "__has_include",
      "#if __has_include(\"one.h\") && !__has_include(\"two.h\")\n#define VALUE 5\n#endif", "-I../inc");
}

static void by_macros(const machine& m, const std::string& here) {
  const std::string strings = " -D XM2S(x)=#x -D M2S(x)=XM2S(x)";
  say(m, "-D of a folder", "#include M2S(INCLUDE_PATH/one.h)", "-D INCLUDE_PATH=" + here + "/inc" + strings);
  say(m, "-D, the second of two", "#include M2S(INCLUDE_PATH/one.h)\n#include M2S(INCLUDE_PATH/up.h)",
      "-D INCLUDE_PATH=" + here + "/inc -I " + here + "/more" + strings);
  say(m, "a macro in the text", "#define NAME \"one.h\"\n#include NAME", "-I ../inc");
  say(m, "a macro of two",
      "#ifdef OTHER\n#define NAME <nowhere.h>\n#else\n#define NAME <one.h>\n#endif\n#include NAME",
      "-I ../inc");
  say(m, "a full path in the text", "#define NAME \"" + here + "/inc/one.h\"\n#include NAME", "");
  say(m, "a full path in a header's macro", "#include \"named.h\"", "-I ../other");
}

static void wrong_ones(const machine& m, const std::string& here) {
  say(m, "missing", "#include \"nowhere.h\"", "-I ../inc");
  say(m, "missing, a full path", "#include \"" + here + "/nowhere.h\"", "");
  say(m, "-I of nothing", "#include \"one.h\"", "-I " + here + "/no_such_folder");
  say(m, "a header that is wrong", "#include \"wrong.h\"", "-I ../inc");
  say(m, "one that is wrong, a full path", "#include \"wrong.h\"", "-I " + here + "/inc");
  say(m, "one that is wrong, a full name", "#include \"" + here + "/inc/wrong.h\"", "");
  say(m, "one that is wrong, here", "#include \"../inc/wrong.h\"", "");
}

static void changing_ones(const machine& m, const std::string& here) {
  for (int value : {41, 42, 41}) {
    write_file(here + "/inc/changing.h", "#define VALUE " + std::to_string(value) + "\n");
    say(m, "changing", "#include \"changing.h\"", "-I ../inc");
  }
  REQUIRE(::unlink((here + "/inc/changing.h").c_str()) == 0);
  say(m, "gone", "#include \"changing.h\"", "-I ../inc");
  for (std::size_t size : {3u << 20, 9u << 20}) {
    write_file(here + "/inc/large.h", "/*" + std::string(size, '*') + "*/\n#define VALUE 9\n");
    say(m, "large", "#include \"large.h\"", "-I ../inc");
  }
  REQUIRE(::chdir("sub") == 0);
  say(m, "another current folder", "#include \"common.h\"", "");
  REQUIRE(::chdir("..") == 0);
  say(m, "the first one again", "#include \"common.h\"", "");
}

/// Headers that the program passes in addition to those of its machine.
static void in_parts(const machine& m) {
  cl_program given = from_text(m, "#include \"deep/in.h\"\n#define GIVEN (IN + UP)\n");
  cl_program part =
      from_text(m, std::string("#include \"given.h\"\n#include \"one.h\"\n#define VALUE_ VALUE\n") +
                       "__kernel void k(__global int* p) { *p = GIVEN + VALUE; }\n");
  const char* name = "given.h";
  CHECK_CL(clCompileProgram(part, 0, nullptr, "-I ../inc -I ../more", 1, &given, &name, nullptr, nullptr));
  cl_int code = CL_SUCCESS;
  cl_program linked = clLinkProgram(m.context, 0, nullptr, nullptr, 1, &part, nullptr, nullptr, &code);
  CHECK_CL(code);
  std::printf("in parts: value %d\n", value_of(m, linked));
  for (cl_program each : {given, part, linked}) CHECK_CL(clReleaseProgram(each));
}

static std::atomic<int> told{0};
static void CL_CALLBACK tell(cl_program, void*) { ++told; }

/// The header exists while clBuildProgram is called, but not afterwards.
static void in_the_background(const machine& m, const std::string& here) {
  write_file(here + "/inc/short_lived.h", "#define VALUE 55\n");
  cl_program program = from_text(m, std::string("#include \"short_lived.h\"") + kernel_text);
  CHECK_CL(clBuildProgram(program, 0, nullptr, "-I ../inc", tell, nullptr));
  REQUIRE(::unlink((here + "/inc/short_lived.h").c_str()) == 0);
  for (int tries = 0; told.load() == 0 && tries < 6000; ++tries)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  std::printf("in the background: value %d\n", value_of(m, program));
  CHECK_CL(clReleaseProgram(program));
}

static void by_threads(const machine& m, const std::string& here) {
  constexpr int count = 8;
  std::vector<std::string> results(count);
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) {
    const std::string folder = here + "/thread" + std::to_string(i);
    (void)!::mkdir(folder.c_str(), 0755);
    write_file(folder + "/own.h",
               "#include \"one.h\"\n#undef VALUE\n#define VALUE " + std::to_string(100 + i) + "\n");
    threads.emplace_back([&m, &results, i, options = "-I ../inc -I " + folder] {
      for (int times = 0; times < 3; ++times)
        results[i] +=
            " " + built(m, "#include \"own.h\"\n#define T" + std::to_string(times), options.c_str());
    });
  }
  for (std::thread& each : threads) each.join();
  for (const std::string& each : results) std::printf("by threads:%s\n", each.c_str());
}

int main(int count, char** arguments) {
  REQUIRE(count == 2 || count == 3);
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  if (count == 3) {
    const machine m;
    say(m, "built", arguments[1], arguments[2]);
    return 0;
  }
  const std::string here = arguments[1];
  make_files(here);
  REQUIRE(::chdir((here + "/run").c_str()) == 0);
  const machine m;
  ordinary_ones(m, here);
  by_macros(m, here);
  wrong_ones(m, here);
  changing_ones(m, here);
  in_parts(m);
  in_the_background(m, here);
  by_threads(m, here);
}
