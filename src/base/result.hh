// result<T>: a value or an error whose kind says what the caller may do next. Not for CUDA results (those are
// data and travel as CUresult), nor for our own bugs (CHECK). Value type; no thread rules of its own.
#pragma once

#include <string>
#include <utility>
#include <variant>

#include "base/check.hh"

namespace outboard {

/// What the receiver of an error may do about it.
enum class action {
  fail,       ///< nothing: report it
  retry,      ///< the same request may succeed later (busy, a resource is short)
  reconnect,  ///< the peer is gone; a new connection may work
  fall_back,  ///< this way is not supported here; use another
};

struct error {
  action next = action::fail;
  std::string message;  ///< one sentence with the offending value and the limit; no trailing newline
  int reason = 0;       ///< why the peer refused, by its protocol's numbers; 0: none
};

inline error failure(std::string message) { return {action::fail, std::move(message)}; }

template <class T = void>
class [[nodiscard]] result {
 public:
  result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  result(outboard::error e) : state_(std::in_place_index<1>, std::move(e)) {}

  explicit operator bool() const { return state_.index() == 0; }
  bool ok() const { return state_.index() == 0; }

  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(value()); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  /// Precondition: ok().
  T& value() & { return CHECK(ok()), std::get<0>(state_); }
  const T& value() const& { return CHECK(ok()), std::get<0>(state_); }
  T&& value() && { return CHECK(ok()), std::get<0>(std::move(state_)); }

  /// Precondition: !ok().
  const outboard::error& error() const& { return CHECK(!ok()), std::get<1>(state_); }
  outboard::error&& error() && { return CHECK(!ok()), std::get<1>(std::move(state_)); }

 private:
  std::variant<T, outboard::error> state_;
};

template <>
class [[nodiscard]] result<void> {
 public:
  result() = default;
  result(outboard::error e) : error_(std::move(e)), ok_(false) {}

  explicit operator bool() const { return ok_; }
  bool ok() const { return ok_; }
  const outboard::error& error() const& { return CHECK(!ok_), error_; }
  outboard::error&& error() && { return CHECK(!ok_), std::move(error_); }

 private:
  outboard::error error_;
  bool ok_ = true;
};

using status = result<void>;

}  // namespace outboard

/// Returns the error of a status from the enclosing function, and does nothing else.
#define OUTBOARD_TRY(expression)                                                                \
  do {                                                                                          \
    if (auto try_status = (expression); !try_status.ok()) return std::move(try_status).error(); \
  } while (0)
