// For tests of the interpreter only: loads PTX text, owns device memory, launches. One thread.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "base/testing/places.hh"
#include "ptx/run/executor.hh"

namespace outboard::ptx {

/// Exactly the ranges it was told about.
class listed_memory : public address_space {
 public:
  bool find(std::uint64_t address, memory_range& out) const override {
    for (const auto& r : ranges) {
      if (address - r.begin < r.size) return out = r, true;
    }
    return false;
  }
  bool nearest(std::uint64_t address, memory_range& out) const override {
    std::uint64_t best = ~std::uint64_t{0};
    for (const auto& r : ranges) {
      const std::uint64_t apart = address < r.begin             ? r.begin - address
                                  : address - r.begin >= r.size ? address - r.begin - r.size
                                                                : 0;
      if (apart < best) best = apart, out = r;
    }
    return !ranges.empty();
  }
  void add(const void* at, std::size_t bytes, bool writable = true) {
    ranges.push_back({reinterpret_cast<std::uint64_t>(at), bytes, writable});
  }
  std::vector<memory_range> ranges;
};

inline std::string fixture_text(const std::string& name) {
  const std::ifstream file(in_checkout("src/ptx/fixtures/" + name + ".ptx"));
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// Packs kernel arguments as a launch does.
class packed {
 public:
  template <class... T>
  explicit packed(T... values) {
    (add(values), ...);
  }
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  template <class T>
  void add(T value) {
    bytes_.resize((bytes_.size() + sizeof value - 1) / sizeof value * sizeof value);
    const auto* p = reinterpret_cast<const std::byte*>(&value);
    bytes_.insert(bytes_.end(), p, p + sizeof value);
  }
  std::vector<std::byte> bytes_;
};

class executor_fixture : public ::testing::Test {
 protected:
  void load(const std::string& text) {
    auto parsed = parse(text);
    ASSERT_TRUE(parsed) << parsed.error().message;
    load(*parsed);
  }
  void load(const module_ptr& parsed) {
    auto loaded = instantiate(parsed, [&](const variable_info& v) -> result<void*> {
      auto& block = variables_.emplace_back(v.size / 8 + 64);
      auto at = (reinterpret_cast<std::uint64_t>(block.data()) + 255) & ~std::uint64_t{255};
      memory_.add(reinterpret_cast<void*>(at), v.size, v.space != variable_space::constant);
      return reinterpret_cast<void*>(at);
    });
    ASSERT_TRUE(loaded) << loaded.error().message;
    module_ = *loaded;
  }
  /// Why loading fails; empty when it does not.
  static std::string refusal(const std::string& text) {
    auto parsed = parse(text);
    if (!parsed) return parsed.error().message;
    auto loaded =
        instantiate(*parsed, [](const variable_info&) -> result<void*> { return failure("no memory"); });
    return loaded ? "" : loaded.error().message;
  }

  template <class T>
  std::vector<T>& device(std::vector<T>& v) {
    memory_.add(v.data(), v.size() * sizeof(T));
    return v;
  }
  launch_result launch(std::string_view kernel, dimensions grid, dimensions block, const packed& arguments,
                       std::uint32_t shared = 0, bool cooperative = false,
                       const cancel_token* cancel = nullptr) {
    launch_request r;
    r.module = module_, r.kernel = kernel, r.grid = grid, r.block = block;
    r.dynamic_shared = shared, r.parameters = arguments.bytes(), r.cooperative = cooperative,
    r.memory = &memory_;
    r.heap = heap_;
    r.set_conditional = set_conditional_;
    r.print = [&](std::string_view text) { printed_ += text; };
    return executor_.run(r, cancel);
  }

  listed_memory memory_;
  device_heap* heap_ = nullptr;
  std::function<void(std::uint64_t, std::uint32_t)> set_conditional_;
  std::vector<std::vector<std::uint64_t>> variables_;
  loaded_module_ptr module_;
  std::string printed_;
  executor executor_{2};
};

/// PTX of one kernel `k` around a body.
inline std::string kernel_text(const std::string& parameters, const std::string& body,
                               const std::string& before = "") {
  return ".version 9.0\n.target sm_90\n.address_size 64\n" + before + "\n.visible .entry k(" + parameters +
         ")\n{\n" + body + "\nret;\n}\n";
}

}  // namespace outboard::ptx
