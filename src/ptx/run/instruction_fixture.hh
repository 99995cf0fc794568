// For tests of single instructions: 32 lanes get values a, b, c and store d. One thread.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "ptx/run/executor_testing.hh"

namespace outboard::ptx {

class instruction_test : public executor_fixture {
 protected:
  /// Runs `text` for up to 32 lanes; registers a, b, c (of type A, B, C) are loaded, d (of type D) is stored.
  /// Also at hand: p q predicates, r0..r7 .b32, h0..h3 .b16, w0..w3 .b64, t (lane number).
  template <class D, class A, class B = A, class C = A>
  std::vector<D> run(const std::string& text, const std::vector<A>& a, std::vector<B> b = {},
                     std::vector<C> c = {}) {
    b.resize(a.size()), c.resize(a.size());
    std::vector<A> first = a;
    std::vector<D> d(a.size());
    memory_.ranges.clear();
    device(first), device(b), device(c), device(d);
    const auto bits = [](std::size_t bytes) { return ".b" + std::to_string(bytes * 8); };
    std::string body = ".reg .pred p, q; .reg .b32 r<8>; .reg .b16 h<4>; .reg .b64 w<4>, at; .reg .u32 t;\n";
    const std::pair<const char*, std::size_t> values[] = {
        {"a", sizeof(A)}, {"b", sizeof(B)}, {"c", sizeof(C)}, {"d", sizeof(D)}};
    for (const auto& [name, bytes] : values)
      body += ".reg " + bits(std::max<std::size_t>(bytes, 2)) + " " + name + ";\n";
    body += "mov.u32 t, %tid.x;\n";
    const auto address = [&](const std::string& name, std::size_t bytes) {
      return "ld.param.u64 at, [p" + name + "]; mad.wide.u32 at, t, " + std::to_string(bytes) + ", at;\n";
    };
    for (const auto& [name, bytes] : values) {
      if (name[0] != 'd') body += address(name, bytes) + "ld.global" + bits(bytes) + " " + name + ", [at];\n";
    }
    body += text + "\n" + address("d", sizeof(D)) + "st.global" + bits(sizeof(D)) + " [at], d;\n";
    load(kernel_text(".param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u64 pd", body));
    if (!module_) return d;
    const auto r = launch("k", {1, 1, 1}, {static_cast<std::uint32_t>(a.size()), 1, 1},
                          packed(first.data(), b.data(), c.data(), d.data()));
    EXPECT_TRUE(r.ok()) << r.text;
    return d;
  }
  template <class T>
  using list = std::vector<T>;
};

}  // namespace outboard::ptx
