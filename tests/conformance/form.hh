// One form of an instruction: its opcode with all modifiers, as programs write it ("cvt.rni.ftz.s32.f32").
// Plain data.
#pragma once

#include <string>
#include <vector>

namespace conformance {

struct form {
  explicit form(const std::string& text);

  bool has(const std::string& modifier) const;
  /// The first of these modifiers that the form has, else "".
  std::string first_of(std::initializer_list<const char*> modifiers) const;
  /// The n-th modifier that names a type, counted from 0; "" when there are fewer.
  std::string type(std::size_t n = 0) const;
  std::size_t types() const { return types_.size(); }

  std::string text, family;
  std::vector<std::string> modifiers;

 private:
  std::vector<std::string> types_;
};

/// Bits of a type in memory: 32 for f16x2, 1 for pred; 0 if it is not a type.
unsigned bits_of(const std::string& type);
bool is_float(const std::string& type);
/// b16 for everything that lives in a 16-bit register, and so on.
std::string register_type(const std::string& type);

}  // namespace conformance
