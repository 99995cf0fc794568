#include "frontend/cuda/tables/export_tables.hh"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <utility>
#include <vector>

#include "frontend/cuda/tables/cls.hh"

namespace outboard::frontend::cuda {
namespace {

constinit export_hooks hooks{};

/// Which table a slot that nobody has understood belongs to; only for the log.
enum class id {
  cudart,
  callbacks,
  tools_tls,
  context_checks,
  integrity,
  tools,
  functions,
  create_bypass,
  layout
};

constexpr const char* name_of(id table) {
  switch (table) {
    case id::cudart:
      return "6bd5fb6c (CUDART interface)";
    case id::callbacks:
      return "a094798c (runtime callback hooks)";
    case id::tools_tls:
      return "42d85a81 (tools TLS)";
    case id::context_checks:
      return "263e8860 (context checks)";
    case id::integrity:
      return "d4082055 (integrity check)";
    case id::tools:
      return "21318c60 (tools)";
    case id::functions:
      return "6e163fbe (module functions)";
    case id::create_bypass:
      return "0ca50b8c (context creation)";
    case id::layout:
      return "1734dc26 (layout of the board)";
  }
  return "?";
}

void log_unknown_slot(id table, int slot) {
  char line[160];
  std::snprintf(line, sizeof line,
                "slot %d of the driver's export table %s is not implemented; the caller gets "
                "CUDA_ERROR_NOT_SUPPORTED (this line once)",
                slot, name_of(table));
  hooks.log(line);
}

template <id Table, int Slot>
CUresult unknown_slot() {
  static constinit std::atomic<bool> said{false};
  if (!said.exchange(true, std::memory_order_relaxed)) log_unknown_slot(Table, Slot);
  return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult do_nothing() { return CUDA_SUCCESS; }

/// Null and all-ones both mean "of this thread".
CUcontext resolve(CUcontext context) {
  const auto value = reinterpret_cast<std::uintptr_t>(context);
  return value == 0 || value == ~std::uintptr_t{0} ? hooks.current_context() : context;
}

// --- 6bd5fb6c: CUDART interface
// -------------------------------------------------------------------------------

CUresult cudart_load(CUmodule* out, const void* wrapper) {
  if (!out || !wrapper) return CUDA_ERROR_INVALID_VALUE;
  return hooks.load_module(out, wrapper);
}

CUresult cudart_primary_handle(CUcontext* out, CUdevice device) {
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  const CUcontext handle = hooks.primary_handle(device);
  if (!handle) return CUDA_ERROR_INVALID_DEVICE;
  *out = handle;
  return CUDA_SUCCESS;
}

// The meaning of the extras (host variables) is not known: refusing is better than losing them.
CUresult cudart_load_extra(CUmodule* out, const void* wrapper, void* first, void* second, std::uint32_t n) {
  if (first || second || n != 0) {
    log_unknown_slot(id::cudart, 6);
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  return cudart_load(out, wrapper);
}

CUresult cudart_load_header(const void* fatbin, CUmodule* out, void*, void*, std::uint32_t n) {
  if (n != 0) {
    log_unknown_slot(id::cudart, 8);
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  return cudart_load(out, fatbin);
}

// --- a094798c: runtime callback hooks
// -------------------------------------------------------------------------

// All zero: no tool wants callbacks. The counts are elements; a runtime of 13.0 needs 523 and 14, and crashes
// on less.
constinit std::uint32_t wanted_runtime[runtime_functions]{};
constinit std::uint32_t wanted_small[64]{};
constinit std::atomic<runtime_call_observer> observe_runtime{nullptr};

/// Around each call of the runtime whose flag is set.
CUresult hooks_call(std::uint32_t function, runtime_call* call) {
  if (!call || call->size < sizeof *call || function >= runtime_functions) return CUDA_SUCCESS;
  if (auto* const told = observe_runtime.load(std::memory_order_acquire)) told(function, *call);
  return CUDA_SUCCESS;
}

CUresult hooks_runtime(std::uint32_t** array, std::size_t* count) {
  if (!array || !count) return CUDA_ERROR_INVALID_VALUE;
  *array = wanted_runtime;
  *count = runtime_functions;
  return CUDA_SUCCESS;
}

CUresult hooks_small(std::uint32_t** array, std::size_t* count) {
  if (!array || !count) return CUDA_ERROR_INVALID_VALUE;
  *array = wanted_small;
  *count = 14;
  return CUDA_SUCCESS;
}

// --- 42d85a81: tools TLS
// --------------------------------------------------------------------------------------

CUresult tools_current(void** out) {
  if (out) *out = hooks.current_context();
  return CUDA_SUCCESS;  // cuBLAS fails with NOT_SUPPORTED on anything else
}

// --- c693336e: context-local storage
// --------------------------------------------------------------------------

CUresult storage_put(CUcontext context, void* key, void* value, cls_destructor destructor) {
  const CUcontext resolved = resolve(context);
  return resolved ? cls_put(resolved, key, value, destructor) : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult storage_delete(CUcontext context, void* key) {
  const CUcontext resolved = resolve(context);
  return resolved ? cls_delete(resolved, key) : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult storage_get(void** value, CUcontext context, void* key) {
  const CUcontext resolved = resolve(context);
  return resolved ? cls_get(value, resolved, key) : CUDA_ERROR_INVALID_CONTEXT;
}

// --- 263e8860: context checks
// ---------------------------------------------------------------------------------

CUresult check_wrapped(CUcontext, std::uint32_t* wrapped, void** inner) {
  if (wrapped) *wrapped = 0;  // ours never wrap another
  return CUDA_SUCCESS;
}

std::uint32_t check_startup() { return 0; }

// --- 21318c60: tools
// ------------------------------------------------------------------------------------------

CUresult tools_identity(CUcontext context, std::uint64_t* out) {
  if (out) *out = context ? 1 : 0;
  return CUDA_SUCCESS;
}

CUresult tools_stream_object(CUcontext, CUstream stream, void** object) {
  if (reinterpret_cast<std::uintptr_t>(stream) == ~std::uintptr_t{0}) return CUDA_ERROR_INVALID_HANDLE;
  if (object) *object = stream;
  return CUDA_SUCCESS;
}

CUresult tools_stream_identity(CUcontext, void*, std::uint64_t* out) {
  if (out) *out = 0;
  return CUDA_SUCCESS;
}

// --- 6e163fbe: module functions
// -------------------------------------------------------------------------------

using function_callback = void (*)(void* opaque, CUfunction function, std::uint64_t owner);

struct function_walk {
  function_callback callback;
  void* opaque;
  std::uint64_t owner, count;
};

std::uint64_t functions_each(CUcontext, CUmodule module, function_callback callback, void* opaque, CUmodule) {
  function_walk walk{callback, opaque, reinterpret_cast<std::uintptr_t>(module), 0};
  const auto each = [](void* state, CUfunction function) {
    auto& w = *static_cast<function_walk*>(state);
    ++w.count;
    if (w.callback) w.callback(w.opaque, function, w.owner);
  };
  return hooks.module_functions(module, &walk, each) == CUDA_SUCCESS ? walk.count : 0;
}

// --- 0ca50b8c
// -------------------------------------------------------------------------------------------------

CUresult bypass_create(CUcontext* out, std::uint32_t flags, CUdevice device) {
  return hooks.create_context(out, flags, device);
}

// --- d4082055: integrity check (defined below the tables, whose addresses it needs)
// -----------------------------

CUresult integrity_check(std::uint32_t version, std::uint64_t unix_seconds, std::uint8_t* value);

// --- 1734dc26: layout of the board. cuBLASLt calls it without asking whether the table is there
// -----------------------------------------------------------------------------------------------

CUresult layout_get(std::uint8_t** clusters, std::uint8_t** numbers) {
  if (!clusters || !numbers) return CUDA_ERROR_INVALID_VALUE;
  return hooks.board_layout(clusters, numbers);
}

CUresult layout_release(std::uint8_t* clusters, std::uint8_t* numbers) {
  std::free(clusters);
  std::free(numbers);
  return CUDA_SUCCESS;
}

// --- the tables
// -----------------------------------------------------------------------------------------------

/// One 8-byte word of a table. A union of the real signatures, because a cast would not be a constant
/// expression, and the tables have to be constants: a library's constructor may ask before ours have run.
union word {
  std::size_t size;
  CUresult (*plain)();
  std::uint32_t (*number)();
  CUresult (*load)(CUmodule*, const void*);
  CUresult (*handle)(CUcontext*, CUdevice);
  CUresult (*load_extra)(CUmodule*, const void*, void*, void*, std::uint32_t);
  CUresult (*load_header)(const void*, CUmodule*, void*, void*, std::uint32_t);
  CUresult (*array)(std::uint32_t**, std::size_t*);
  CUresult (*call)(std::uint32_t, runtime_call*);
  CUresult (*out)(void**);
  CUresult (*put)(CUcontext, void*, void*, cls_destructor);
  CUresult (*remove)(CUcontext, void*);
  CUresult (*get)(void**, CUcontext, void*);
  CUresult (*wrapped)(CUcontext, std::uint32_t*, void**);
  CUresult (*identity)(CUcontext, std::uint64_t*);
  CUresult (*object)(CUcontext, CUstream, void**);
  CUresult (*object_identity)(CUcontext, void*, std::uint64_t*);
  std::uint64_t (*functions)(CUcontext, CUmodule, function_callback, void*, CUmodule);
  CUresult (*create)(CUcontext*, std::uint32_t, CUdevice);
  CUresult (*check)(std::uint32_t, std::uint64_t, std::uint8_t*);
  CUresult (*layout)(std::uint8_t**, std::uint8_t**);
  CUresult (*release)(std::uint8_t*, std::uint8_t*);
};
static_assert(sizeof(word) == 8);

template <std::size_t Words>
struct table {
  word words[Words];
};

/// Word 0 is the size in bytes, the others are unknown until set.
template <id Table, std::size_t... Slot>
constexpr table<sizeof...(Slot)> unknown_table(std::index_sequence<Slot...>) {
  return {{(Slot == 0 ? word{.size = 8 * sizeof...(Slot)}
                      : word{.plain = &unknown_slot<Table, static_cast<int>(Slot)>})...}};
}

// Sizes and the one hole are those of a 13.0 driver.
template <id Table, std::size_t Words>
constexpr table<Words> unknown_table() {
  return unknown_table<Table>(std::make_index_sequence<Words>{});
}

constexpr auto make_cudart() {
  auto t = unknown_table<id::cudart, 13>();
  t.words[1] = {.load = cudart_load};
  t.words[2] = {.handle = cudart_primary_handle};
  t.words[6] = {.load_extra = cudart_load_extra};
  t.words[7] = {.plain = do_nothing};
  t.words[8] = {.load_header = cudart_load_header};
  t.words[10] = {.plain = nullptr};
  t.words[12] = {.plain = do_nothing};  // "load the compilers": they live on the other side
  return t;
}

constexpr auto make_hooks() {
  auto t = unknown_table<id::callbacks, 7>();
  for (const int slot : {3, 4, 5}) t.words[slot] = {.plain = do_nothing};
  t.words[1] = {.call = hooks_call};
  t.words[2] = {.array = hooks_runtime};
  t.words[6] = {.array = hooks_small};
  return t;
}

constexpr auto make_tools_tls() {
  auto t = unknown_table<id::tools_tls, 3>();
  t.words[2] = {.out = tools_current};
  return t;
}

constexpr auto make_context_checks() {
  auto t = unknown_table<id::context_checks, 15>();
  t.words[2] = {.wrapped = check_wrapped};
  t.words[3] = {.number = check_startup};
  return t;
}

constexpr auto make_integrity() {
  auto t = unknown_table<id::integrity, 3>();
  t.words[1] = {.check = integrity_check};
  return t;
}

constexpr auto make_tools() {
  auto t = unknown_table<id::tools, 93>();
  t.words[4] = {.identity = tools_identity};
  t.words[39] = {.object_identity = tools_stream_identity};
  t.words[51] = {.object = tools_stream_object};
  return t;
}

constexpr auto make_functions() {
  auto t = unknown_table<id::functions, 99>();
  t.words[7] = {.functions = functions_each};
  return t;
}

constexpr auto make_create_bypass() {
  auto t = unknown_table<id::create_bypass, 2>();
  t.words[1] = {.create = bypass_create};
  return t;
}

constexpr auto make_layout() {
  auto t = unknown_table<id::layout, 17>();
  t.words[4] = {.layout = layout_get};
  t.words[13] = {.release = layout_release};
  return t;
}

constinit const auto cudart_table = make_cudart();
constinit const auto hooks_table = make_hooks();
constinit const auto tools_tls_table = make_tools_tls();
constinit const auto context_checks_table = make_context_checks();
constinit const auto integrity_table = make_integrity();
constinit const auto tools_table = make_tools();
constinit const auto functions_table = make_functions();
constinit const auto create_bypass_table = make_create_bypass();
constinit const auto layout_table = make_layout();
/// The one table without a size word: it ends with a null.
constinit const table<4> storage_table = {
    {{.put = storage_put}, {.remove = storage_delete}, {.get = storage_get}, {.plain = nullptr}}};

CUresult integrity_check(std::uint32_t version, std::uint64_t unix_seconds, std::uint8_t* value) try {
  if (!value) return CUDA_ERROR_INVALID_VALUE;
  integrity_facts facts;
  facts.driver_version = static_cast<std::uint32_t>(hooks.driver_version());
  facts.version = version;
  facts.process = static_cast<std::uint32_t>(getpid());
  facts.thread = static_cast<std::uint32_t>(pthread_self());
  facts.runtime_table = reinterpret_cast<std::uintptr_t>(&cudart_table);
  facts.check_table = reinterpret_cast<std::uintptr_t>(&integrity_table);
  facts.check_function = reinterpret_cast<std::uintptr_t>(integrity_table.words[1].check);
  facts.unix_seconds = unix_seconds;
  std::vector<device_identity> devices;
  for (std::size_t n = 0; n < hooks.device_count(); ++n) devices.push_back(hooks.device(n));
  // Asked at CUDART_VERSION + 0, + 1 and + 2; only the last is compared, and only its recipe is known.
  md2_digest answer{};
  if (version % 10 >= 2) answer = integrity_value(facts, devices);
  std::memcpy(value, answer.data(), answer.size());
  return CUDA_SUCCESS;
} catch (...) {
  return CUDA_ERROR_OUT_OF_MEMORY;
}

struct served {
  std::uint8_t uuid[16];
  const void* table;
};

// Whatever is not here is refused: f8cff951 (optional), da9151d3 (nvrtc compiles by itself then), b10541e1
// (OptiX), 195bcbf4, dd9e98a4, 7f9212d6, and the tables of tools, so that profilers report themselves
// unavailable.
const served served_tables[] = {
    {{0x6b, 0xd5, 0xfb, 0x6c, 0x5b, 0xf4, 0xe7, 0x4a, 0x89, 0x87, 0xd9, 0x39, 0x12, 0xfd, 0x9d, 0xf9},
     &cudart_table},
    {{0xa0, 0x94, 0x79, 0x8c, 0x2e, 0x74, 0x2e, 0x74, 0x93, 0xf2, 0x08, 0x00, 0x20, 0x0c, 0x0a, 0x66},
     &hooks_table},
    {{0x42, 0xd8, 0x5a, 0x81, 0x23, 0xf6, 0xcb, 0x47, 0x82, 0x98, 0xf6, 0xe7, 0x8a, 0x3a, 0xec, 0xdc},
     &tools_tls_table},
    {{0xc6, 0x93, 0x33, 0x6e, 0x11, 0x21, 0xdf, 0x11, 0xa8, 0xc3, 0x68, 0xf3, 0x55, 0xd8, 0x95, 0x93},
     &storage_table},
    {{0x26, 0x3e, 0x88, 0x60, 0x7c, 0xd2, 0x61, 0x43, 0x92, 0xf6, 0xbb, 0xd5, 0x00, 0x6d, 0xfa, 0x7e},
     &context_checks_table},
    {{0xd4, 0x08, 0x20, 0x55, 0xbd, 0xe6, 0x70, 0x4b, 0x8d, 0x34, 0xba, 0x12, 0x3c, 0x66, 0xe1, 0xf2},
     &integrity_table},
    {{0x21, 0x31, 0x8c, 0x60, 0x97, 0x14, 0x32, 0x48, 0x8c, 0xa6, 0x41, 0xff, 0x73, 0x24, 0xc8, 0xf2},
     &tools_table},
    {{0x6e, 0x16, 0x3f, 0xbe, 0xb9, 0x58, 0x44, 0x4d, 0x83, 0x5c, 0xe1, 0x82, 0xaf, 0xf1, 0x99, 0x1e},
     &functions_table},
    {{0x0c, 0xa5, 0x0b, 0x8c, 0x10, 0x04, 0x92, 0x9a, 0x89, 0xa7, 0xd0, 0xdf, 0x10, 0xe7, 0x72, 0x86},
     &create_bypass_table},
    {{0x17, 0x34, 0xdc, 0x26, 0x80, 0x0d, 0x47, 0x45, 0x87, 0x26, 0xc0, 0xf1, 0xe7, 0xdd, 0x8b, 0xca},
     &layout_table},
};

/// Our own, for our own libcupti.
constinit std::atomic<const tool_interface*> tool_table{nullptr};

/// By their first four bytes: what only profilers and their like ask for (CUPTI 13.0).
constexpr std::uint8_t tables_of_profilers[][4] = {{0x2c, 0x8e, 0x0a, 0xd8}, {0xfc, 0x58, 0xac, 0x1a},
                                                   {0x35, 0x77, 0x0f, 0x1b}, {0xbf, 0xdb, 0x43, 0x2d},
                                                   {0xa6, 0xb1, 0xff, 0x99}, {0xf8, 0x8c, 0xc9, 0x3e}};

/// Else a profiler reports a program without kernels, and nobody knows why.
void tell_profiler(const CUuuid& wanted) {
  static constinit std::atomic<bool> said{false};
  const auto is = [&](const std::uint8_t(&start)[4]) {
    return std::memcmp(start, wanted.bytes, sizeof start) == 0;
  };
  if (!std::any_of(std::begin(tables_of_profilers), std::end(tables_of_profilers), is)) return;
  if (said.exchange(true, std::memory_order_relaxed)) return;
  hooks.complain(
      "a profiler in this program will see no kernels and no copies: it has NVIDIA's CUPTI inside, not ours, "
      "which `outboard run` puts before that where a program loads a library (docs/how-to/profile.md). The "
      "program itself is not affected (OUTBOARD_LOG=off: not to be told)");
}

}  // namespace

void set_export_hooks(const export_hooks& filled) { hooks = filled; }

void observe_runtime_calls(runtime_call_observer told) { observe_runtime.store(told); }

void want_runtime_call(std::uint32_t function, bool wanted) {
  if (function < runtime_functions)
    std::atomic_ref(wanted_runtime[function]).store(wanted ? 1 : 0, std::memory_order_relaxed);
}

void set_tool_interface(const tool_interface* table) { tool_table.store(table); }

CUresult get_export_table(const void** out, const CUuuid* wanted) {
  if (!out || !wanted) return CUDA_ERROR_INVALID_VALUE;
  for (const served& one : served_tables) {
    if (std::memcmp(one.uuid, wanted->bytes, sizeof one.uuid) != 0) continue;
    *out = one.table;
    return CUDA_SUCCESS;
  }
  *out = nullptr;
  if (std::memcmp(tool_interface::id, wanted->bytes, sizeof tool_interface::id) == 0 && tool_table.load()) {
    *out = tool_table.load();
    return CUDA_SUCCESS;
  }
  tell_profiler(*wanted);
  return CUDA_ERROR_INVALID_VALUE;
}

}  // namespace outboard::frontend::cuda
