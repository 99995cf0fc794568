// Expands every implemented line of the tables, and every other one that has a behaviour, into an entry of
// the mock.
#include <cstring>
#include <type_traits>

#include "api/cuda/handles.hh"
#include "device/mock/state.hh"

namespace outboard::device::mock {
namespace {

template <class T>
std::uint64_t raw(const T& value) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, std::min(sizeof bits, sizeof value));
  return bits;
}

template <class T>
concept complete = requires {
  sizeof(T);
};

/// One out parameter of the generic answer: a fresh handle where the type is one, else zero bytes.
template <class T>
void answer(T& argument, const api::parameter& about) {
  if constexpr (std::is_pointer_v<T> && !api::handle_type<T>) {
    using value = std::remove_pointer_t<T>;
    // Arrays are left alone: their owners (behaviours) know their sizes.
    if constexpr (complete<value> && !std::is_void_v<value> && !std::is_const_v<value>) {
      if (about.dir != api::direction::out || about.count != api::count_kind::one || argument == nullptr)
        return;
      if constexpr (api::handle_type<value>) {
        *argument = reinterpret_cast<value>(here().make_handle());
      } else {
        std::memset(static_cast<void*>(argument), 0, sizeof(value));
      }
    }
  }
}

template <api::opcode Code, class F, auto Member>
struct entry;

template <api::opcode Code, class... A, auto Member>
struct entry<Code, CUresult(A...), Member> {
  static CUresult CUDAAPI call(A... arguments) {
    state& s = here();
    CUresult result = s.calls.begin(Code);
    if (result == CUDA_SUCCESS) {
      if (const auto behaviour = behaviours().*Member; behaviour != nullptr) {
        result = behaviour(arguments...);
      } else if constexpr (requires { api::function<Code>::about; }) {
        std::size_t i = 0;
        (answer(arguments, api::function<Code>::about.parameters[i++]), ...);
      }
    }
    const std::array<std::uint64_t, sizeof...(A) + 1> values{raw(arguments)...};
    s.calls.end(Code, api::find_function(static_cast<std::uint32_t>(Code))->name,
                std::span(values).first(sizeof...(A)), result);
    return result;
  }
};

}  // namespace

void fill_entries(api::driver_table& table) {
#define CHAPTER(number, file)
#define OUTBOARD_LINE(how, symbol, ...) OUTBOARD_FILL_##how(symbol)
#define OUTBOARD_FILL_call(symbol) \
  table.symbol = &entry<api::opcode::symbol, decltype(::symbol), &api::driver_table::symbol>::call;
#define OUTBOARD_FILL_post OUTBOARD_FILL_call
#define OUTBOARD_FILL_custom OUTBOARD_FILL_call
#define OUTBOARD_FILL_via OUTBOARD_FILL_call
#define OUTBOARD_FILL_local OUTBOARD_FILL_call
// What programs may not call yet, the back-end may still ask of its device: where there is a behaviour, an
// entry.
#define OUTBOARD_FILL_later(symbol) \
  if (behaviours().symbol != nullptr) OUTBOARD_FILL_call(symbol)
#define OUTBOARD_FILL_refused(symbol)
#include "api/cuda/expand.def"
#undef OUTBOARD_FILL_call
#undef OUTBOARD_FILL_post
#undef OUTBOARD_FILL_custom
#undef OUTBOARD_FILL_via
#undef OUTBOARD_FILL_local
#undef OUTBOARD_FILL_later
#undef OUTBOARD_FILL_refused
#undef OUTBOARD_LINE
#undef CHAPTER
}

}  // namespace outboard::device::mock
