// Small helpers with which the rules write PTX.
#pragma once

#include <string>
#include <vector>

#include "form.hh"

namespace conformance {

inline std::string write(const form& f, const std::vector<std::string>& operands) {
  std::string s = f.text;
  for (std::size_t n = 0; n < operands.size(); ++n) s += (n == 0 ? " " : ", ") + operands[n];
  return s + ";\n";
}

inline std::vector<std::string> joined(std::vector<std::string> a, const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// {prefix first, ...}
inline std::vector<std::string> numbered(const std::string& prefix, unsigned count, unsigned first = 0) {
  std::vector<std::string> all;
  for (unsigned n = 0; n < count; ++n) all.push_back(prefix + std::to_string(first + n));
  return all;
}

/// {x, y}, or x alone.
inline std::string vector_of(const std::vector<std::string>& registers) {
  if (registers.size() == 1) return registers[0];
  std::string s = "{";
  for (std::size_t n = 0; n < registers.size(); ++n) s += (n == 0 ? "" : ", ") + registers[n];
  return s + "}";
}

/// d, d1, d2 ...
inline std::string result_name(std::size_t n) { return n == 0 ? "d" : "d" + std::to_string(n); }

}  // namespace conformance
