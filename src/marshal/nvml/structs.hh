// How one struct of NVML travels: its size; its bytes, with zeros in place of padding and pointers; then the
// contents of its lists and texts in order. Lists travel both ways, texts only from the server. Neither side
// ever follows an address of the other. Values; one thread.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "api/nvml/layout.hh"
#include "wire/cursor.hh"

namespace outboard::marshal::nvml {

/// Most elements in one array; real answers have some hundreds (samples) to a few thousand (processes).
inline constexpr std::uint32_t max_elements = 1 << 14;
inline constexpr std::uint32_t max_text = 4096;
/// A struct may be of a version other than ours, and larger.
inline constexpr std::uint32_t max_struct = 64u << 10;

/// Returns how many bytes the struct at `at` has: a versioned one says so in its first field, and one with a
/// tail by the count of its elements.
std::uint32_t struct_size(const api::nvml::struct_layout& layout, const std::byte* at);
/// Checks the size in a version, or the count of a tail.
bool size_is_possible(const api::nvml::struct_layout& layout, const std::byte* at);

/// Texts that the library returned and never frees: the program may keep the pointers. The pool is bounded,
/// because a peer sends the texts; further texts are reported as absent.
class text_pool {
 public:
  const char* keep(std::string_view text);

 private:
  static constexpr std::size_t most = 8192;
  std::set<std::string, std::less<>> texts_;
};

/// The program's side.
void put_struct(wire::writer& w, const api::nvml::struct_layout& layout, const std::byte* at);
/// Writes the program's struct at `at`, and its own lists. Returns false if the answer does not fit.
bool take_answer(wire::reader& r, const api::nvml::struct_layout& layout, std::byte* at, text_pool& texts);

/// The server's side. Allocates `elements` of `stride` bytes and one more, all zero, or returns nullptr.
using make_list = std::function<std::byte*(std::uint32_t elements, std::size_t stride)>;
/// Returns how many elements the list at this address may return; nothing: it is not a list that we made.
using list_elements = std::function<std::optional<std::uint32_t>(const std::byte* list, std::uint32_t said)>;

/// Reads one struct into `at`, which is zeroed and has `room` bytes.
bool take_question(wire::reader& r, const api::nvml::struct_layout& layout, std::byte* at, std::size_t room,
                   const make_list& make);
void put_answer(wire::writer& w, const api::nvml::struct_layout& layout, const std::byte* at,
                const list_elements& elements);

}  // namespace outboard::marshal::nvml
