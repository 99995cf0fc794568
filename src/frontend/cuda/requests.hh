// What every end that travels needs: a request in the lane's buffer, posted or called. A hand-written end
// names the line, and the line says which body goes out, whether bytes follow it, and which reply comes back:
//   call<api::opcode::cuMemAllocAsync>(own, marshal::pool_body{.size = size}, reply)
// A function that travels in another one's requests (`via`) names that other line. Thread-bound to the lane.
#pragma once

#include <type_traits>
#include <utility>

#include "api/cuda/line_words.hh"
#include "frontend/cuda/memory/coherence.hh"
#include "frontend/cuda/objects.hh"
#include "frontend/cuda/process.hh"
#include "frontend/cuda/typed_opcode.hh"
#include "wire/cursor.hh"

namespace outboard::frontend::cuda {

/// The server's reply to this function or service does not follow the protocol: the session ends, and this is
/// what the call returns. The one place where such a reply becomes a code.
[[nodiscard]] CUresult malformed_reply(const lane& own, std::uint32_t code);

/// Who sends a request, and the context in which it runs: the lane's current one, unless another is named (0:
/// none).
struct sender {
  sender(lane& from) : own(from), context(from.running_context()) {}  // NOLINT: a lane is a sender
  sender(lane& from, std::uint64_t in) : own(from), context(in) {}
  lane& own;
  std::uint64_t context;
};

/// A request under construction in the calling thread's buffer; one at a time per thread. The generated ends
/// (remote.hh) write its arguments themselves; hand-written ones use `request`, below.
class raw_request {
 public:
  raw_request(api::opcode code, sender from)
      : code_(code),
        own_(from.own),
        process_(from.own.state()),
        server_(*process_.connection.server()),
        context_(from.context),
        writer_((from.own.request.clear(), from.own.request)) {}

  wire::writer& body() { return writer_; }

  CUresult post(std::span<const std::byte> bulk = {}, const landing* land = nullptr) {
    if (process_.connection.synchronous()) return call(bulk, land);
    if (!api::says(code_, api::line_word::passes_frees)) send_frees();
    if (process_.memory.host_memory_in_use()) {
      const CUresult code = before_request(own_, code_, own_.request, bulk);
      if (code != CUDA_SUCCESS) return code;
    }
    note(answered::posted);
    const CUresult code = server_.post(outgoing_request(bulk), land);
    after_leaving(own_);
    process_.work.note(own_.id);
    return code;
  }

  /// The reply's outputs are read with reply() until the lane's next call.
  CUresult call(std::span<const std::byte> bulk = {}, const landing* land = nullptr) {
    note(answered::waited);
    if (!api::says(code_, api::line_word::sends_frees)) send_frees();
    const CUresult code = process_.memory.host_memory_in_use()
                              ? coherent_call(bulk, land)
                              : server_.call(outgoing_request(bulk), own_.reply, land);
    // Questions begin nothing, so they are no activity.
    if (!api::says(code_, api::line_word::asks)) process_.work.note(own_.id);
    return code;
  }

  wire::reader reply() const { return wire::reader(own_.reply); }
  bool has_outputs() const { return !own_.reply.empty(); }

  /// For numbers in the reply that contradict each other or the request.
  [[nodiscard]] CUresult malformed() const {
    return malformed_reply(own_, static_cast<std::uint32_t>(code_));
  }

 private:
  CUresult coherent_call(std::span<const std::byte> bulk, const landing* land) {
    CUresult code = before_request(own_, code_, own_.request, bulk);
    if (code != CUDA_SUCCESS) return code;
    const completion_mark mark = take_mark(own_);
    code = server_.call(outgoing_request(bulk), own_.reply, land);
    after_leaving(own_);
    return code == CUDA_SUCCESS ? after_call(own_, code_, own_.request, mark) : code;
  }
  void send_frees() {
    if (process_.memory.freed.any()) [[unlikely]]
      process_.memory.freed.send(server_, own_.id);
  }
  static pace pace_of(api::opcode code) {
    return api::says(code, api::line_word::light) ? pace::light : pace::work;
  }
  outgoing outgoing_request(std::span<const std::byte> bulk) const {
    return {static_cast<std::uint32_t>(code_), own_.id, context_, own_.request, bulk, pace_of(code_)};
  }
  void note(answered how) {
    if (own_.how < how) own_.how = how;
  }

  api::opcode code_;
  lane& own_;
  process& process_;
  session& server_;
  std::uint64_t context_;
  wire::writer writer_;
};

namespace detail {
template <class Reply>
struct optional_of {
  using type = void;
};
template <class T>
struct optional_of<std::optional<T>> {
  using type = T;
};
}  // namespace detail

/// T of a reply that is std::optional<T>, else void.
template <class Reply>
using optional_struct = typename detail::optional_of<Reply>::type;

/// The line says a reply that always comes with success.
template <class Reply>
concept struct_reply = !std::is_same_v<Reply, marshal::nothing> &&
                       !std::is_same_v<Reply, marshal::plain_bytes> && std::is_void_v<optional_struct<Reply>>;

/// A request of a hand-written end, typed by its line: the body is the line's, bytes may follow it only where
/// the line says `tail`, and the reply is read as what the line says.
template <class Body, class Reply, bool Tail>
class request {
 public:
  /// The body is still to be put, unless it is `nothing`.
  request(typed_opcode<Body, Reply, Tail> what, sender from) : raw_(what.code(), from) {}
  request(typed_opcode<Body, Reply, Tail> what, sender from, const std::type_identity_t<Body>& body)
      : request(what, from) {
    put(body);
  }

  void put(const Body& body) { marshal::put_body(raw_.body(), body); }
  /// The last bytes of a body that was put with room in it.
  std::span<std::byte> last(std::size_t size) { return raw_.body().last(size); }

  CUresult post() { return raw_.post(); }
  /// A copy to the host, whose bytes come to `land`.
  CUresult post(const landing& land) { return raw_.post({}, &land); }
  CUresult post(std::span<const std::byte> tail) requires Tail { return raw_.post(tail); }

  CUresult call() { return raw_.call(); }
  CUresult call(const landing& land) { return raw_.call({}, &land); }
  CUresult call(std::span<const std::byte> tail) requires Tail { return raw_.call(tail); }

  /// Calls, and reads the reply of a call that succeeded.
  [[nodiscard]] CUresult call(Reply& out) requires struct_reply<Reply> {
    const CUresult code = raw_.call();
    return code == CUDA_SUCCESS ? read(out) : code;
  }

  /// Calls, and reads the reply if there is one: an error may come with it, or without. With success there
  /// must be one.
  [[nodiscard]] CUresult call(Reply& out) requires(!std::is_void_v<optional_struct<Reply>>) {
    const CUresult code = raw_.call();
    if (code != CUDA_SUCCESS && !raw_.has_outputs()) return code;
    optional_struct<Reply> value{};
    if (const CUresult bad = read(value); bad != CUDA_SUCCESS) return bad;
    out = std::move(value);
    return code;
  }

  /// What a reply in plain bytes holds, until the lane's next call.
  wire::reader reply() const requires std::is_same_v<Reply, marshal::plain_bytes> { return raw_.reply(); }

  /// For what the types cannot say: numbers in the reply that contradict each other or the request.
  [[nodiscard]] CUresult malformed() const { return raw_.malformed(); }

 private:
  /// A reply that is anything else than the line says ends the session.
  template <class T>
  CUresult read(T& out) const {
    wire::reader from = raw_.reply();
    T value = marshal::take_body<T>(from);
    if (!from.finished()) return raw_.malformed();
    out = std::move(value);
    return CUDA_SUCCESS;
  }

  raw_request raw_;
};

/// One request that does not wait.
template <class Body, class Reply, bool Tail>
CUresult post(typed_opcode<Body, Reply, Tail> what, sender from, const std::type_identity_t<Body>& body) {
  return request(what, from, body).post();
}
template <auto Op>
CUresult post(sender from, const marshal::request_of<Op>& body = {}) {
  return request(typed<Op>, from, body).post();
}

template <auto Op>
CUresult post(sender from, const marshal::request_of<Op>& body, std::span<const std::byte> tail) {
  return request(typed<Op>, from, body).post(tail);
}

/// One request that waits for its result. The forms without `out` are for lines without a reply, or with one
/// that may be missing.
template <class Body, class Reply, bool Tail>
requires(!struct_reply<Reply>) CUresult
    call(typed_opcode<Body, Reply, Tail> what, sender from, const std::type_identity_t<Body>& body) {
  return request(what, from, body).call();
}
template <class Body, class Reply, bool Tail>
[[nodiscard]] CUresult call(typed_opcode<Body, Reply, Tail> what, sender from,
                            const std::type_identity_t<Body>& body, std::type_identity_t<Reply>& out) {
  return request(what, from, body).call(out);
}
template <auto Op>
CUresult call(sender from, const marshal::request_of<Op>& body = {}) {
  return call(typed<Op>, from, body);
}
template <auto Op>
[[nodiscard]] CUresult call(sender from, const marshal::request_of<Op>& body, marshal::reply_of<Op>& out) {
  return request(typed<Op>, from, body).call(out);
}

template <class H>
std::uint64_t value_of(H handle) {
  return reinterpret_cast<std::uint64_t>(handle);
}

/// The object behind a handle of this type, or nullptr.
template <class Info, class H>
Info* find_object(const lane& own, H handle) {
  return static_cast<Info*>(own.state().handles[api::handle_trait<H>::kind].find(value_of(handle)));
}

/// The kernel object behind a CUfunction that may be a CUkernel; nullptr: neither, or dead.
inline kernel_object* find_kernel(const lane& own, CUfunction function) {
  const wire::handle h{value_of(function)};
  const bool is_kernel = h.kind() == static_cast<std::uint8_t>(api::handle_kind::kernel);
  const api::handle_kind kind = is_kernel ? api::handle_kind::kernel : api::handle_kind::function;
  return static_cast<kernel_object*>(own.state().handles[kind].find(h.value));
}

/// 0, 1 (legacy) and 2 (per-thread) stand for the default streams.
inline bool default_stream(CUstream stream) { return value_of(stream) <= 2; }

inline bool stream_ok(const lane& own, CUstream stream) {
  if (default_stream(stream)) return true;
  const object* found = find_object<object>(own, stream);
  return found && !found->late.load(std::memory_order_relaxed);
}

}  // namespace outboard::frontend::cuda
