// The back-end's half of a generated function: a request of a peer into native arguments, the native outputs
// into a reply. Memory for arrays comes from the lane's scratch resource, which the caller releases after
// each request.
#pragma once

#include <string_view>
#include <tuple>
#include <utility>

#include "marshal/codec.hh"

namespace outboard::marshal {

/// Translates handles of a session; implemented by the worker's object tables.
class handle_resolver {
 public:
  virtual ~handle_resolver() = default;
  /// 0 and the native object; the original code of a failed creation; or the API's code for a handle that is
  /// none.
  virtual std::int32_t native_of(api::handle_kind kind, std::uint64_t value, void*& native) = 0;
  /// What the client knows the object by, or a new id of a server-born one; the same object always yields the
  /// same id.
  virtual std::uint64_t mint(api::handle_kind kind, void* native) = 0;
};

enum class decode_status : std::uint8_t {
  ok,
  refused,    ///< understood, but a handle is dead: answer `code` without executing
  malformed,  ///< the session ends
};

struct decode_state {
  wire::reader& from;
  handle_resolver& handles;
  std::pmr::memory_resource& scratch;
  std::int32_t code = 0;        ///< first refusal
  std::uint64_t created = 0;    ///< id chosen by the front-end for the created handle
  bool creates_anyway = false;  ///< the handle is wanted though the front-end may have chosen no id
  std::uint64_t destroyed = 0;  ///< id in the `destroys` parameter
};

namespace detail {

/// Stream values that mean a default stream: null, legacy, per-thread.
inline bool default_stream(std::uint64_t value) { return value <= 2; }

template <class H>
H resolve_handle(decode_state& s, std::uint64_t value) {
  constexpr api::handle_kind kind = api::handle_trait<H>::kind;
  if (value == 0 || (kind == api::handle_kind::stream && default_stream(value)))
    return reinterpret_cast<H>(value);
  void* native = nullptr;
  const std::int32_t code = s.handles.native_of(kind, value, native);
  if (code != 0 && s.code == 0) s.code = code;
  return static_cast<H>(native);
}

template <class T, bool Wide>
struct argument {
  T native{};

  void take(decode_state& s, const api::parameter&, bool, bool destroyed) {
    if constexpr (api::handle_type<T>) {
      const auto value = s.from.get<std::uint64_t>();
      if (destroyed) s.destroyed = value;
      native = resolve_handle<T>(s, value);
    } else {
      native = get_value<Wide, T>(s.from);
    }
  }
  std::uint64_t counting() const { return counting_value(native); }
  template <class Counts>
  void make_room(decode_state&, const api::parameter&, bool, const Counts&) {}
  template <class Counts>
  void put(wire::writer&, handle_resolver&, const api::parameter&, bool, const Counts&) const {}
};

template <pointer_parameter T, bool Wide>
struct argument<T, Wide> {
  using element = element_of<T>;
  element* native_elements = nullptr;
  bool present = false;
  std::uint64_t count = 0;  ///< elements that came in

  T pointer() const { return static_cast<T>(native_elements); }

  element* allocate(decode_state& s, std::uint64_t n) {
    void* raw = s.scratch.allocate((n ? n : 1) * sizeof(element), alignof(std::max_align_t));
    std::memset(raw, 0, (n ? n : 1) * sizeof(element));
    return static_cast<element*>(raw);
  }

  void take(decode_state& s, const api::parameter& p, bool created, bool) {
    if (created) {
      s.created = s.from.get<std::uint64_t>();
      present = s.created != 0 || s.creates_anyway || !p.may_be_null;
      if (present) native_elements = allocate(s, 1);
      return;
    }
    present = s.from.flag();
    if (!present || !travels_in(p)) return;
    if (p.count == api::count_kind::string) {
      const std::string_view text = s.from.text();
      native_elements = allocate(s, text.size() + 1);
      std::memcpy(static_cast<void*>(native_elements), text.data(), text.size());
      return;
    }
    count = s.from.get<std::uint64_t>();
    if (count > max_elements) return s.from.fail();
    native_elements = allocate(s, count);
    for (std::uint64_t i = 0; i < count && s.from.ok(); ++i) take_element(s, native_elements[i]);
  }

  void take_element(decode_state& s, element& e) {
    if constexpr (api::handle_type<element>) {
      e = resolve_handle<element>(s, s.from.get<std::uint64_t>());
    } else if constexpr (std::is_same_v<element, std::byte>) {
      e = static_cast<std::byte>(s.from.get<std::uint8_t>());
    } else {
      e = get_value<Wide, element>(s.from);
    }
  }

  std::uint64_t counting() const {
    if constexpr (std::is_integral_v<element>)
      return native_elements ? static_cast<std::uint64_t>(*native_elements) : 0;
    return 0;
  }

  /// After all parameters are in: room for outputs; and an input array must have the length its count says.
  template <class Counts>
  void make_room(decode_state& s, const api::parameter& p, bool created, const Counts& counts) {
    if (created || !present || p.count == api::count_kind::string) return;
    const std::uint64_t n = elements(p, counts);
    if (n > max_elements) return s.from.fail();
    if (travels_in(p)) {
      if (n != count) s.from.fail();
    } else {
      native_elements = allocate(s, n);
    }
  }

  template <class Counts>
  void put(wire::writer& w, handle_resolver& handles, const api::parameter& p, bool created,
           const Counts& counts) const {
    if (created || !present || !travels_out(p) || p.count == api::count_kind::string) return;
    const std::uint64_t n = elements(p, counts);
    w.put(n);
    for (std::uint64_t i = 0; i < n; ++i) {
      if constexpr (api::handle_type<element>) {
        w.put(native_elements[i] ? handles.mint(api::handle_trait<element>::kind, native_elements[i]) : 0);
      } else if constexpr (std::is_same_v<element, std::byte>) {
        w.put(static_cast<std::uint8_t>(native_elements[i]));
      } else {
        put_value<Wide>(w, native_elements[i]);
      }
    }
  }
};

template <class T, bool Wide>
T native_value(const argument<T, Wide>& a) {
  if constexpr (pointer_parameter<T>) {
    return a.present ? a.pointer() : nullptr;
  } else {
    return a.native;
  }
}

}  // namespace detail

/// The decoded request of one generated function.
template <auto Op, class F = typename api::function<Op>::prototype>
class execution;

template <auto Op, class R, class... A>
class execution<Op, R(A...)> {
 public:
  static constexpr const api::description& about = api::function<Op>::about;

  decode_status decode(decode_state& s) {
    if constexpr (about.returns) s.created = s.from.get<std::uint64_t>();
    each([&](auto& a, std::size_t i) {
      a.take(s, about.parameters[i], i == about.creates, i == about.destroys);
    });
    if (!s.from.finished()) return decode_status::malformed;
    counts_ = counts();
    each([&](auto& a, std::size_t i) { a.make_room(s, about.parameters[i], i == about.creates, counts_); });
    if (!s.from.ok()) return decode_status::malformed;
    return s.code == 0 ? decode_status::ok : decode_status::refused;
  }

  template <class Fn>
  R run(Fn* entry) {
    return std::apply([&](auto&... a) { return entry(detail::native_value(a)...); }, arguments_);
  }

  /// The same of a line with `returns`, which tells its error through the last parameter.
  template <class Fn, class Error>
  R run_returning(Fn* entry, Error& error) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return entry(detail::native_value(std::get<I>(arguments_))..., &error);
    }
    (std::make_index_sequence<sizeof...(A) - 1>{});
  }

  template <std::size_t I>
  auto argument() const {
    return detail::native_value(std::get<I>(arguments_));
  }

  /// The native handle that the call made (lines with `creates`).
  void* created() const {
    void* made = nullptr;
    if constexpr (about.creates != api::no_parameter) {
      auto* const place = std::get<about.creates>(arguments_).native_elements;
      if (place) made = static_cast<void*>(*place);
    }
    return made;
  }

  void encode_outputs(wire::writer& w, handle_resolver& handles) {
    each(
        [&](auto& a, std::size_t i) { a.put(w, handles, about.parameters[i], i == about.creates, counts_); });
  }

 private:
  template <class Visit>
  void each(Visit&& visit) {
    std::size_t i = 0;
    std::apply([&](auto&... a) { ((visit(a, i), ++i), ...); }, arguments_);
  }
  std::array<std::uint64_t, sizeof...(A) + 1> counts() const {
    return std::apply(
        [](auto&... a) {
          return std::array<std::uint64_t, sizeof...(A) + 1>{a.counting()..., 0};
        },
        arguments_);
  }

  std::tuple<detail::argument<A, api::integers_travel_wide<decltype(Op)>>...> arguments_;
  std::array<std::uint64_t, sizeof...(A) + 1> counts_{};
};

}  // namespace outboard::marshal
