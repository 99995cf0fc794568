// The tables of NVML expanded into exported symbols. A function that travels is a template instance over its
// prototype; its exported name is an alias that the assembler sets, so no parameter list is written twice.
#include "base/alias.hh"
#include "frontend/nvml/ends.hh"

namespace outboard::shim {
namespace {

using namespace api::nvml;

template <opcode Op, class F>
struct stub;
template <opcode Op, class... A>
struct stub<Op, nvmlReturn_t(A...)> {
  [[gnu::used]] static nvmlReturn_t run(A... arguments) {
    return frontend::nvml::ask(Op, words{to_word(arguments)...});
  }
};

/// The error codes of the families of refused lines: an unprivileged user may not change a board; the other
/// families are supported for no user.
constexpr nvmlReturn_t code_of(std::string_view family) {
  return family == "permission" || family == "root" ? NVML_ERROR_NO_PERMISSION : NVML_ERROR_NOT_SUPPORTED;
}

/// True if the first parameter is a device; some functions take a struct first, and some nothing.
constexpr bool takes_device(std::string_view name) {
  constexpr std::string_view others[] = {"nvmlDeviceModifyDrainState", "nvmlDeviceRemoveGpu",
                                         "nvmlDeviceRemoveGpu_v2", "nvmlDeviceDiscoverGpus"};
  for (const std::string_view other : others) {
    if (name == other) return false;
  }
  return name.starts_with("nvmlDevice");
}

}  // namespace
}  // namespace outboard::shim

#define CHAPTER(number, file)
#define OUTBOARD_LINE(how, symbol, ...) OUTBOARD_EXPORT_##how(symbol, #__VA_ARGS__)
#define OUTBOARD_EXPORT_call(symbol, text)                 \
  OUTBOARD_EXPORT(symbol,                                  \
                  (&outboard::shim::stub<                  \
                      outboard::api::nvml::opcode::symbol, \
                      outboard::api::nvml::function<outboard::api::nvml::opcode::symbol>::prototype>::run))
#define OUTBOARD_EXPORT_custom(symbol, text)                       \
  namespace {                                                      \
  template <class F>                                               \
  struct own_##symbol;                                             \
  template <class R, class... A>                                   \
  struct own_##symbol<R(A...)> {                                   \
    [[gnu::used]] static R run(A... arguments) {                   \
      return outboard::frontend::nvml::ends::symbol(arguments...); \
    }                                                              \
  };                                                               \
  }                                                                \
  OUTBOARD_EXPORT(symbol, (&own_##symbol<decltype(outboard::api::nvml::prototypes::symbol)>::run))
#define OUTBOARD_EXPORT_local OUTBOARD_EXPORT_custom
#define OUTBOARD_EXPORT_refused(symbol, text)                                                    \
  [[gnu::used]] static outboard::api::nvml::nvmlReturn_t refused_##symbol(std::uint64_t first) { \
    return outboard::frontend::nvml::refuse(first, outboard::shim::takes_device(#symbol),        \
                                            outboard::shim::code_of(text));                      \
  }                                                                                              \
  OUTBOARD_EXPORT(symbol, &refused_##symbol)
#include "api/nvml/expand.def"
