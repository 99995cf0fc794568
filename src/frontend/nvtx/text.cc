#include "frontend/nvtx/text.hh"

#include <cstddef>
#include <cstdint>

#include "frontend/nvtx/headers.hh"

namespace outboard::frontend::nvtx {
namespace {

void append(std::string& out, std::uint32_t character) {
  const auto put = [&](std::uint32_t byte) { out += static_cast<char>(byte); };
  const auto tail = [&](int shift) { put(0x80 | (character >> shift & 0x3f)); };
  if (character > 0x10ffff || (character >= 0xd800 && character < 0xe000)) character = 0xfffd;
  if (character < 0x80) {
    put(character);
  } else if (character < 0x800) {
    put(0xc0 | character >> 6), tail(0);
  } else if (character < 0x10000) {
    put(0xe0 | character >> 12), tail(6), tail(0);
  } else {
    put(0xf0 | character >> 18), tail(12), tail(6), tail(0);
  }
}

annotation_payload payload_of(const nvtxEventAttributes_t& from) {
  switch (from.payloadType) {
    case NVTX_PAYLOAD_TYPE_UNSIGNED_INT64:
      return from.payload.ullValue;
    case NVTX_PAYLOAD_TYPE_INT64:
      return from.payload.llValue;
    case NVTX_PAYLOAD_TYPE_DOUBLE:
      return from.payload.dValue;
    case NVTX_PAYLOAD_TYPE_UNSIGNED_INT32:
      return from.payload.uiValue;
    case NVTX_PAYLOAD_TYPE_INT32:
      return from.payload.iValue;
    case NVTX_PAYLOAD_TYPE_FLOAT:
      return from.payload.fValue;
    default:
      return {};
  }
}

}  // namespace

std::string text_of(const char* text) { return text ? text : ""; }

std::string text_of(const wchar_t* text) {
  static_assert(sizeof(wchar_t) == sizeof(std::uint32_t));
  std::string out;
  for (; text && *text; ++text) append(out, static_cast<std::uint32_t>(*text));
  return out;
}

std::string message(std::int32_t type, const void* value) {
  if (type == NVTX_MESSAGE_TYPE_UNICODE) return text_of(static_cast<const wchar_t*>(value));
  const bool characters = type == NVTX_MESSAGE_TYPE_ASCII || type == NVTX_MESSAGE_TYPE_REGISTERED;
  return characters ? text_of(static_cast<const char*>(value)) : std::string();
}

annotation read(const nvtxEventAttributes_v2* attributes, const annotation_domain& domain) {
  annotation a;
  a.domain = &domain;
  // All versions begin with these fields; a struct that says that it is smaller has none of them.
  constexpr std::size_t least = offsetof(nvtxEventAttributes_t, message) + sizeof(nvtxMessageValue_t);
  if (!attributes || attributes->size < least) return a;
  a.category = attributes->category;
  if (attributes->colorType == NVTX_COLOR_ARGB) a.color = attributes->color;
  a.payload = payload_of(*attributes);
  a.text = message(attributes->messageType, attributes->message.ascii);
  return a;
}

}  // namespace outboard::frontend::nvtx
