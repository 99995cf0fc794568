#include "frontend/cuda/coredump/coredump_environment.hh"

#include <cuda.h>

#include <array>
#include <cstring>
#include <string_view>
#include <utility>

namespace outboard::frontend::cuda {
namespace {

constexpr std::array<std::pair<std::string_view, int>, 6> flag_names{{
    {"skip_nonrelocated_elf_images", CU_COREDUMP_SKIP_NONRELOCATED_ELF_IMAGES},
    {"skip_global_memory", CU_COREDUMP_SKIP_GLOBAL_MEMORY},
    {"skip_shared_memory", CU_COREDUMP_SKIP_SHARED_MEMORY},
    {"skip_local_memory", CU_COREDUMP_SKIP_LOCAL_MEMORY},
    {"skip_abort", CU_COREDUMP_SKIP_ABORT},
    {"skip_constbank_memory", CU_COREDUMP_SKIP_CONSTBANK_MEMORY},
}};

constexpr std::size_t longest_name = 1023;

int read_flags(std::string_view list, std::vector<std::string>& unknown) {
  int flags = 0;
  while (!list.empty()) {
    const std::size_t comma = list.find(',');
    const std::string_view word = list.substr(0, comma);
    bool known = false;
    for (const auto& [name, flag] : flag_names) {
      if (name == word) flags |= flag, known = true;
    }
    if (!known) unknown.emplace_back(word);
    if (comma == std::string_view::npos) break;
    list.remove_prefix(comma + 1);
  }
  return flags;
}

std::string bytes_of(bool value) { return std::string(1, value ? '\1' : '\0'); }

}  // namespace

/// What else follows a % stands for itself.
std::string expand_core_name(std::string_view pattern, const process_facts& own) {
  std::string out;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '%' || i + 1 == pattern.size()) {
      out += pattern[i];
      continue;
    }
    const char what = pattern[++i];
    if (what == 'h') {
      out += own.host;
    } else if (what == 'p') {
      out += std::to_string(own.process);
    } else if (what == 't') {
      out += std::to_string(own.time);
    } else {
      out += what;
    }
  }
  if (out.size() > longest_name) out.resize(longest_name);
  return out;
}

coredump_wishes read_coredump_environment(const std::function<const char*(const char*)>& variable,
                                          const process_facts& own) {
  coredump_wishes w;
  const auto is = [&](const char* name, const char* value) {
    const char* text = variable(name);
    return text && std::strcmp(text, value) == 0;
  };
  w.on_demand = is("CUDA_ENABLE_USER_TRIGGERED_COREDUMP", "1");
  w.dump = is("CUDA_ENABLE_COREDUMP_ON_EXCEPTION", "1");
  if (const char* file = variable("CUDA_COREDUMP_FILE"))
    w.values[CU_COREDUMP_FILE] = expand_core_name(file, own);
  if (const char* pipe = variable("CUDA_COREDUMP_PIPE"); pipe && w.on_demand)
    w.values[CU_COREDUMP_PIPE] = expand_core_name(pipe, own);
  int flags = 0;
  const char* list = variable("CUDA_COREDUMP_GENERATION_FLAGS");
  if (list) {
    flags = read_flags(list, w.unknown);
  } else if (!w.dump && is("CUDA_ENABLE_LIGHTWEIGHT_COREDUMP", "1")) {
    // Where faults dump by the environment a driver does not heed this word, whatever its manual says.
    // The flags are the newer word and win over it.
    flags = CU_COREDUMP_LIGHTWEIGHT_FLAGS;
    w.values[CU_COREDUMP_LIGHTWEIGHT] = bytes_of(true);
  }
  if (is("CUDA_ENABLE_CPU_COREDUMP_ON_EXCEPTION", "0")) flags |= CU_COREDUMP_SKIP_ABORT;
  if (flags != 0) {
    w.values[CU_COREDUMP_GENERATION_FLAGS].assign(reinterpret_cast<const char*>(&flags), sizeof flags);
    w.values[CU_COREDUMP_TRIGGER_HOST] = bytes_of((flags & CU_COREDUMP_SKIP_ABORT) == 0);
  }
  return w;
}

}  // namespace outboard::frontend::cuda
