// The whole gate's reading of a stranger's bytes, up to the daemon's reading of the hello: one visitor over a
// socket, with a server's certificate. A stranger who cannot do TLS sends the input as it is. One who can
// does the handshake with our own library, so that the fuzzer reaches what is decrypted; the input then says
// what it sends and in which records, and what is changed on the way. Input: {how, change (4), actions ...}.
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "backend/daemon/handshake.hh"
#include "backend/gate/gate_messages.hh"
#include "backend/gate/gate_visitor.hh"
#include "base/check.hh"
#include "base/log.hh"
#include "transport/tls/library.hh"
#include "wire/cursor.hh"
#include "wire/make_frame.hh"
#include "wire/opencl_session.hh"

using namespace outboard;
using transport::tls::engine;
using transport::tls::step;

namespace {

struct contexts {
  std::shared_ptr<transport::tls::context> server, client;
};

/// With an authority if clients are asked for certificates; nobody has one that it vouches for but the second
/// client.
const contexts& the_contexts(bool asks_for_certificates) {
  static const auto make = [](bool asks) {
    const auto library = transport::tls::load();
    CHECK(library.ok());
    static const std::string pem = *(*library)->make_certificate("gate");
    transport::tls::server_terms server{.certificate = pem, .key = pem};
    transport::tls::client_terms client;
    if (asks) server.authorities = client.certificate = client.key = pem;
    return contexts{*(*library)->make_server(server), *(*library)->make_client(client)};
  };
  static const contexts plain = make(false), asking = make(true);
  return asks_for_certificates ? asking : plain;
}

/// The daemon's end of the local socket: what the gate says of the connection, then the hello.
class daemons_end {
 public:
  explicit daemons_end(unique_fd local) : local_(std::move(local)) {
    const auto greeting = shake_.greeting();
    (void)!::send(local_.get(), greeting.data(), greeting.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  }

  void read() {
    if (!facts_ && !read_facts()) return;
    while (now_ == backend::handshake::state::wants_bytes) {
      const auto room = shake_.wanted();
      CHECK(!room.empty() && room.size() <= wire::max_hello_payload);
      const ssize_t got = ::recv(local_.get(), room.data(), room.size(), MSG_DONTWAIT);
      if (got <= 0) return;
      now_ = shake_.advance(static_cast<std::size_t>(got));
    }
    answer();
  }

 private:
  bool read_facts() {
    std::array<std::byte, 4 + backend::most_channel_facts> raw;
    if (::recv(local_.get(), raw.data(), 4, MSG_DONTWAIT | MSG_PEEK) != 4) return false;
    wire::reader length(std::span(raw).first(4));
    const auto size = length.get<std::uint32_t>();
    CHECK(size <= backend::most_channel_facts);  // the gate's own word
    CHECK(::recv(local_.get(), raw.data(), 4 + size, MSG_DONTWAIT) == static_cast<ssize_t>(4 + size));
    facts_ = backend::body_of<backend::channel_facts>(std::span(raw).subspan(4, size));
    CHECK(facts_ && facts_->binding.size() == 32 && facts_->inner_key.size() == 32);
    shake_.bind(std::as_bytes(std::span(facts_->binding)));
    return true;
  }

  /// Once: a refusal, or a welcome of a question; a session's client is left to its worker.
  void answer() {
    if (!local_) return;
    std::vector<std::byte> frame;
    if (now_ == backend::handshake::state::refused) {
      frame = wire::make_frame(wire::frame_kind::refusal, encode(shake_.refusal()));
    } else if (!wire::opens_session(shake_.hello().wanted)) {
      frame = backend::make_welcome(shake_.seal(), std::vector<std::byte>(100));
    }
    if (!frame.empty()) (void)!::send(local_.get(), frame.data(), frame.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    local_.reset();
  }

  unique_fd local_;
  std::optional<backend::channel_facts> facts_;
  backend::handshake shake_{nullptr, {}};
  backend::handshake::state now_ = backend::handshake::state::wants_bytes;
};

/// A gate with one visitor, and its stranger's end of the socket.
class one_visit {
 public:
  one_visit(backend::plain_clients plain, bool asks) : loop_(make_loop()) {
    std::array<int, 2> pair{};
    CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()) == 0);
    stranger_.reset(pair[0]);
    host_.wants_to_answer = [this](backend::gate_visitor::id) { asked_ = true; };
    host_.pass_on = [this](backend::gate_visitor&, unique_fd local) {
      if (local) daemon_.emplace(std::move(local));
      return true;
    };
    host_.shaken = [](backend::gate_visitor::id) {};
    host_.gone = [this](backend::gate_visitor::id, const std::string&) { visitor_.reset(); };
    visitor_ = std::make_unique<backend::gate_visitor>(loop_, host_, 1, unique_fd(pair[1]), "tcp:192.0.2.1:1",
                                                       plain, the_contexts(asks).server->start(""));
    if (!visitor_->start().ok()) visitor_.reset();
  }

  void say(std::span<const std::byte> bytes) {
    for (int refused = 0; !bytes.empty() && visitor_ && refused < 10;) {
      const ssize_t sent = ::send(stranger_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      if (sent > 0) bytes = bytes.subspan(static_cast<std::size_t>(sent));
      if (sent <= 0) ++refused;
      run();
    }
  }

  /// What the gate has said since.
  std::vector<std::byte> hear() {
    std::vector<std::byte> all(64 << 10);
    const ssize_t got = ::recv(stranger_.get(), all.data(), all.size(), MSG_DONTWAIT);
    all.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    return all;
  }

  /// Until nothing is left to do but to wait.
  void run() {
    for (int i = 0; i < 3 && visitor_; ++i) {
      loop_.after(std::chrono::seconds(0), [] {});
      loop_.run_once();
      if (visitor_ && std::exchange(asked_, false)) visitor_->answer();
      if (daemon_) daemon_->read();
    }
  }

  void close() {
    stranger_.reset();
    run();
  }

 private:
  static backend::event_loop make_loop() {
    auto made = backend::event_loop::make();
    CHECK(made.ok());
    return std::move(*made);
  }

  backend::event_loop loop_;
  backend::gate_visitor::host host_;
  unique_fd stranger_;
  std::optional<daemons_end> daemon_;
  std::unique_ptr<backend::gate_visitor> visitor_;
  bool asked_ = false;
};

/// The stranger's own library.
class adept {
 public:
  adept(one_visit& at, bool shows_certificate)
      : at_(at), engine_(the_contexts(shows_certificate).client->start("")) {}

  /// `change`: of the bytes that are sent, counted from the first, which one, and how.
  bool shake(std::size_t changed, std::byte by) {
    changed_ = changed;
    by_ = by;
    for (int i = 0; i < 6; ++i) {
      const step made = engine_->shake();
      send();
      if (made == step::done) return true;
      if (made == step::failed) return false;
      heard_ = at_.hear();
      if (heard_.empty()) return false;
      engine_->offer(heard_);
    }
    return false;
  }

  void write(std::span<const std::byte> plain) {
    for (; !plain.empty(); plain = plain.subspan(std::min(plain.size(), transport::tls::most_in_record)))
      (void)engine_->write(plain.first(std::min(plain.size(), transport::tls::most_in_record)));
    send();
  }

  void close() {
    engine_->close();
    send();
  }

  void change(std::size_t in, std::byte by) {
    changed_ = sent_ + in;
    by_ = by;
  }

 private:
  void send() {
    transport::tls::output out;
    engine_->take_output(out);
    std::vector<std::byte> bytes(out.bytes().begin(), out.bytes().end());
    if (changed_ >= sent_ && changed_ - sent_ < bytes.size()) bytes[changed_ - sent_] ^= by_;
    sent_ += bytes.size();
    at_.say(bytes);
  }

  one_visit& at_;
  std::unique_ptr<engine> engine_;
  std::vector<std::byte> heard_;
  std::size_t sent_ = 0, changed_ = 0;
  std::byte by_{};
};

void as_adept(one_visit& visit, bool asks, wire::reader& input) {
  adept stranger(visit, asks);
  const auto place = input.get<std::uint16_t>();
  const auto by = input.get<std::uint8_t>();
  if (!stranger.shake(place, std::byte{by})) return;
  while (input.ok() && !input.rest().empty()) {
    const auto what = input.get<std::uint8_t>();
    const std::uint64_t size = std::min<std::uint64_t>(input.get<std::uint16_t>(), input.rest().size());
    const auto bytes = input.bytes(size);
    switch (what % 8) {
      case 0:
        visit.say(bytes);  // not encrypted
        break;
      case 1:
        stranger.close();
        break;
      case 2:
        stranger.change(what, std::byte{0x40});
        stranger.write(bytes);
        break;
      case 3: {  // a well-made header
        wire::frame_header header;
        header.kind = wire::frame_kind::hello;
        stranger.write(wire::make_frame(header, bytes));
        break;
      }
      default:
        stranger.write(bytes);
        break;
    }
    (void)visit.hear();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  log::set_level(log::level::off);
  const auto how = data[0];
  const bool asks = (how & 4) != 0;
  one_visit visit(static_cast<backend::plain_clients>(how % 3), asks);
  std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data) + 1, size - 1);
  if ((how & 8) != 0) {
    wire::reader input(bytes);
    as_adept(visit, asks, input);
  } else {
    const std::size_t piece = 1u + how / 16u * 40u;
    for (; !bytes.empty(); bytes = bytes.subspan(std::min(piece, bytes.size())))
      visit.say(bytes.first(std::min(piece, bytes.size())));
  }
  visit.close();
  return 0;
}
