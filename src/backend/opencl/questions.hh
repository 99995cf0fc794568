// Reads answers of clGet…Info as values of fixed size, lists or texts. `ask` is the function with all
// parameters bound except the last three (size, place, wanted size). Pure functions; any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/opencl/table.hh"

namespace outboard::backend::opencl {

/// An upper bound for answers; build logs are the longest.
inline constexpr std::size_t longest_answer = 64u << 20;

template <class T, class Ask>
std::optional<T> value_of(Ask&& ask) {
  T value{};
  return ask(sizeof value, &value, nullptr) == CL_SUCCESS ? std::optional<T>(value) : std::nullopt;
}

template <class T, class Ask>
std::vector<T> list_of(Ask&& ask) {
  std::size_t size = 0;
  if (ask(0, nullptr, &size) != CL_SUCCESS || size > longest_answer) return {};
  std::vector<T> list(size / sizeof(T));
  if (!list.empty() && ask(list.size() * sizeof(T), list.data(), nullptr) != CL_SUCCESS) return {};
  return list;
}

/// Returns the text without the zero byte at its end.
template <class Ask>
std::string text_of(Ask&& ask) {
  const std::vector<char> bytes = list_of<char>(ask);
  std::string text(bytes.begin(), bytes.end());
  if (!text.empty() && text.back() == '\0') text.pop_back();
  return text;
}

/// Returns the size in bytes; nothing if it is not a memory object.
inline std::optional<std::size_t> size_of_memory(const api::opencl::function_table& table, cl_mem memory) {
  return value_of<std::size_t>([&](std::size_t size, void* to, std::size_t* wanted) {
    return table.clGetMemObjectInfo(memory, CL_MEM_SIZE, size, to, wanted);
  });
}

}  // namespace outboard::backend::opencl
