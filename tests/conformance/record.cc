#include "record.hh"

#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <sstream>

#include "operands.hh"

namespace conformance {
namespace {

constexpr std::size_t marked_threads = 4;  // divides the threads of every kernel
constexpr char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

std::uint64_t hash_of(const std::uint8_t* bytes, std::size_t size,
                      std::uint64_t hash = 1469598103934665603u) {
  for (std::size_t n = 0; n < size; ++n) hash = (hash ^ bytes[n]) * 1099511628211u;
  return hash;
}

std::string hexadecimal(const std::uint8_t* bytes, std::size_t size) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string s;
  for (std::size_t n = size; n-- > 0;) s += digits[bytes[n] >> 4], s += digits[bytes[n] & 15];
  return s;
}

/// The bytes of a row that a result of this type uses.
std::size_t size_of(const std::string& type) {
  return type == "raw" ? 16 : type == "pred" ? 4 : std::max(2u, bits_of(type) / 8);
}

std::size_t row_bytes(const kernel& k) { return result_bytes * std::max<std::size_t>(k.out.size(), 1); }

double value_of(const std::string& type, const std::uint8_t* at, std::size_t part) {
  std::uint64_t bits = 0;
  if (type == "f64") return std::memcpy(&bits, at, 8), std::bit_cast<double>(bits);
  if (type == "f32") return std::memcpy(&bits, at, 4), std::bit_cast<float>(static_cast<std::uint32_t>(bits));
  std::memcpy(&bits, at + 2 * part, 2);
  if (type[0] == 'b') return std::bit_cast<float>(static_cast<std::uint32_t>(bits << 16));
  const int exponent = static_cast<int>(bits >> 10 & 31), mantissa = static_cast<int>(bits & 1023);
  const double sign = bits & 0x8000 ? -1 : 1;
  if (exponent == 31) return mantissa ? std::nan("") : sign * HUGE_VAL;
  return sign * (exponent ? std::ldexp(1024 + mantissa, exponent - 25) : std::ldexp(mantissa, -24));
}

bool close(double x, double y, const tolerance& t) {
  if (std::isnan(x) || std::isnan(y)) return std::isnan(x) == std::isnan(y);
  if (std::isinf(x) || std::isinf(y)) return x == y;
  return std::abs(x - y) <= t.absolute + t.relative * std::abs(y);
}

bool agree(const std::string& type, const std::uint8_t* mine, const std::uint8_t* recorded,
           const tolerance& t) {
  if (!is_float(type) || type == "tf32") return std::memcmp(mine, recorded, size_of(type)) == 0;
  const std::size_t parts = type.find("x2") == std::string::npos ? 1 : 2;
  for (std::size_t n = 0; n < parts; ++n) {
    if (!close(value_of(type, mine, n), value_of(type, recorded, n), t)) return false;
  }
  return true;
}

/// One character for the results of a group of threads.
char mark(const kernel& k, const run_result& r, std::size_t group) {
  return alphabet[hash_of(r.rows.data() + group * marked_threads * row_bytes(k),
                          marked_threads * row_bytes(k)) >>
                  58];
}

std::string all_hash(const kernel& k, const run_result& r) {
  std::uint64_t h = hash_of(r.scratch.data(), r.scratch.size());
  if (k.within.exact()) h = hash_of(r.rows.data(), r.rows.size(), h);
  std::uint8_t bytes[8];
  std::memcpy(bytes, &h, 8);
  return hexadecimal(bytes, 8);
}

std::uint8_t from_digit(char c) { return static_cast<std::uint8_t>(c <= '9' ? c - '0' : c - 'a' + 10); }

/// The results of a line "within", as rows.
std::vector<std::uint8_t> rows_of(const kernel& k, const std::string& data, std::size_t threads) {
  std::vector<std::uint8_t> rows(threads * row_bytes(k));
  std::size_t at = 0;
  for (std::size_t t = 0; t < threads; ++t) {
    for (std::size_t n = 0; n < k.out.size(); ++n) {
      const std::size_t size = size_of(k.out[n]);
      if (at + 2 * size > data.size()) return {};
      for (std::size_t b = size; b-- > 0; at += 2) {
        rows[t * row_bytes(k) + n * result_bytes + b] =
            static_cast<std::uint8_t>(from_digit(data[at]) << 4 | from_digit(data[at + 1]));
      }
    }
  }
  return rows;
}

}  // namespace

std::string thread_text(const kernel& k, const run_result& r, std::size_t thread) {
  const auto operands = operands_of(k);
  std::string s = "thread " + std::to_string(thread) + ":";
  for (std::size_t n = 0; n < k.in.size(); ++n) {
    s += " " + std::string(1, "abce"[n]) + "=" +
         hexadecimal(operands.data() + thread * operand_stride + n * 16,
                     std::max<std::size_t>(bits_of(k.in[n].type) / 8, 1));
  }
  for (std::size_t n = 0; n < k.out.size(); ++n) {
    s += " d" + std::to_string(n) + "=" +
         hexadecimal(r.rows.data() + thread * row_bytes(k) + n * result_bytes, size_of(k.out[n]));
  }
  return s;
}

void normalise(const kernel& k, run_result& r) {
  for (std::size_t t = 0; t < r.threads; ++t) {
    for (std::size_t n = 0; n < k.out.size(); ++n) {
      if (k.out[n] != "f64") continue;  // smaller types have one NaN, which the ISA names
      std::uint8_t* at = r.rows.data() + t * row_bytes(k) + n * result_bytes;
      if (!std::isnan(value_of("f64", at, 0))) continue;
      const std::uint64_t canonical = 0x7ff8000000000000;
      std::memcpy(at, &canonical, 8);
    }
  }
}

record record_of(const kernel& k, const run_result& r) {
  if (!r.failure.empty()) return {"failed", "-", r.failure.substr(0, r.failure.find('\n'))};
  record out{k.within.exact() ? "exact" : "within", all_hash(k, r), ""};
  if (k.within.exact()) {
    for (std::size_t g = 0; g < r.threads / marked_threads; ++g) out.data += mark(k, r, g);
    return out;
  }
  for (std::size_t t = 0; t < r.threads; ++t) {
    for (std::size_t n = 0; n < k.out.size(); ++n) {
      out.data += hexadecimal(r.rows.data() + t * row_bytes(k) + n * result_bytes, size_of(k.out[n]));
    }
  }
  return out;
}

std::string line_of(const std::string& form, const record& r) {
  return form + "\t" + r.kind + "\t" + r.hash + "\t" + r.data + "\n";
}

std::map<std::string, record> read_records(const std::string& path) {
  std::map<std::string, record> all;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream fields(line);
    std::string name;
    record r;
    std::getline(fields, name, '\t'), std::getline(fields, r.kind, '\t'), std::getline(fields, r.hash, '\t');
    std::getline(fields, r.data);
    all[name] = r;
  }
  return all;
}

std::string difference(const kernel& k, const run_result& r, const record& expected) {
  if (!r.failure.empty()) return r.failure;
  if (expected.kind == "failed") return "the recording device failed: " + expected.data;
  if (k.within.exact()) {
    if (all_hash(k, r) == expected.hash) return "";
    for (std::size_t g = 0; g < r.threads / marked_threads && g < expected.data.size(); ++g) {
      if (mark(k, r, g) == expected.data[g]) continue;
      std::string text = "other bits among";
      for (std::size_t n = 0; n < marked_threads; ++n)
        text += " " + thread_text(k, r, g * marked_threads + n) + ";";
      return text;
    }
    return k.scratch || k.texture.surface ? "other bits in memory"
                                          : "other bits, in a thread that the marks do not show";
  }
  const auto rows = rows_of(k, expected.data, r.threads);
  if (rows.empty()) return "the recorded line is too short";
  for (std::size_t t = 0; t < r.threads; ++t) {
    for (std::size_t n = 0; n < k.out.size(); ++n) {
      const std::size_t at = t * row_bytes(k) + n * result_bytes;
      if (agree(k.out[n], r.rows.data() + at, rows.data() + at, k.within)) continue;
      return "too far from " + hexadecimal(rows.data() + at, size_of(k.out[n])) + " in " +
             thread_text(k, r, t);
    }
  }
  return all_hash(k, r) == expected.hash ? "" : "other bits in memory";
}

}  // namespace conformance
