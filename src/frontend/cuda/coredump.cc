// Chapter coredump. The attributes are kept here, those of a context over those of the process, and begin
// with what the environment says at cuInit. A core of the GPU would be written by the driver in the worker,
// to a path on its machine, and no client names one there: so dumps cannot be switched on (NOT_SUPPORTED),
// and nothing else about them is refused. A context that lives already makes none with a driver either: there
// the switch turns and does nothing.
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <ctime>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "base/log.hh"
#include "frontend/cuda/coredump_environment.hh"
#include "frontend/cuda/ends.hh"
#include "frontend/process.hh"

namespace outboard::frontend::cuda {
namespace {

constexpr std::size_t longest = 1024;

/// Values of one context, or of the process; what is not in it was not set.
using values = std::map<int, std::string>;

struct book {
  std::mutex mutex;  // guards what follows
  values process;
  std::map<std::uint64_t, values> contexts;
  bool environment_taken = false;
};

book& the_book() {
  static auto* const made = new book;  // never destroyed: calls come from destructors after main too
  return *made;
}

/// Bytes of a value; 0: no such attribute.
std::size_t size_of(int attribute) {
  switch (attribute) {
    case CU_COREDUMP_ENABLE_ON_EXCEPTION:
    case CU_COREDUMP_TRIGGER_HOST:
    case CU_COREDUMP_LIGHTWEIGHT:
    case CU_COREDUMP_ENABLE_USER_TRIGGER:
      return 1;
    case CU_COREDUMP_FILE:
    case CU_COREDUMP_PIPE:
      return longest;
    case CU_COREDUMP_GENERATION_FLAGS:
      return sizeof(int);
    default:
      return 0;
  }
}

bool is_text(int attribute) { return size_of(attribute) == longest; }

/// The pipe and its switch belong to the process.
bool of_process_only(int attribute) {
  return attribute == CU_COREDUMP_ENABLE_USER_TRIGGER || attribute == CU_COREDUMP_PIPE;
}

bool switches_on(int attribute) {
  return attribute == CU_COREDUMP_ENABLE_ON_EXCEPTION || attribute == CU_COREDUMP_ENABLE_USER_TRIGGER;
}

std::string standard(int attribute) {
  if (is_text(attribute)) return {};
  if (attribute == CU_COREDUMP_TRIGGER_HOST) return std::string(1, '\1');
  return std::string(size_of(attribute), '\0');
}

/// The process's book, or that of the current context.
CUresult find(int attribute, const std::size_t* size, bool global, std::uint64_t& context) {
  if (!size || size_of(attribute) == 0) return CUDA_ERROR_INVALID_VALUE;
  context = 0;
  if (global) return CUDA_SUCCESS;
  lane& own = this_lane();
  if (const CUresult code = process::instance().gate(own); code != CUDA_SUCCESS) return code;
  context = own.context_handle();
  return of_process_only(attribute) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

std::string value_in_force(book& b, int attribute, std::uint64_t context) {
  if (context) {
    const values& own = b.contexts[context];
    if (const auto found = own.find(attribute); found != own.end()) return found->second;
  }
  const auto found = b.process.find(attribute);
  return found != b.process.end() ? found->second : standard(attribute);
}

/// The process's values are those that later contexts begin with: the ones that live keep what they have.
void leave_contexts(book& b, int attribute) {
  process& p = process::instance();
  const auto devices = p.usable() ? p.facts().devices.size() : 0;
  for (std::size_t i = 0; i < devices; ++i) {
    if (const context_state* primary = p.primary(static_cast<int>(i)); primary->active.load())
      b.contexts[primary->handle];
  }
  if (p.usable() && this_lane().context_handle()) b.contexts[this_lane().context_handle()];
  for (auto& [context, own] : b.contexts) own.try_emplace(attribute, value_in_force(b, attribute, 0));
}

CUresult get(CUcoredumpSettings attribute, void* out, std::size_t* size, bool global) {
  std::uint64_t context = 0;
  if (const CUresult code = find(attribute, size, global, context); code != CUDA_SUCCESS) return code;
  if (!out) return *size = size_of(attribute), CUDA_SUCCESS;
  book& b = the_book();
  const std::lock_guard lock(b.mutex);
  const std::string value = value_in_force(b, attribute, context);
  if (is_text(attribute) ? *size < value.size() : *size != value.size()) return CUDA_ERROR_INVALID_VALUE;
  std::memset(out, 0, is_text(attribute) ? std::min(*size, longest) : *size);
  std::memcpy(out, value.data(), value.size());
  return CUDA_SUCCESS;
}

CUresult set(CUcoredumpSettings attribute, const void* in, std::size_t* size, bool global) {
  std::uint64_t context = 0;
  if (const CUresult code = find(attribute, size, global, context); code != CUDA_SUCCESS) return code;
  if (!in) return *size = size_of(attribute), CUDA_SUCCESS;
  if (is_text(attribute) ? *size > longest : *size != size_of(attribute)) return CUDA_ERROR_INVALID_VALUE;
  const auto* bytes = static_cast<const char*>(in);
  std::string value(bytes, is_text(attribute) ? ::strnlen(bytes, *size) : *size);
  if (switches_on(attribute) && value[0] != 0 && !context) return CUDA_ERROR_NOT_SUPPORTED;
  if (attribute == CU_COREDUMP_PIPE) return CUDA_ERROR_NOT_SUPPORTED;  // drivers too
  book& b = the_book();
  const std::lock_guard lock(b.mutex);
  if (!context) leave_contexts(b, attribute);
  values& into = context ? b.contexts[context] : b.process;
  if (attribute == CU_COREDUMP_GENERATION_FLAGS) {
    if (!context) leave_contexts(b, CU_COREDUMP_TRIGGER_HOST);
    into[CU_COREDUMP_TRIGGER_HOST] = std::string(1, value[0] & CU_COREDUMP_SKIP_ABORT ? '\0' : '\1');
  }
  into[attribute] = std::move(value);
  return CUDA_SUCCESS;
}

}  // namespace

void take_coredump_environment() {
  book& b = the_book();
  const std::lock_guard lock(b.mutex);
  if (std::exchange(b.environment_taken, true)) return;
  char host[256] = "";
  ::gethostname(host, sizeof host - 1);
  const coredump_wishes wishes = read_coredump_environment(
      std::getenv, {host, ::getpid(), static_cast<std::int64_t>(std::time(nullptr))});
  for (const auto& [attribute, value] : wishes.values) b.process.try_emplace(attribute, value);
  for (const std::string& word : wishes.unknown)
    log::error("CUDA_COREDUMP_GENERATION_FLAGS: '", word, "' is no flag and is ignored");
  if (wishes.dump)
    log::error("the environment asks for core dumps of the GPU, which are not written through Outboard");
}

namespace ends {

CUresult cuCoredumpGetAttribute(CUcoredumpSettings attribute, void* value, size_t* size) {
  return get(attribute, value, size, false);
}
CUresult cuCoredumpGetAttributeGlobal(CUcoredumpSettings attribute, void* value, size_t* size) {
  return get(attribute, value, size, true);
}
CUresult cuCoredumpSetAttribute(CUcoredumpSettings attribute, void* value, size_t* size) {
  return set(attribute, value, size, false);
}
CUresult cuCoredumpSetAttributeGlobal(CUcoredumpSettings attribute, void* value, size_t* size) {
  return set(attribute, value, size, true);
}

}  // namespace ends
}  // namespace outboard::frontend::cuda
