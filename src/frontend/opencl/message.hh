// A request under construction in the calling thread's buffer, to be posted or called with; one at a time for
// each thread. Answers are codes of OpenCL; a lost session is CL_DEVICE_NOT_AVAILABLE.
#pragma once

#include <vector>

#include "frontend/opencl/link.hh"
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

  /// The request brings a function of the program, for which the program may wait.
  message& awaited() { return how_ = pace::awaited, *this; }
  cl_int post(std::span<const std::byte> bulk = {}, const landing* land = nullptr);
  /// `descriptor`: takes the one that the server sends with its answer, if any.
  cl_int call(std::span<const std::byte> bulk = {}, const landing* land = nullptr,
              unique_fd* descriptor = nullptr);
  /// The reply's outputs until the lane's next call.
  wire::reader reply() const { return wire::reader(own_.reply); }
  /// For a reply that no server sends: ends the session. Returns the code of all calls from then on.
  [[nodiscard]] cl_int malformed() const;

 private:
  explicit message(std::uint32_t code);

  std::uint32_t code_;
  lane& own_;
  session* server_;
  wire::writer writer_;
  pace how_ = pace::work;
};

/// A hand-written request with this body.
template <class Code, class Body>
cl_int post_body(Code code, const Body& body, std::span<const std::byte> bulk = {}) {
  message m(code);
  marshal::put_body(m.body(), body);
  return m.post(bulk);
}

/// Bytes of the program that belong to a request: sent before it if they are more than a frame takes. `rest`
/// is what follows the request's fields.
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
    const cl_int code = m.call();
    if (code != CL_SUCCESS) return code;
    wire::reader outputs = m.reply();
    return marshal::decode_reply<Op>(outputs, detail::on_wire(arguments)...) ? CL_SUCCESS : m.malformed();
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
