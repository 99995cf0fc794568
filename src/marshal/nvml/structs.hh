// How one struct of NVML travels: its size, its bytes with nothing but zeros where they are padding or point
// somewhere, then in their order what its lists and texts lead to. Lists go both ways, texts from the server
// only. No address of one side is ever followed by the other. Values; one thread.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "api/nvml/layout.hh"
#include "wire/cursor.hh"

namespace outboard::marshal::nvml {

/// Elements of one array; real answers have some hundreds (samples) to a few thousand (processes).
inline constexpr std::uint32_t max_elements = 1 << 14;
inline constexpr std::uint32_t max_text = 4096;
/// A struct may be of another version than ours, and larger.
inline constexpr std::uint32_t max_struct = 64u << 10;

/// Bytes of the struct at `at` that are there: of a versioned one as many as its first field says, of one
/// with a tail as many as that has elements.
std::uint32_t struct_size(const api::nvml::struct_layout& layout, const std::byte* at);
/// What a version may say, or what a count may that a tail has.
bool size_is_possible(const api::nvml::struct_layout& layout, const std::byte* at);

/// Texts that a library gave away for good: the program may keep the pointers. Bounded, because what comes in
/// is a peer's: further texts are told as absent.
class text_pool {
 public:
  const char* keep(std::string_view text);

 private:
  static constexpr std::size_t most = 8192;
  std::set<std::string, std::less<>> texts_;
};

/// The program's side.
void put_struct(wire::writer& w, const api::nvml::struct_layout& layout, const std::byte* at);
/// Writes over the program's struct at `at`, into its own lists. False: the answer does not fit it.
bool take_answer(wire::reader& r, const api::nvml::struct_layout& layout, std::byte* at, text_pool& texts);

/// The server's side. Memory for `elements` of `stride` bytes and one more, all zero, or nullptr.
using make_list = std::function<std::byte*(std::uint32_t elements, std::size_t stride)>;
/// How many elements the list at this address may bring back; none: it is not one that we made.
using list_elements = std::function<std::optional<std::uint32_t>(const std::byte* list, std::uint32_t said)>;

/// Takes one struct to `at`, zeroed, which has room for `room` bytes.
bool take_question(wire::reader& r, const api::nvml::struct_layout& layout, std::byte* at, std::size_t room,
                   const make_list& make);
void put_answer(wire::writer& w, const api::nvml::struct_layout& layout, const std::byte* at,
                const list_elements& elements);

}  // namespace outboard::marshal::nvml
