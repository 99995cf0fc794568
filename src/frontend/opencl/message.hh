// A request that is being built in the calling thread's buffer, and then posted or called; each thread has
// one at a time. Answers are codes of OpenCL; a lost session is CL_DEVICE_NOT_AVAILABLE. Replies are decoded
// here and nowhere else: a malformed one ends the session, and the call returns the code of a lost one.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "frontend/lane.hh"
#include "frontend/opencl/back_ends.hh"
#include "marshal/fields.hh"
#include "marshal/opencl/bodies.hh"
#include "marshal/request.hh"
#include "wire/handle.hh"

namespace outboard::frontend::opencl {

using api::opencl::opcode;
using api::opencl::service;

class message {
 public:
  explicit message(opcode code) : message(static_cast<std::uint32_t>(code)) {}
  explicit message(service code) : message(static_cast<std::uint32_t>(code)) {}

  wire::writer& body() { return writer_; }

  cl_int post(std::span<const std::byte> bulk = {}, const landing* land = nullptr);
  /// For requests whose reply holds only the code. `descriptor`: receives the one that the server sends with
  /// its answer, if any.
  cl_int call(std::span<const std::byte> bulk = {}, const landing* land = nullptr,
              unique_fd* descriptor = nullptr);

  /// The reply of a successful request holds what `take(wire::reader&)` reads from it, and nothing else.
  /// `take` calls the reader's fail() if what it read cannot be an answer to the request.
  template <class Take>
  cl_int call_and_take(Take&& take, std::span<const std::byte> bulk = {}, unique_fd* descriptor = nullptr) {
    const std::optional<cl_int> code = exchange(bulk, nullptr, descriptor);
    if (!code) return lost;
    return *code == CL_SUCCESS ? decoded(*code, take) : *code;
  }
  /// For requests whose reply holds the outputs whatever the code is.
  template <class Take>
  cl_int call_and_always_take(Take&& take) {
    const std::optional<cl_int> code = exchange({}, nullptr, nullptr);
    return code ? decoded(*code, take) : lost;
  }
  /// The reply of a successful request is one `Body`.
  template <class Body>
  cl_int call_for(Body& answer, std::span<const std::byte> bulk = {}, unique_fd* descriptor = nullptr) {
    return call_and_take([&](wire::reader& reply) { answer = marshal::take_body<Body>(reply); }, bulk,
                         descriptor);
  }

 private:
  static constexpr cl_int lost = CL_DEVICE_NOT_AVAILABLE;

  explicit message(std::uint32_t code);

  /// Returns the server's code, or nothing if the session is lost.
  std::optional<cl_int> exchange(std::span<const std::byte> bulk, const landing* land, unique_fd* descriptor);
  template <class Take>
  cl_int decoded(cl_int code, Take&& take) {
    wire::reader reply(own_.reply);
    take(reply);
    return reply.finished() ? code : end_session();
  }
  /// Called after a malformed reply.
  cl_int end_session();

  std::uint32_t code_;
  lane& own_;
  session* server_;
  wire::writer writer_;
};

/// Posts a hand-written request with this body.
template <class Code, class Body>
cl_int post_body(Code code, const Body& body, std::span<const std::byte> bulk = {}) {
  message m(code);
  marshal::put_body(m.body(), body);
  return m.post(bulk);
}

/// Bytes of the program that belong to a request. They are sent before it if they do not fit in its frame.
/// `rest` is what follows the request's fields.
struct sent_bytes {
  marshal::opencl::bytes_body about;
  std::span<const std::byte> rest;
};
cl_int send_bytes(std::span<const std::byte> bytes, sent_bytes& to);

namespace detail {

template <class T>
auto on_wire(T value) {
  if constexpr (api::handle_type<T>) {
    return wire::handle{id_of(value)};
  } else {
    return value;
  }
}

}  // namespace detail

/// A CALL or POST line with the program's arguments; arrays of handles have been translated (wire_list).
/// `made` is the id of the object that it makes.
template <auto Op, class... A>
cl_int remote(std::uint64_t made, A... arguments) {
  message m(Op);
  marshal::encode_request<Op>(m.body(), made, detail::on_wire(arguments)...);
  if constexpr (api::function<Op>::about.how == api::kind::post) {
    return m.post();
  } else {
    return m.call_and_take(
        [&](wire::reader& reply) { marshal::decode_reply<Op>(reply, detail::on_wire(arguments)...); });
  }
}

/// A list of handles as ids in the place of pointers, for remote().
class wire_list {
 public:
  template <class H>
  wire_list(const H* list, std::size_t count) {
    for (std::size_t i = 0; i < count && list; ++i) ids_.push_back({id_of(list[i])});
  }
  const wire::handle* data() const { return ids_.empty() ? nullptr : ids_.data(); }

 private:
  std::vector<wire::handle> ids_;
};

}  // namespace outboard::frontend::opencl
