#include "api/opencl/extensions.hh"

namespace outboard::api::opencl {
namespace {

constexpr extension_function own[] = {
#define PROMOTED(extension, symbol, core)
#define EXTENSION(extension, how, symbol, ...) {#extension, #symbol, opcode::symbol},
#include "api/opencl/extensions.def"
#undef EXTENSION
#undef PROMOTED
};

constexpr promoted_function promoted[] = {
#define PROMOTED(extension, symbol, core) {#extension, #symbol, opcode::core},
#define EXTENSION(extension, how, symbol, ...)
#include "api/opencl/extensions.def"
#undef EXTENSION
#undef PROMOTED
};

}  // namespace

std::span<const extension_function> extension_functions() { return own; }
std::span<const promoted_function> promoted_functions() { return promoted; }

}  // namespace outboard::api::opencl
