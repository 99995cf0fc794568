// CUPTI's functions as exported symbols. Each asks our libcuda.so.1, which the program has loaded or will,
// for the function behind it, at its first call; what nobody has says so once. Nothing happens before that.
#include <dlfcn.h>
#include "api/cuda/cupti_headers.hh"

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/alias.hh"
#include "frontend/cuda/tables/export_tables.hh"

/// By this the back-end recognises, and refuses, our own library where it looks for the vendor's.
extern "C" __attribute__((visibility("default"))) const char outboard_frontend_marker[] =
    "outboard front-end";

namespace outboard::shim {
namespace {

using frontend::cuda::tool_interface;

/// One line, unless the user wants to see nothing.
void complain(const char* text, const char* name) {
  const char* const level = std::getenv("OUTBOARD_LOG");
  if (level && std::strcmp(level, "off") == 0) return;
  std::fprintf(stderr, "outboard: %s%s\n", name, text);
}

const tool_interface* ask_driver() {
  void* driver = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (!driver) driver = ::dlopen("libcuda.so.1", RTLD_LAZY);
  if (!driver) return nullptr;
  using get_table = CUresult (*)(const void**, const CUuuid*);
  const auto get = reinterpret_cast<get_table>(::dlsym(driver, "cuGetExportTable"));
  CUuuid wanted;
  static_assert(sizeof wanted.bytes == sizeof tool_interface::id);
  std::memcpy(wanted.bytes, tool_interface::id, sizeof wanted.bytes);
  const void* table = nullptr;
  if (!get || get(&table, &wanted) != CUDA_SUCCESS) return nullptr;
  return static_cast<const tool_interface*>(table);
}

void* find(const char* name) {
  static const tool_interface* const driver = ask_driver();
  if (driver) return driver->find(name, OUTBOARD_CUPTI_MAJOR);
  static std::atomic<bool> said{false};
  if (!said.exchange(true))
    complain(": this CUPTI is Outboard's, and the program's libcuda.so.1 is not (LD_LIBRARY_PATH)", name);
  return nullptr;
}

CUptiResult refuse(std::atomic<bool>& said, const char* name) {
  if (!said.exchange(true)) complain(" is not implemented: it returns CUPTI_ERROR_NOT_SUPPORTED", name);
  return CUPTI_ERROR_NOT_SUPPORTED;
}

CUptiResult refuse_newer(std::atomic<bool>& said, const char* name) {
  if (!said.exchange(true))
    complain(
        " is of a newer CUPTI than this one: it returns CUPTI_ERROR_NOT_SUPPORTED. Use a profiler that was "
        "built for CUDA 13.0, or outboard run --profile",
        name);
  return CUPTI_ERROR_NOT_SUPPORTED;
}

}  // namespace
}  // namespace outboard::shim

#define OURS(symbol)                                                                           \
  namespace {                                                                                  \
  template <class F>                                                                           \
  struct stub_##symbol;                                                                        \
  template <class R, class... A>                                                               \
  struct stub_##symbol<R(A...)> {                                                              \
    [[gnu::used]] static R entry(A... arguments) {                                             \
      static const auto behind = reinterpret_cast<R (*)(A...)>(outboard::shim::find(#symbol)); \
      return behind ? behind(arguments...) : CUPTI_ERROR_NOT_INITIALIZED;                      \
    }                                                                                          \
  };                                                                                           \
  }                                                                                            \
  OUTBOARD_EXPORT(symbol, (&stub_##symbol<decltype(::symbol)>::entry))
#define REFUSED(symbol)                                 \
  [[gnu::used]] static CUptiResult refused_##symbol() { \
    static std::atomic<bool> said{false};               \
    return outboard::shim::refuse(said, #symbol);       \
  }                                                     \
  OUTBOARD_EXPORT(symbol, &refused_##symbol)
#define NEWER(symbol)                                   \
  [[gnu::used]] static CUptiResult newer_##symbol() {   \
    static std::atomic<bool> said{false};               \
    return outboard::shim::refuse_newer(said, #symbol); \
  }                                                     \
  OUTBOARD_EXPORT(symbol, &newer_##symbol)
/// NVTX's header hands over a function that gives its tables, and takes 0 for a failure.
#define INJECTED(symbol)                                                                   \
  [[gnu::used]] static int injected_##symbol(const void* (*tables)(std::uint32_t)) {       \
    using injection = int (*)(const void* (*)(std::uint32_t));                             \
    static const auto behind = reinterpret_cast<injection>(outboard::shim::find(#symbol)); \
    return behind ? behind(tables) : 0;                                                    \
  }                                                                                        \
  OUTBOARD_EXPORT(symbol, &injected_##symbol)
#include "api/cupti/functions.def"
