// Chapter coredump. The attributes are kept here, those of a context over those of the process, and begin
// with what the environment says at cuInit. The server's driver is told only whether contexts made from now
// on dump, and what; it writes into a pipe of the worker, the bytes come here and become the file that the
// program wants, and then the program ends as a driver ends it. A context that lives already makes no dump
// with a driver either: there the switch turns and does nothing, and one that dumps does so by what it was
// made with (observed on 580.159.04). Dumps on demand (a pipe that the driver watches) are not made.
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "base/log.hh"
#include "frontend/core_dumps.hh"
#include "frontend/cuda/coredump/core_file.hh"
#include "frontend/cuda/coredump/coredump.hh"
#include "frontend/cuda/coredump/coredump_environment.hh"
#include "frontend/cuda/ends.hh"
#include "frontend/cuda/requests.hh"
#include "frontend/process.hh"

namespace outboard::frontend::cuda {
namespace {

constexpr std::size_t longest = 1024;

/// Values of one context, or of the process; what is not in it was not set.
using values = std::map<int, std::string>;

struct book {
  std::mutex mutex;  // guards what follows
  values process;
  std::map<std::uint64_t, values> contexts, made_with;  ///< `made_with`: what was changed since
  bool environment_taken = false;
  core_file dump;  ///< the one that comes
};

/// The server has been told of dumps: from then on they may come.
std::atomic<bool> dumps_wanted{false};

void dump_arrived(std::string_view piece);

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
    if (const context_state* primary = p.objects().primary(static_cast<int>(i)); primary->active.load())
      b.contexts[primary->handle];
  }
  if (p.usable() && this_lane().context_handle()) b.contexts[this_lane().context_handle()];
  for (auto& [context, own] : b.contexts) own.try_emplace(attribute, value_in_force(b, attribute, 0));
}

bool truth(book& b, int attribute, std::uint64_t context) {
  return value_in_force(b, attribute, context)[0] != 0;
}

int flags_in_force(book& b) {
  int flags = 0;
  const std::string value = value_in_force(b, CU_COREDUMP_GENERATION_FLAGS, 0);
  std::memcpy(&flags, value.data(), sizeof flags);
  return truth(b, CU_COREDUMP_LIGHTWEIGHT, 0) ? flags | CU_COREDUMP_LIGHTWEIGHT_FLAGS : flags;
}

/// Without the book's lock: whoever reads the connection meanwhile may have a piece of a dump to write.
CUresult tell_server(const marshal::limit_body& wishes) {
  process& p = process::instance();
  if (const CUresult code = p.connect(); code != CUDA_SUCCESS) return code;
  request_of<api::opcode::cuCoredumpSetAttributeGlobal> r(this_lane(), wishes);
  r.in_context(0);
  const CUresult code = r.call();
  if (code != CUDA_SUCCESS || dumps_wanted.exchange(true)) return code;
  p.memory().leave_window();
  core_dumps.store(dump_arrived);
  // A dump may come at any time: as where host functions are awaited, somebody reads while nobody waits.
  p.functions().add(*p.server(), [](std::int32_t) {});
  p.server()->expect_callbacks(1);
  return code;
}

marshal::limit_body wishes_of(book& b, bool on) {
  const std::lock_guard lock(b.mutex);
  return {flags_in_force(b), on};
}

bool dumps_on(book& b) {
  const std::lock_guard lock(b.mutex);
  return truth(b, CU_COREDUMP_ENABLE_ON_EXCEPTION, 0);
}

/// A change of what the server's driver must know.
CUresult pass_on(int attribute, std::uint64_t context) {
  const bool matters = attribute == CU_COREDUMP_GENERATION_FLAGS || attribute == CU_COREDUMP_LIGHTWEIGHT;
  // A context keeps what it was made with; without dumps the server is told when they are wanted.
  if (!matters || context || !dumps_wanted.load()) return CUDA_SUCCESS;
  book& b = the_book();
  return tell_server(wishes_of(b, dumps_on(b)));
}

/// What the context that dumps was made with. A server does not say which it is, and few programs have more
/// than one.
std::string value_of_dumping(book& b, int attribute) {
  const std::uint64_t context = b.contexts.size() == 1 ? b.contexts.begin()->first : 0;
  if (const auto changed = b.made_with.find(context); changed != b.made_with.end()) {
    const auto before = changed->second.find(attribute);
    if (before != changed->second.end()) return before->second;
  }
  return value_in_force(b, attribute, context);
}

process_facts own_facts() {
  char host[256] = "";
  ::gethostname(host, sizeof host - 1);
  return {host, ::getpid(), static_cast<std::int64_t>(std::time(nullptr))};
}

/// On the thread that reads the connection.
void dump_arrived(std::string_view piece) {
  book& b = the_book();
  bool ends_program = false;
  {
    const std::lock_guard lock(b.mutex);
    if (!b.dump.begun()) {
      const std::string name = value_of_dumping(b, CU_COREDUMP_FILE);
      b.dump.begin(name.empty() ? standard_core_name(own_facts()) : name);
    }
    if (!piece.empty()) return b.dump.add(piece);
    // A driver that cannot write does not end the program either.
    ends_program = b.dump.end() && value_of_dumping(b, CU_COREDUMP_TRIGGER_HOST)[0] != 0;
  }
  if (ends_program) std::abort();
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

/// With the lock.
void keep(book& b, int attribute, std::uint64_t context, std::string value) {
  if (context) {
    b.made_with[context].try_emplace(attribute, value_in_force(b, attribute, context));
    b.contexts[context][attribute] = std::move(value);
  } else {
    leave_contexts(b, attribute);
    b.process[attribute] = std::move(value);
  }
}

CUresult set(CUcoredumpSettings attribute, const void* in, std::size_t* size, bool global) {
  std::uint64_t context = 0;
  if (const CUresult code = find(attribute, size, global, context); code != CUDA_SUCCESS) return code;
  if (!in) return *size = size_of(attribute), CUDA_SUCCESS;
  if (is_text(attribute) ? *size > longest : *size != size_of(attribute)) return CUDA_ERROR_INVALID_VALUE;
  const auto* bytes = static_cast<const char*>(in);
  std::string value(bytes, is_text(attribute) ? ::strnlen(bytes, *size) : *size);
  if (attribute == CU_COREDUMP_ENABLE_USER_TRIGGER && value[0] != 0 && !context)
    return CUDA_ERROR_NOT_SUPPORTED;
  if (attribute == CU_COREDUMP_FILE) value = expand_core_name(value, own_facts());
  if (attribute == CU_COREDUMP_PIPE) return CUDA_ERROR_NOT_SUPPORTED;  // drivers too
  book& b = the_book();
  if (attribute == CU_COREDUMP_ENABLE_ON_EXCEPTION && !context && (value[0] != 0 || dumps_wanted.load())) {
    // May come before cuInit.
    if (const CUresult code = tell_server(wishes_of(b, value[0] != 0)); code != CUDA_SUCCESS) return code;
  }
  {
    const std::lock_guard lock(b.mutex);
    if (attribute == CU_COREDUMP_GENERATION_FLAGS) {
      const bool aborts = (value[0] & CU_COREDUMP_SKIP_ABORT) == 0;
      keep(b, CU_COREDUMP_TRIGGER_HOST, context, std::string(1, aborts ? '\1' : '\0'));
    }
    keep(b, attribute, context, std::move(value));
  }
  return pass_on(attribute, context);
}

/// The environment's wishes become the process's, once. True: faults are to dump.
bool take_environment(book& b) {
  const std::lock_guard lock(b.mutex);
  if (std::exchange(b.environment_taken, true)) return false;
  const coredump_wishes wishes = read_coredump_environment(std::getenv, own_facts());
  for (const auto& [attribute, value] : wishes.values) b.process.try_emplace(attribute, value);
  for (const std::string& word : wishes.unknown)
    log::error("CUDA_COREDUMP_GENERATION_FLAGS: '", word, "' is no flag and is ignored");
  if (wishes.on_demand) log::error("core dumps of the GPU on demand are not made");
  if (wishes.dump) b.process.try_emplace(CU_COREDUMP_ENABLE_ON_EXCEPTION, std::string(1, '\1'));
  return wishes.dump;
}

}  // namespace

CUresult prepare_core_dumps() {
  book& b = the_book();
  return tell_server(wishes_of(b, dumps_on(b)));
}

void context_dumps(std::uint64_t context) {
  book& b = the_book();
  const std::lock_guard lock(b.mutex);
  b.contexts[context][CU_COREDUMP_ENABLE_ON_EXCEPTION] = std::string(1, '\1');
}

void take_coredump_environment() {
  book& b = the_book();
  if (!take_environment(b)) return;
  const CUresult code = tell_server(wishes_of(b, true));
  if (code == CUDA_SUCCESS) return;
  log::error("the environment asks for core dumps of the GPU, which this server does not write (error ",
             static_cast<int>(code), "; with a GPU: only where its worker.confine is \"off\")");
  const std::lock_guard lock(b.mutex);
  b.process.erase(CU_COREDUMP_ENABLE_ON_EXCEPTION);
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
