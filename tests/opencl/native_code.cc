// On platforms for processors, kernels are native code. This program's kernels make system calls.
// usage:
//   native_code calls
//     Reads lines "NAME NUMBER ARGUMENT..." from stdin; a kernel makes each system call NUMBER. An argument
//     is a number, "TEXT" (its address), & (200 bytes of memory) or = (the previous call's result). Prints
//     "NAME RESULT TEXT" for each; TEXT is what is in the 200 bytes.
//   native_code stay
//     A kernel starts a process that does not end; prints its number.
//   native_code show [OPTIONS]
//     Builds the source on stdin; prints "built" or the build's log, and what its kernel `show` puts into 200
//     bytes.
#include <cstring>
#include <iostream>
#include <sstream>

#include "program.hh"

namespace {

const char* const source = R"(
long system_call(const __global long* a) {
  long result = a[0];
  __asm__ volatile("movq %4, %%r10\n\tmovq %5, %%r8\n\tmovq %6, %%r9\n\tsyscall"
                   : "+a"(result)
                   : "D"(a[1]), "S"(a[2]), "d"(a[3]), "r"(a[4]), "r"(a[5]), "r"(a[6])
                   : "rcx", "r8", "r9", "r10", "r11", "memory");
  return result;
}
__kernel void make_call(__global long* a, long places, __global char* memory) {
  for (int i = 1; i < 7; ++i) {
    if (places & 1 << i) a[i] += (long)memory;
  }
  a[0] = system_call(a);
}
__kernel void stay(__global long* clone, const __global long* sleep) {
  const long child = system_call(clone);
  while (child == 0) system_call(sleep);
  clone[0] = child;
}
)";

constexpr std::size_t room = 4096;
constexpr std::size_t scratch_size = 200;
constexpr std::size_t scratch = room - scratch_size;

class caller {
 public:
  caller()
      : program_(on_.build(source)),
        kernel_(on_.kernel(program_, "make_call")),
        numbers_(on_.buffer(zero_, CL_MEM_READ_WRITE)),
        memory_(on_.buffer(text_, CL_MEM_READ_WRITE)) {}

  void line(const std::string& line) {
    std::istringstream in(line);
    std::string name, word;
    in >> name;
    std::vector<long> values;
    long places = 0;
    std::size_t free = 0;
    std::fill(text_.begin(), text_.end(), '\0');
    while (in >> word) {
      const std::size_t i = values.size();
      if (word == "&") {
        places |= 1L << i;
        values.push_back(scratch);
      } else if (word == "=") {
        values.push_back(last_);
      } else if (word[0] == '"') {
        places |= 1L << i;
        values.push_back(static_cast<long>(free));
        word = word.substr(1, word.size() - 2);
        std::memcpy(&text_[free], word.c_str(), word.size() + 1);
        free += (word.size() + 8) / 8 * 8;
      } else {
        values.push_back(std::stol(word, nullptr, 0));
      }
    }
    values.resize(7);
    CHECK_CL(clEnqueueWriteBuffer(on_.queue, numbers_, CL_TRUE, 0, 56, values.data(), 0, nullptr, nullptr));
    CHECK_CL(clEnqueueWriteBuffer(on_.queue, memory_, CL_TRUE, 0, room, text_.data(), 0, nullptr, nullptr));
    set_arguments(kernel_, numbers_, places, memory_);
    const std::size_t one = 1;
    CHECK_CL(clEnqueueNDRangeKernel(on_.queue, kernel_, 1, nullptr, &one, &one, 0, nullptr, nullptr));
    CHECK_CL(clEnqueueReadBuffer(on_.queue, numbers_, CL_TRUE, 0, 8, &last_, 0, nullptr, nullptr));
    CHECK_CL(clEnqueueReadBuffer(on_.queue, memory_, CL_TRUE, 0, room, text_.data(), 0, nullptr, nullptr));
    std::cout << name << " " << last_ << " "
              << std::string(&text_[scratch], strnlen(&text_[scratch], scratch_size)) << "\n"
              << std::flush;
  }

  void stay() {
    constexpr long clone = 56, child_ended = 17, pause = 34;
    cl_kernel kernel = on_.kernel(program_, "stay");
    std::vector<long> how{clone, child_ended, 0, 0, 0, 0, 0}, sleep{pause, 0, 0, 0, 0, 0, 0};
    cl_mem a = on_.buffer(how, CL_MEM_COPY_HOST_PTR), b = on_.buffer(sleep, CL_MEM_COPY_HOST_PTR);
    set_arguments(kernel, a, b);
    const std::size_t one = 1;
    CHECK_CL(clEnqueueNDRangeKernel(on_.queue, kernel, 1, nullptr, &one, &one, 0, nullptr, nullptr));
    CHECK_CL(clEnqueueReadBuffer(on_.queue, a, CL_TRUE, 0, 8, &last_, 0, nullptr, nullptr));
    std::cout << "stays " << last_ << std::endl;
  }

 private:
  std::vector<long> zero_ = std::vector<long>(7);
  std::vector<char> text_ = std::vector<char>(room);
  machine on_;
  cl_program program_;
  cl_kernel kernel_;
  cl_mem numbers_, memory_;
  long last_ = 0;
};

void show(const char* options) {
  const std::string text((std::istreambuf_iterator<char>(std::cin)), {});
  const char* pointer = text.c_str();
  const machine on;
  cl_int code = CL_SUCCESS;
  cl_program program = clCreateProgramWithSource(on.context, 1, &pointer, nullptr, &code);
  CHECK_CL(code);
  code = clBuildProgram(program, 0, nullptr, options, nullptr, nullptr);
  std::string log(1 << 16, '\0');
  CHECK_CL(clGetProgramBuildInfo(program, on.device, CL_PROGRAM_BUILD_LOG, log.size(), log.data(), nullptr));
  std::cout << (code == CL_SUCCESS ? "built" : "not built") << "\n" << log.c_str() << "\n";
  if (code != CL_SUCCESS) return;
  std::vector<char> shown(scratch_size);
  cl_kernel kernel = on.kernel(program, "show");
  cl_mem memory = on.buffer(shown, CL_MEM_COPY_HOST_PTR);
  set_arguments(kernel, memory);
  const std::size_t one = 1;
  CHECK_CL(clEnqueueNDRangeKernel(on.queue, kernel, 1, nullptr, &one, &one, 0, nullptr, nullptr));
  CHECK_CL(
      clEnqueueReadBuffer(on.queue, memory, CL_TRUE, 0, shown.size(), shown.data(), 0, nullptr, nullptr));
  std::cout << std::string(shown.data(), strnlen(shown.data(), shown.size())) << "\n";
}

}  // namespace

int main(int count, char** words) {
  const std::string what = count > 1 ? words[1] : "";
  if (what == "show") return show(count > 2 ? words[2] : ""), 0;
  caller c;
  if (what == "stay") {
    c.stay();
    std::string end;
    std::getline(std::cin, end);
    return 0;
  }
  for (std::string line; std::getline(std::cin, line);) c.line(line);
}
