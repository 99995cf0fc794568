// Data from NVTX as values of ours: texts, attributes of events. Nothing of the program's is kept but the
// handles of registered strings. Any thread.
#pragma once

#include <string>

#include "frontend/annotations.hh"

extern "C" struct nvtxEventAttributes_v2;

namespace outboard::frontend::nvtx {

std::string text_of(const char* text);
/// UTF-8 of what is UTF-32 here; what is no character becomes U+FFFD.
std::string text_of(const wchar_t* text);
/// A message by NVTX's type of it. `value`: a pointer to characters, or a registered string's handle, which
/// points to its characters: NVIDIA's own sample gives one out for plain text.
std::string message(std::int32_t type, const void* value);

/// Nothing but the domain, if there are no attributes. Those of a later NVTX may have more behind what is
/// read.
annotation read(const nvtxEventAttributes_v2* attributes, const annotation_domain& domain);

}  // namespace outboard::frontend::nvtx
