#include "hostile_server.hh"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include "backend/cuda/session.hh"
#include "backend/daemon/handshake.hh"
#include "backend/session/session.hh"
#include "marshal/cuda/bodies.hh"
#include "marshal/data_bodies.hh"
#include "marshal/fields.hh"
#include "transport/loopback/loopback.hh"
#include "transport/send_whole.hh"
#include "wire/cursor.hh"
#include "wire/data_connection.hh"
#include "wire/features.hh"
#include "wire/make_frame.hh"
#include "wire/opencl_session.hh"

namespace outboard::fuzz {

std::span<const std::byte> script::take(std::size_t most) {
  const std::lock_guard lock(each_);
  const auto taken = rest_.first(std::min(most, rest_.size()));
  rest_ = rest_.subspan(taken.size());
  return taken;
}

std::uint8_t script::byte() {
  const auto one = take(1);
  return one.empty() ? 0 : std::to_integer<std::uint8_t>(one[0]);
}

namespace {

using transport::deadline;
using transport::io;
using transport::io_result;

constexpr std::uint64_t features = wire::feature_data_connections | wire::feature_packed_pieces |
                                   wire::feature_lane_uploads | wire::feature_words |
                                   wire::feature_failure_lines | wire::feature_profile;

/// A server that was changed may owe an answer for ever: the connection ends then.
constexpr std::chrono::milliseconds patience{40};
constexpr std::chrono::seconds patience_with_honesty{1};

struct world {
  script& by;
  device::device& used;
  bool shares;
  std::atomic<bool> changed{false};      ///< something is no longer as the honest server said it
  std::atomic<std::uint32_t> opened{0};  ///< data connections
};

/// The client's end of one connection.
class hostile_connection final : public transport::connection {
 public:
  hostile_connection(world& in, std::unique_ptr<connection> honest)
      : world_(in), honest_(std::move(honest)) {}

  const transport::capabilities& what() const override {
    static constexpr transport::capabilities shares{.same_host = true, .passes_descriptors = true},
        plain{.preferred_chunk = 4096};
    return world_.shares ? shares : plain;
  }
  io_result send(std::span<const iovec> parts, deadline until) override {
    return honest_->send(parts, until);
  }
  io_result receive(std::span<std::byte> into, deadline until) override {
    if (const io ready = wait_readable(until); ready != io::done) return {ready, 0};
    const std::size_t n = std::min(into.size(), ready_.size() - taken_);
    std::copy_n(ready_.begin() + static_cast<std::ptrdiff_t>(taken_), n, into.begin());
    taken_ += n;
    return {io::done, n};
  }
  io wait_readable(deadline until) override {
    while (taken_ == ready_.size()) {
      ready_.clear(), taken_ = 0;
      if (const io got = next_frame(until); got != io::done) return got;
    }
    return io::done;
  }
  result<unique_fd> receive_descriptor(deadline until) override {
    if (invented_ == 0)
      return honest_->receive_descriptor(std::min(until, transport::clock::now() + patience));
    --invented_;
    unique_fd made(::memfd_create("invented", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    const unsigned size = world_.by.word();
    (void)!::ftruncate(made.get(), size / 2 * 64);
    if (size % 2 != 0) (void)::fcntl(made.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    return made;
  }
  void interrupt() override { honest_->interrupt(); }
  void shutdown() override { honest_->shutdown(); }
  std::string describe() const override { return "hostile:"; }

 private:
  io next_frame(deadline until);
  io receive_whole(std::span<std::byte> into, deadline until);
  void change(wire::frame_header& header, std::vector<std::byte>& payload);
  void invent(const wire::frame_header& like);
  void put(const wire::frame_header& header, std::span<const std::byte> payload);

  world& world_;
  std::unique_ptr<connection> honest_;
  std::vector<std::byte> ready_;
  std::size_t taken_ = 0;
  std::vector<std::byte> held_back_;
  unsigned spared_ = 0, invented_ = 0;
};

io hostile_connection::receive_whole(std::span<std::byte> into, deadline until) {
  const auto limit = world_.changed.load() ? std::chrono::milliseconds(patience)
                                           : std::chrono::milliseconds(patience_with_honesty);
  const io got = transport::receive_whole(*honest_, into, std::min(until, transport::clock::now() + limit));
  return got == io::timed_out && until > transport::clock::now() ? io::closed : got;
}

io hostile_connection::next_frame(deadline until) {
  std::array<std::byte, wire::header_size> raw;
  if (const io got = receive_whole(raw, until); got != io::done) {
    ready_.swap(held_back_);
    return ready_.empty() ? got : io::done;
  }
  auto decoded = wire::decode_header(raw, wire::max_frame_payload);
  if (!decoded.ok()) return io::broken;  // a descriptor's byte that nobody took
  std::vector<std::byte> payload(decoded->size);
  if (!payload.empty())
    if (const io got = receive_whole(payload, until); got != io::done) return got;
  if (decoded->kind == wire::frame_kind::reply && world_.opened.load() != 0 &&
      decoded->opcode == static_cast<std::uint32_t>(marshal::service::data_open)) {
    // Nobody is behind the session's data connections but the script.
    payload.assign(4, std::byte{0});
    wire::writer w(payload);
    marshal::data_open_reply reply;
    for (std::uint32_t i = 0; i < world_.opened.load(); ++i) reply.outward.push_back(i + 1);
    marshal::put_body(w, reply);
    world_.changed = true;
  }
  const std::lock_guard lock(world_.by.mutex());
  if (spared_ != 0) {
    --spared_;
    put(*decoded, payload);
  } else {
    change(*decoded, payload);
  }
  if (!held_back_.empty() && ready_.size() != held_back_.size()) {
    ready_.insert(ready_.end(), held_back_.begin(), held_back_.end());
    held_back_.clear();
  }
  return io::done;
}

void hostile_connection::put(const wire::frame_header& header, std::span<const std::byte> payload) {
  const auto frame = wire::make_frame(header, payload);
  ready_.insert(ready_.end(), frame.begin(), frame.end());
}

void hostile_connection::change(wire::frame_header& header, std::vector<std::byte>& payload) {
  const unsigned how = world_.by.byte();
  if (how % 8 != 0) world_.changed = true;
  switch (how % 8) {
    case 0:
      spared_ = how / 8;
      return put(header, payload);
    case 1:
    case 2: {  // some bytes of it
      const std::size_t at = world_.by.word();
      const auto bytes = world_.by.take(1 + how / 8 % 8);
      for (std::size_t i = 0; i < bytes.size() && !payload.empty(); ++i)
        payload[(at + i) % payload.size()] =
            how & 64 ? payload[(at + i) % payload.size()] ^ bytes[i] : bytes[i];
      return put(header, payload);
    }
    case 3: {  // all of it
      const auto bytes = world_.by.take(how & 8 ? world_.by.word() : world_.by.byte());
      const std::size_t kept = std::min<std::size_t>(payload.size(), how & 16 ? 4 : 0);
      payload.resize(kept);
      payload.insert(payload.end(), bytes.begin(), bytes.end());
      return put(header, payload);
    }
    case 4:  // its length
      payload.resize(how & 8 ? payload.size() + world_.by.byte() : world_.by.word() % (payload.size() + 1));
      return put(header, payload);
    case 5:
      if (how & 8) return;  // lost
      if (how & 16) return put(header, payload), put(header, payload);
      held_back_ = wire::make_frame(header, payload);
      return;
    case 6:
      invent(header);
      return put(header, payload);
    default: {  // its header
      auto frame = wire::make_frame(header, payload);
      frame[how / 8] ^= std::byte{world_.by.byte()};
      ready_.insert(ready_.end(), frame.begin(), frame.end());
      return;
    }
  }
}

void hostile_connection::invent(const wire::frame_header& like) {
  wire::frame_header header = like;
  header.kind = static_cast<wire::frame_kind>(1 + world_.by.byte() % 17);
  const auto which = world_.by.byte();
  header.ticket =
      which & 128 ? std::uint64_t{which} & 127 : like.ticket + static_cast<std::uint64_t>(which % 8) - 4;
  if (which & 64) header.ticket |= wire::graph_copy;
  if (header.kind == wire::frame_kind::descriptor) {
    ++invented_;
    return put(header, {});
  }
  std::vector<std::byte> payload;
  if (header.kind == wire::frame_kind::data || header.kind == wire::frame_kind::packed) {
    wire::writer w(payload);
    w.put(header.ticket);
    w.put(std::uint64_t{world_.by.byte()} * (which & 32 ? 1 : 1000));
  } else if (header.kind == wire::frame_kind::aside) {
    wire::writer w(payload);
    marshal::put_body(w, marshal::aside_body{.ticket = header.ticket, .offset = 0, .size = world_.by.word()});
  }
  const auto bytes = world_.by.take(world_.by.byte());
  payload.insert(payload.end(), bytes.begin(), bytes.end());
  put(header, payload);
}

/// The honest half of a connection: greeting, hello, then what the hello asks for.
void serve(world& in, std::unique_ptr<transport::connection> client) {
  backend::handshake shake(nullptr, {}, features);
  if (!transport::send_whole(*client, shake.greeting(), transport::no_deadline).ok()) return;
  auto now = backend::handshake::state::wants_bytes;
  while (now == backend::handshake::state::wants_bytes) {
    const auto got = client->receive(shake.wanted(), transport::no_deadline);
    if (got.status != io::done) return;
    now = shake.advance(got.bytes);
  }
  if (now != backend::handshake::state::accepted) return;
  if (shake.hello().wanted == wire::purpose::session) {
    backend::session_request request;
    request.connection = std::move(client);
    request.hello = std::move(shake.hello());
    request.id = 1;
    request.make_api = backend::speak_cuda({.device = &in.used});
    (void)backend::serve_session(std::move(request));
    return;
  }
  std::vector<std::byte> content;
  const bool carries = shake.hello().wanted == wire::purpose_data;
  if (carries) content = wire::encode_data_answer({static_cast<std::uint8_t>(++in.opened)});
  if (!transport::send_whole(*client, backend::make_welcome({}, content), transport::no_deadline).ok())
    return;
  std::array<std::byte, 4096> nothing;
  for (int i = 0; carries && i < 4; ++i) {  // pieces that copies may expect; the script says what is in them
    std::vector<std::byte> piece(wire::data_place_size + 1024);
    piece[0] = static_cast<std::byte>(i);
    (void)transport::send_whole(*client, wire::make_frame(wire::frame_kind::data, piece),
                                transport::no_deadline);
  }
  while (client->receive(nothing, transport::no_deadline).status == io::done) {
  }
}

class hostile_transport final : public transport::transport {
 public:
  hostile_transport(script& by, device::device& used, bool shares)
      : world_(*new world{by, used, shares}), inner_(outboard::transport::make_loopback()) {}

  std::string_view scheme() const override { return "hostile"; }
  result<std::unique_ptr<outboard::transport::connection>> connect(std::string_view,
                                                                   deadline until) override {
    const std::lock_guard lock(mutex_);
    auto listener = inner_->listen("server", {});
    if (!listener.ok()) return std::move(listener).error();
    auto client = inner_->connect("server", until);
    if (!client.ok()) return client;
    auto server = (*listener)->accept(until);
    if (!server.ok()) return server;
    std::thread(serve, std::ref(world_), std::move(*server)).detach();
    return std::unique_ptr<outboard::transport::connection>(
        std::make_unique<hostile_connection>(world_, std::move(*client)));
  }
  result<std::unique_ptr<outboard::transport::listener>> listen(
      std::string_view, const outboard::transport::listen_options&) override {
    return failure("hostile: serves itself");
  }

 private:
  std::mutex mutex_;
  world& world_;
  std::unique_ptr<outboard::transport::transport> inner_;
};

}  // namespace

std::unique_ptr<transport::transport> make_hostile(script& by, device::device& used, bool shares) {
  return std::make_unique<hostile_transport>(by, used, shares);
}

}  // namespace outboard::fuzz
