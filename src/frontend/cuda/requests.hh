// What every end that travels needs: it begins a request in the lane's buffer, and posts it or calls with it.
// Thread-bound to the lane it was made from.
#pragma once

#include <optional>
#include <string_view>

#include "api/cuda/functions.hh"
#include "frontend/cuda/copying/coherence.hh"
#include "frontend/process.hh"
#include "marshal/cuda/messages.hh"
#include "wire/cursor.hh"

namespace outboard::frontend::cuda {

/// The reply to this request cannot be: ends the session, and gives what all calls answer from then on.
[[nodiscard]] CUresult malformed_reply(api::opcode code);

/// A request under construction in the calling thread's buffer; one at a time per thread. By itself for
/// functions whose messages are generated; those with lines of types have a request_of, below.
class request {
 public:
  request(api::opcode code, lane& own)
      : code_(code),
        about_(api::about(code)),
        own_(own),
        server_(*process::instance().server()),
        writer_((own.request.clear(), own.request)) {}

  wire::writer& body() { return writer_; }

  /// For requests that run in another context than the lane's current one.
  request& in_context(std::uint64_t handle) { return context_ = handle, *this; }

  /// It brings a function of the program's, for which that may wait.
  request& awaited() { return how_ = pace::awaited, *this; }

  /// Addresses of page-locked memory in it are ends of copies: no kernel learns of them by it.
  request& names_copies_alone() { return said_.names_copies_alone = true, *this; }

  /// Its sender looks after frees that were put off.
  request& beside_frees() { return frees_told_ = true, *this; }

  /// Its work stands in this stream.
  request& in_stream(CUstream stream, bool per_thread) {
    said_.order = work_order::in_stream;
    said_.stream = reinterpret_cast<std::uint64_t>(stream);
    said_.per_thread = per_thread;
    return *this;
  }

  /// It is a copy, and writes there.
  request& copies_to(CUdeviceptr to, CUstream stream, marshal::flavour how) {
    in_stream(stream, marshal::per_thread(how));
    if (!marshal::on_stream(how)) said_.order = work_order::waited_for;
    said_.target = to;
    return *this;
  }

  CUresult post(std::span<const std::byte> bulk = {}, const landing* land = nullptr) {
    if (process::instance().synchronous()) return call(bulk, land);
    if (!about_.overtakes) send_frees();
    if (host_memory_in_use()) {
      const CUresult code = before_request(own_, code_, own_.request, bulk, said_);
      if (code != CUDA_SUCCESS) return code;
    }
    note(answered::posted);
    const CUresult code = server_.post(outgoing_request(bulk), land);
    after_leaving(own_);
    process::instance().work().note(own_.id);
    return code;
  }

  /// The reply's outputs are read with reply() until the lane's next call.
  CUresult call(std::span<const std::byte> bulk = {}, const landing* land = nullptr) {
    note(answered::waited);
    if (!frees_told_) send_frees();
    const CUresult code = host_memory_in_use() ? coherent_call(bulk, land)
                                               : server_.call(outgoing_request(bulk), own_.reply, land);
    if (!about_.asks) process::instance().work().note(own_.id);  // a question is no activity
    return code;
  }

  wire::reader reply() const { return wire::reader(own_.reply); }
  /// For a reply that does not fit: it ends the session.
  [[nodiscard]] CUresult malformed() const { return malformed_reply(code_); }

 private:
  CUresult coherent_call(std::span<const std::byte> bulk, const landing* land) {
    CUresult code = before_request(own_, code_, own_.request, bulk, said_);
    if (code != CUDA_SUCCESS) return code;
    const completion_mark mark = take_mark();
    code = server_.call(outgoing_request(bulk), own_.reply, land);
    after_leaving(own_);
    return code == CUDA_SUCCESS ? after_call(own_, code_, context_, own_.request, mark) : code;
  }
  void send_frees() {
    freed_blocks& freed = process::instance().memory().freed();
    if (freed.any()) [[unlikely]]
      freed.send(server_, own_.id);
  }
  static pace pace_of(const api::description& about) {
    return about.light ? pace::light : about.followed ? pace::followed : pace::work;
  }
  outgoing outgoing_request(std::span<const std::byte> bulk) const {
    return {static_cast<std::uint32_t>(code_), own_.id, context_, own_.request, bulk, how_};
  }
  void note(answered how) {
    if (own_.how < how) own_.how = how;
  }

  api::opcode code_;
  const api::description& about_;
  lane& own_;
  session& server_;
  std::uint64_t context_ = own_.running_context();
  pace how_ = pace_of(about_);
  bool frees_told_ = false;
  said_of_request said_;
  wire::writer writer_;
};

/// An opcode whose line names this request and this reply; another one is a compile error. For code that
/// several functions share.
template <class Request, class Reply = marshal::nothing>
class opcode_for {
 public:
  consteval opcode_for(api::opcode code) : code_(code) {
    if (!marshal::carries<Request, Reply>(code)) throw "its line names another request or reply";
  }
  consteval opcode_for(marshal::service code) : code_(static_cast<api::opcode>(code)) {
    if (!marshal::carries<Request, Reply>(code)) throw "its line names another request or reply";
  }
  operator api::opcode() const { return code_; }

 private:
  api::opcode code_;
};

/// A request with its body, and how its reply is read, as its line has them.
template <class Request, class Reply>
class typed_request : public request {
 public:
  using body_type = marshal::body_of<Request>;
  using reply_type = marshal::body_of<Reply>;
  static constexpr bool begins_empty =
      marshal::hand_form<Request> || std::is_same_v<body_type, marshal::nothing>;

  typed_request(opcode_for<Request, Reply> code, lane& own, const body_type& about) : request(code, own) {
    marshal::put_body(request::body(), about);
  }
  /// Of one that is written where it lies, with body(), or that has none.
  typed_request(opcode_for<Request, Reply> code, lane& own) requires begins_empty : request(code, own) {}

  wire::writer& body() requires marshal::hand_form<Request> { return request::body(); }

  /// Calls, and reads the reply.
  CUresult call(reply_type& out) {
    const CUresult code = request::call();
    return code == CUDA_SUCCESS ? read(out) : code;
  }
  using request::call;

  /// Reads the reply, also one that came with an error. One that does not fit ends the session.
  [[nodiscard]] CUresult read(reply_type& out) const {
    auto whole = whole_reply();
    if (!whole) return malformed();
    out = std::move(*whole);
    return CUDA_SUCCESS;
  }

  /// Nothing: it does not fit, or an error came without one.
  std::optional<reply_type> whole_reply() const {
    wire::reader from = reply();
    std::optional<reply_type> whole = marshal::take_body<reply_type>(from);
    if (!from.finished()) whole.reset();
    return whole;
  }
};

/// Of one CUSTOM function, an api::opcode, or of a marshal::service.
template <auto Op>
class request_of
    : public typed_request<typename marshal::message<Op>::request, typename marshal::message<Op>::reply> {
  using typed = typed_request<typename marshal::message<Op>::request, typename marshal::message<Op>::reply>;

 public:
  request_of(lane& own, const typename typed::body_type& about) : typed(Op, own, about) {}
  explicit request_of(lane& own) requires typed::begins_empty : typed(Op, own) {}
};

/// A call in buffers of its own: the lane's may hold the request at hand. Goes as it is, with nothing before
/// it. `descriptor`: takes the one that comes with the answer, if any.
template <class Body>
CUresult call_apart(lane& own, api::opcode code, std::uint64_t context, const Body& body,
                    std::vector<std::byte>& reply, unique_fd* descriptor = nullptr) {
  std::vector<std::byte> bytes;
  wire::writer w(bytes);
  marshal::put_body(w, body);
  own.how = answered::waited;
  return process::instance().server()->call({static_cast<std::uint32_t>(code), own.id, context, bytes, {}},
                                            reply, nullptr, descriptor);
}

/// Of a CUSTOM function or a service.
template <auto Op>
CUresult call_apart(lane& own, std::uint64_t context,
                    const marshal::body_of<typename marshal::message<Op>::request>& body,
                    std::vector<std::byte>& reply, unique_fd* descriptor = nullptr) {
  return call_apart(own, static_cast<api::opcode>(Op), context, body, reply, descriptor);
}

template <class H>
std::uint64_t value_of(H handle) {
  return reinterpret_cast<std::uint64_t>(handle);
}

/// The object behind a handle of this type, or nullptr.
template <class Info, class H>
Info* find_object(H handle) {
  return static_cast<Info*>(
      process::instance().objects().handles(api::handle_trait<H>::kind).find(value_of(handle)));
}

/// 0, 1 (legacy) and 2 (per-thread) stand for the default streams.
inline bool default_stream(CUstream stream) { return value_of(stream) <= 2; }

inline bool stream_ok(CUstream stream) {
  if (default_stream(stream)) return true;
  const object* found = find_object<object>(stream);
  return found && !found->late.load(std::memory_order_relaxed);
}

}  // namespace outboard::frontend::cuda
