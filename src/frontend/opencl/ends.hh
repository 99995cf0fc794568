// Declares the front-end's ends: every line of the tables but the LATER ones is a function of the same name
// and type in this namespace; of extensions' functions the CUSTOM and LOCAL ones are (plain_end.hh is the end
// of the others). A line without a definition is a link error of the library. Any thread; called from the C
// ABI, so nothing may throw.
#pragma once

#include "api/opencl/functions.hh"

namespace outboard::frontend::opencl::ends {

#define CHAPTER(number, file)
#define OUTBOARD_LINE(how, symbol, ...) OUTBOARD_END_##how(symbol)
#define OUTBOARD_END_call(symbol) decltype(::symbol) symbol;
#define OUTBOARD_END_post OUTBOARD_END_call
#define OUTBOARD_END_custom OUTBOARD_END_call
#define OUTBOARD_END_local OUTBOARD_END_call
#define OUTBOARD_END_later(symbol)
#define OUTBOARD_CORE_LINES
#include "api/opencl/expand.def"
#undef OUTBOARD_CORE_LINES
#undef OUTBOARD_END_call
#undef OUTBOARD_END_post
#undef OUTBOARD_END_custom
#undef OUTBOARD_END_local
#undef OUTBOARD_END_later
#undef OUTBOARD_LINE
#undef CHAPTER

#define PROMOTED(extension, symbol, core)
#define EXTENSION(extension, how, symbol, ...) OUTBOARD_END_##how(symbol)
#define OUTBOARD_END_CALL(symbol)
#define OUTBOARD_END_POST(symbol)
#define OUTBOARD_END_CUSTOM(symbol) decltype(::symbol) symbol;
#define OUTBOARD_END_LOCAL OUTBOARD_END_CUSTOM
#include "api/opencl/extensions.def"
#undef OUTBOARD_END_CALL
#undef OUTBOARD_END_POST
#undef OUTBOARD_END_CUSTOM
#undef OUTBOARD_END_LOCAL
#undef EXTENSION
#undef PROMOTED

/// What a loader asks for first (cl_khr_icd): our platforms, or that there are none.
cl_int icd_platforms(cl_uint num_entries, cl_platform_id* platforms, cl_uint* num_platforms);

}  // namespace outboard::frontend::opencl::ends
