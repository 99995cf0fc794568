// Chapter error: names and texts of result codes. Works before cuInit and without a server.
#include <algorithm>
#include <array>

#include "frontend/cuda/ends.hh"

namespace outboard::frontend::cuda {
namespace {

struct error_text {
  CUresult code;
  const char* name;
  const char* text;
};

constexpr error_text texts[] = {
#define ERROR(code, text) {code, #code, text},
#include "frontend/cuda/chapters/error_texts.def"
#undef ERROR
};

CUresult tell(CUresult code, const char** out, const char* error_text::*what) {
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  const auto* found =
      std::find_if(std::begin(texts), std::end(texts), [&](const auto& t) { return t.code == code; });
  *out = found == std::end(texts) ? nullptr : found->*what;
  return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace

CUresult ends::cuGetErrorString(CUresult error, const char** pStr) {
  return tell(error, pStr, &error_text::text);
}
CUresult ends::cuGetErrorName(CUresult error, const char** pStr) {
  return tell(error, pStr, &error_text::name);
}

}  // namespace outboard::frontend::cuda
