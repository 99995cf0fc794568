#include "form.hh"

#include <algorithm>
#include <map>

namespace conformance {

unsigned bits_of(const std::string& type) {
  static const std::map<std::string, unsigned> all = {
      {"pred", 1}, {"b8", 8},      {"u8", 8},   {"s8", 8},     {"b16", 16},   {"u16", 16},    {"s16", 16},
      {"f16", 16}, {"bf16", 16},   {"b32", 32}, {"u32", 32},   {"s32", 32},   {"f32", 32},    {"f16x2", 32},
      {"b64", 64}, {"bf16x2", 32}, {"u64", 64}, {"s64", 64},   {"f64", 64},   {"b128", 128},  {"tf32", 32},
      {"s4", 4},   {"u4", 4},      {"b1", 1},   {"u16x2", 32}, {"s16x2", 32}, {"e4m3x2", 16}, {"e5m2x2", 16}};
  const auto found = all.find(type);
  return found == all.end() ? 0 : found->second;
}

bool is_float(const std::string& type) {
  return type == "f32" || type == "f64" || type == "f16" || type == "bf16" || type == "f16x2" ||
         type == "bf16x2" || type == "tf32";
}

std::string register_type(const std::string& type) {
  const unsigned bits = bits_of(type);
  return type == "pred" ? "pred" : bits <= 16 ? "b16" : bits == 32 ? "b32" : bits == 64 ? "b64" : "b128";
}

form::form(const std::string& whole) : text(whole) {
  std::size_t at = whole.find('.');
  family = whole.substr(0, at);
  while (at != std::string::npos) {
    const std::size_t next = whole.find('.', at + 1);
    modifiers.push_back(whole.substr(at + 1, next == std::string::npos ? next : next - at - 1));
    at = next;
  }
  for (const auto& m : modifiers) {
    if (bits_of(m) != 0) types_.push_back(m);
  }
}

bool form::has(const std::string& modifier) const {
  return std::find(modifiers.begin(), modifiers.end(), modifier) != modifiers.end();
}

std::string form::first_of(std::initializer_list<const char*> list) const {
  for (const char* m : list) {
    if (has(m)) return m;
  }
  return "";
}

std::string form::type(std::size_t n) const { return n < types_.size() ? types_[n] : ""; }

}  // namespace conformance
