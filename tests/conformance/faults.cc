#include "faults.hh"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <vector>

#include "cuda.hh"
#include "record.hh"

namespace conformance {
namespace {

struct fault {
  const char* name;
  const char* body;  ///< w0 holds the address of 64 KiB of device memory; w1-7, r0-7, h0, p are free
  const char* globals = "";
  unsigned threads = 32, shared = 0, blocks = 1;
};

const char* const assert_globals =
    ".extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e);\n"
    ".global .align 1 .b8 what[4] = {119, 104, 121, 0};\n";
const char* const shared_globals = ".shared .align 16 .b8 buffer[1024];\n";
const char* const recursion_globals =
    ".func (.param .b32 z) deep(.param .b32 n);\n.func (.param .b32 z) deep(.param .b32 n)\n{\n"
    ".local .align 8 .b8 frame[512];\n.reg .b32 r<4>;\n.reg .b64 w<3>;\n.reg .pred p;\nld.param.b32 r0, "
    "[n];\nmov.u64 w0, frame;\n"
    "and.b32 r1, r0, 511;\ncvt.u64.u32 w1, r1;\nadd.u64 w0, w0, w1;\nst.local.b8 [w0], r0;\nsetp.eq.u32 p, "
    "r0, 0;\n"
    "mov.b32 r2, 0;\n@p bra end;\nsub.u32 r1, r0, 1;\n{\n.param .b32 x;\n.param .b32 y;\nst.param.b32 [x], "
    "r1;\n"
    "call.uni (y), deep, (x);\nld.param.b32 r2, [y];\n}\nld.local.b8 r3, [w0];\nadd.u32 r2, r2, r3;\nend:\n"
    "st.param.b32 [z], r2;\nret;\n}\n";

const fault faults[] = {
    {"none", "st.global.b32 [w0], r0;\n"},
    {"store_to_null", "mov.u64 w1, 0;\nst.global.b32 [w1], r0;\n"},
    {"load_near_null", "mov.u64 w1, 64;\nld.global.b32 r1, [w1];\nst.global.b32 [w0], r1;\n"},
    {"store_far_away", "mov.u64 w1, 0x700000000000;\nadd.u64 w1, w0, w1;\nst.global.b32 [w1], r0;\n"},
    {"load_far_away",
     "mov.u64 w1, 0x60000000000;\nadd.u64 w1, w0, w1;\nld.global.b32 r1, [w1];\nst.global.b32 [w0], r1;\n"},
    {"load_beyond_47_bits",
     "mov.u64 w1, 0x8000000000000000;\nadd.u64 w1, w0, w1;\nld.global.b32 r1, [w1];\nst.global.b32 [w0], "
     "r1;\n"},
    {"generic_store_far_away", "mov.u64 w1, 0x700000000000;\nadd.u64 w1, w0, w1;\nst.b32 [w1], r0;\n"},
    {"atomic_far_away",
     "mov.u64 w1, 0x700000000000;\nadd.u64 w1, w0, w1;\natom.global.add.u32 r1, [w1], 1;\nst.global.b32 "
     "[w0], r1;\n"},
    {"reduction_far_away", "mov.u64 w1, 0x700000000000;\nadd.u64 w1, w0, w1;\nred.global.add.u32 [w1], 1;\n"},
    {"one_lane_far_away",
     "mov.u32 r1, %laneid;\nsetp.eq.u32 p, r1, 17;\nmov.u64 w1, 0x700000000000;\nselp.b64 w1, w1, 0, "
     "p;\nadd.u64 w1, w0, w1;\nst.global.b32 [w1], r0;\n"},
    {"masked_lane_far_away",
     "mov.u32 r1, %laneid;\nsetp.eq.u32 p, r1, 33;\nmov.u64 w1, 0x700000000000;\nadd.u64 w1, w0, w1;\n@p "
     "st.global.b32 [w1], r0;\n"},
    {"misaligned_load_b16", "ld.global.b16 h0, [w0+1];\nst.global.b16 [w0], h0;\n"},
    {"misaligned_load_b32", "ld.global.b32 r1, [w0+2];\nst.global.b32 [w0], r1;\n"},
    {"misaligned_load_b64", "ld.global.b64 w1, [w0+4];\nst.global.b64 [w0], w1;\n"},
    {"misaligned_load_v2_b32",
     "ld.global.v2.b32 {r1, r2}, [w0+4];\nadd.u32 r1, r1, r2;\nst.global.b32 [w0], r1;\n"},
    {"misaligned_load_v4_b32",
     "ld.global.v4.b32 {r1, r2, r3, r4}, [w0+8];\nadd.u32 r1, r1, r2;\nadd.u32 r1, r1, r3;\nadd.u32 r1, r1, "
     "r4;\nst.global.b32 [w0], r1;\n"},
    {"misaligned_store_b32", "st.global.b32 [w0+1], r0;\n"},
    {"misaligned_store_b64", "st.global.b64 [w0+4], w0;\n"},
    {"misaligned_generic_store", "st.b32 [w0+3], r0;\n"},
    {"misaligned_atomic", "atom.global.add.u32 r1, [w0+2], 1;\nst.global.b32 [w0], r1;\n"},
    {"misaligned_atomic_b64", "atom.global.add.u64 w1, [w0+4], 1;\nst.global.b64 [w0], w1;\n"},
    {"misaligned_shared_load",
     "mov.u32 r1, buffer;\nadd.u32 r1, r1, 2;\nld.shared.b32 r2, [r1];\nst.global.b32 [w0], r2;\n",
     shared_globals},
    {"misaligned_shared_store", "mov.u32 r1, buffer;\nadd.u32 r1, r1, 1;\nst.shared.b32 [r1], r0;\n",
     shared_globals},
    {"misaligned_and_wild", "mov.u64 w1, 0x700000000001;\nadd.u64 w1, w0, w1;\nst.global.b32 [w1], r0;\n"},
    {"shared_store_beyond_window",
     "mov.u32 r1, buffer;\nmov.u32 r3, %ntid.x;\nshl.b32 r3, r3, 19;\nadd.u32 r1, r1, r3;\nst.shared.b32 "
     "[r1], r0;\n",
     shared_globals},
    {"shared_load_beyond_window",
     "mov.u32 r1, buffer;\nmov.u32 r3, %ntid.x;\nshl.b32 r3, r3, 19;\nadd.u32 r1, r1, r3;\nld.shared.b32 r2, "
     "[r1];\nst.global.b32 [w0], r2;\n",
     shared_globals},
    {"shared_atomic_beyond_window",
     "mov.u32 r1, buffer;\nmov.u32 r3, %ntid.x;\nshl.b32 r3, r3, 19;\nadd.u32 r1, r1, "
     "r3;\natom.shared.add.u32 r2, [r1], 1;\nst.global.b32 [w0], "
     "r2;\n",
     shared_globals},
    {"trap", "trap;\n"},
    {"trap_in_one_lane", "mov.u32 r1, %laneid;\nsetp.eq.u32 p, r1, 3;\n@p trap;\nst.global.b32 [w0], r0;\n"},
    {"assertion",
     "mov.u64 w1, what;\ncvta.global.u64 w1, w1;\n{\n.param .b64 a;\n.param .b64 b;\n.param .b32 c;\n.param "
     ".b64 d;\n.param .b64 e;\nst.param.b64 [a], w1;\nst.param.b64 [b], w1;\nst.param.b32 [c], "
     "7;\nst.param.b64 [d], w1;\nst.param.b64 [e], 1;\ncall.uni __assertfail, (a, b, c, d, e);\n}\n",
     assert_globals, 1},
    {"stack_overflow",
     "mov.u32 r1, 0x100000;\n{\n.param .b32 x;\n.param .b32 y;\nst.param.b32 [x], r1;\ncall.uni (y), deep, "
     "(x);\nld.param.b32 r2, [y];\n}\nst.global.b32 [w0], r2;\n",
     recursion_globals},
    {"too_many_threads", "st.global.b32 [w0], r0;\n", "", 2048},
    {"no_threads", "st.global.b32 [w0], r0;\n", "", 0},
    {"no_blocks", "st.global.b32 [w0], r0;\n", "", 32, 0, 0},
    {"too_much_shared_memory", "st.global.b32 [w0], r0;\n", "", 32, 1u << 20},
    {"more_shared_than_default", "st.global.b32 [w0], r0;\n", "", 32, 60u << 10},
    {"more_threads_than_promised", "st.global.b32 [w0], r0;\n", "// .maxntid 64, 1, 1\n", 128},
};

struct bad_text {
  const char* name;
  const char* text;
};
const bad_text bad_texts[] = {
    {"text_empty", ""},
    {"text_no_ptx", "this is no PTX"},
    {"text_future_version", ".version 99.0\n.target sm_75\n.address_size 64\n.visible .entry k() { ret; }\n"},
    {"text_unknown_instruction",
     ".version 8.0\n.target sm_75\n.address_size 64\n.visible .entry k() { frobnicate.b32 %r1; ret; }\n"},
    {"text_undeclared_register",
     ".version 8.0\n.target sm_75\n.address_size 64\n.visible .entry k() { mov.b32 %r1, 0; ret; }\n"},
    {"text_unresolved_function",
     ".version 8.0\n.target sm_75\n.address_size 64\n.extern .func nobody();\n.visible .entry k() { call "
     "nobody; ret; }\n"},
    {"text_unresolved_variable",
     ".version 8.0\n.target sm_75\n.address_size 64\n.extern .global .b32 nothing;\n.visible .entry k() { "
     ".reg .b32 r; .reg .b64 w; ld.global.b32 r, [nothing]; mov.b64 w, 64; st.global.b32 [w], r; ret; }\n"},
    {"text_wrong_type",
     ".version 8.0\n.target sm_75\n.address_size 64\n.visible .entry k() { .reg .b64 w; .reg .b32 r; add.s32 "
     "w, r, r; ret; }\n"},
    {"text_missing_semicolon",
     ".version 8.0\n.target sm_75\n.address_size 64\n.visible .entry k() { ret }\n"},
    {"text_missing_label",
     ".version 8.0\n.target sm_75\n.address_size 64\n.visible .entry k() { bra nowhere; ret; }\n"},
    {"text_no_kernel", ".version 8.0\n.target sm_75\n.address_size 64\n"},
};

/// A known difference and its reason: it counts neither as equal nor as failed.
struct known_difference {
  const char *name, *why;
};
const known_difference known_differences[] = {
    {"shared_store_beyond_window", "here it is an illegal address, which says more"},
    {"shared_load_beyond_window", "here it is an illegal address, which says more"},
    {"shared_atomic_beyond_window", "here it is an illegal address, which says more"},
    {"text_unresolved_variable", "here it is refused when it is loaded, by name"},
    {"text_wrong_type", "registers of another width are taken: assemblers check them before"},
};

std::string text_of_fault(const fault& f) {
  std::string limits;
  if (std::strncmp(f.globals, "// ", 3) == 0) limits = f.globals + 3;
  return ".version 8.0\n.target sm_75\n.address_size 64\n" + std::string(f.globals) +
         ".visible .entry k(.param .u64 p0)\n" + limits +
         "{\n.reg .b64 w<8>;\n.reg .b32 r<8>;\n.reg .b16 h0;\n.reg .pred p;\nld.param.u64 w0, [p0];\nmov.b32 "
         "r0, 5;\n" +
         f.body + "ret;\n}\n";
}

CUcontext open_device() {
  const driver& d = cuda();
  CUdevice device = 0;
  CUcontext context = nullptr;
  if (d.cuInit(0) || d.cuDeviceGet(&device, 0) || d.cuDevicePrimaryCtxRetain(&context, device) ||
      d.cuCtxSetCurrent(context)) {
    std::printf("no device\n");
    std::exit(77);
  }
  return context;
}

int run_kernel(const fault& f) {
  const driver& d = cuda();
  open_device();
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  CUdeviceptr memory = 0;
  const CUresult loaded = d.cuModuleLoadDataEx(&module, text_of_fault(f).c_str(), 0, nullptr, nullptr);
  if (loaded != CUDA_SUCCESS || d.cuModuleGetFunction(&function, module, "k") ||
      d.cuMemAlloc(&memory, 65536)) {
    std::printf("does not load: %s\n", d.error_name(loaded).c_str());
    return 0;
  }
  void* arguments[] = {&memory};
  const CUresult launch =
      d.cuLaunchKernel(function, f.blocks, 1, 1, f.threads, 1, 1, f.shared, nullptr, arguments, nullptr);
  const CUresult synchronised = d.cuCtxSynchronize();
  int word = 0;
  const CUresult copied = d.cuMemcpyDtoH(&word, memory, 4);
  CUdeviceptr more = 0;
  const CUresult allocated = d.cuMemAlloc(&more, 4096);
  std::printf("launch %s, synchronise %s, copy %s, allocate %s\n", d.error_name(launch).c_str(),
              d.error_name(synchronised).c_str(), d.error_name(copied).c_str(),
              d.error_name(allocated).c_str());
  return 0;
}

int run_text(const bad_text& t) {
  const driver& d = cuda();
  open_device();
  char log[2048] = "";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* option_values[] = {log, reinterpret_cast<void*>(sizeof log)};
  CUmodule module = nullptr;
  const CUresult loaded = d.cuModuleLoadDataEx(&module, t.text, 2, options, option_values);
  std::printf("load %s\n", d.error_name(loaded).c_str());
  return 0;
}

/// Runs one fault in a process of its own and returns what it prints.
std::string outcome_of(const std::string& name) {
  char self[4096];
  const ssize_t size = readlink("/proc/self/exe", self, sizeof self - 1);
  if (size <= 0) return "cannot start";
  const std::string command = "timeout 60 '" + std::string(self, static_cast<std::size_t>(size)) +
                              "' --fault " + name + " 2>/dev/null";
  FILE* pipe = popen(command.c_str(), "r");
  if (!pipe) return "cannot start";
  std::string text;
  char bytes[1024];
  while (std::fgets(bytes, sizeof bytes, pipe))
    text = bytes;  // keeps the last line, because an assertion prints before it
  const int status = pclose(pipe);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) std::exit(77);
  if (!text.empty() && text.back() == '\n') text.pop_back();
  if (status != 0) text += " (ended with status " + std::to_string(status) + ")";
  return text;
}

}  // namespace

int run_fault(const std::string& name) {
  for (const fault& f : faults) {
    if (name == f.name) return run_kernel(f);
  }
  for (const bad_text& t : bad_texts) {
    if (name == t.name) return run_text(t);
  }
  return 2;
}

int run_faults(const std::string& record_path, const std::string& compare) {
  std::vector<std::string> names;
  for (const fault& f : faults) names.push_back(f.name);
  for (const bad_text& t : bad_texts) names.push_back(t.name);
  std::ofstream out;
  if (!record_path.empty())
    out.open(record_path), out << "# Recorded by ptx_conformance --faults --record.\n";
  const auto expected = compare.empty() ? std::map<std::string, record>() : read_records(compare);
  std::size_t same = 0, known = 0;
  for (const auto& name : names) {
    const std::string now = outcome_of(name);
    if (out.is_open()) out << name << "\tfault\t-\t" << now << "\n";
    const auto found = expected.find(name);
    const auto* why = std::find_if(std::begin(known_differences), std::end(known_differences),
                                   [&](const known_difference& d) { return name == d.name; });
    if (found != expected.end() && found->second.data == now) {
      ++same;
    } else {
      if (why != std::end(known_differences)) ++known, std::printf("known (%s): ", why->why);
      std::printf("%s: %s%s%s\n", name.c_str(), now.c_str(), found == expected.end() ? "" : "; recorded: ",
                  found == expected.end() ? "" : found->second.data.c_str());
    }
  }
  if (compare.empty()) return 0;
  std::printf("%zu of %zu faults give the recorded codes, %zu are known to differ\n", same, names.size(),
              known);
  return same + known == names.size() ? 0 : 1;
}

}  // namespace conformance
