#include "backend/gate/gate_visitor.hh"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <utility>

#include "backend/daemon/handshake.hh"
#include "base/errno_text.hh"
#include "wire/cursor.hh"
#include "wire/make_frame.hh"

namespace outboard::backend {
namespace {

using transport::tls::step;

constexpr std::size_t record_header = 5;
constexpr std::size_t most_of_record = transport::tls::most_in_record + 256;
constexpr std::byte handshake_record{22};

/// A client that may speak without TLS waits for the greeting; one with TLS speaks as soon as it is
/// connected. A program of this machine is heard at once, and by default speaks without TLS: that should not
/// cost it time.
constexpr std::chrono::milliseconds patience_with_plain{300};
constexpr std::chrono::milliseconds patience_with_this_host{20};
/// A client without TLS gives up after 5 s, and should know why.
constexpr std::chrono::milliseconds patience_with_silence{3000};

/// A socket that is closed with unread bytes resets the connection, and the last words would be lost.
constexpr std::chrono::seconds parting_time{1};
constexpr std::size_t parting_bytes = 256u << 10;

/// Read from the daemon at once.
constexpr std::size_t at_once = 64u << 10;

}  // namespace

gate_visitor::gate_visitor(event_loop& loop, host& gate, id number, unique_fd client, std::string from,
                           plain_clients plain, std::unique_ptr<transport::tls::engine> engine)
    : loop_(loop),
      host_(gate),
      id_(number),
      client_(std::move(client)),
      from_(std::move(from)),
      plain_(plain),
      engine_(std::move(engine)) {}

gate_visitor::~gate_visitor() {
  for (const event_loop::id each : {client_watch_, local_watch_, timer_}) loop_.forget(each);
}

bool gate_visitor::may_be_plain() const { return plain_ != plain_clients::none; }

std::chrono::milliseconds gate_visitor::patience() const {
  switch (plain_) {
    case plain_clients::of_this_host:
      return patience_with_this_host;
    case plain_clients::all:
      return patience_with_plain;
    case plain_clients::none:
      break;
  }
  return patience_with_silence;
}

status gate_visitor::start() {
  client_events_ = EPOLLIN | EPOLLRDHUP;
  auto watch =
      loop_.watch(client_.get(), client_events_, [this](std::uint32_t events) { on_client(events); });
  if (!watch.ok()) return std::move(watch).error();
  client_watch_ = *watch;
  timer_ = loop_.after(patience(), [this] { nothing_came(); });
  return {};
}

/// Nobody with TLS waits for us to speak first.
void gate_visitor::nothing_came() {
  timer_ = 0;
  if (state_ != state::silent) return;
  if (may_be_plain()) {
    host_.pass_on(*this, {});
    return leave("");
  }
  const auto refusal = make_frame(
      wire::frame_kind::refusal,
      encode(wire::refusal{
          wire::refusal_reason::protocol,
          "this server speaks TLS only; use a newer client, or set tls = \"require\" (OUTBOARD_TLS)"}));
  (void)::send(client_.get(), refusal.data(), refusal.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  leave("it waits for a greeting without TLS; its `tls` setting is \"off\", or it is too old");
}

void gate_visitor::on_client(std::uint32_t events) {
  if ((events & EPOLLOUT) != 0 && !flush()) return;
  switch (state_) {
    case state::silent:
      return look_at_first_byte();
    case state::asking:
    case state::shaking:
      return go_on();
    case state::talking:
      return inner_begins_ ? leave("") : read_client();
    case state::parting:
      return read_rest();
    case state::waiting:
    case state::answering:
      if ((events & (EPOLLHUP | EPOLLERR | EPOLLRDHUP)) != 0) leave("");
      return;
  }
}

void gate_visitor::look_at_first_byte() {
  std::byte first{};
  const ssize_t got = ::recv(client_.get(), &first, 1, MSG_PEEK | MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) return leave("");
  if (first != handshake_record) return leave("its first byte is not TLS's");
  loop_.forget(std::exchange(timer_, 0));
  state_ = state::asking;
  go_on();
}

/// Reads on until `record_` is whole.
gate_visitor::taken gate_visitor::take_record() {
  if (record_.empty()) record_.resize(record_header + 1024);
  for (;;) {
    std::size_t wanted = record_header;
    if (in_record_ >= record_header) {
      wanted += std::to_integer<std::size_t>(record_[3]) << 8 | std::to_integer<std::size_t>(record_[4]);
      if (wanted > record_header + most_of_record) return taken::ended;
      if (in_record_ == wanted) return taken::whole;
      record_.resize(std::max(record_.size(), wanted));
    }
    const ssize_t got = ::recv(client_.get(), record_.data() + in_record_, wanted - in_record_, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return taken::not_yet;
    if (got <= 0) return taken::ended;
    in_record_ += static_cast<std::size_t>(got);
  }
}

/// Is `record_` whole? If it never will be, this visitor leaves.
bool gate_visitor::has_record(const std::string& why_not) {
  const taken got = take_record();
  if (got == taken::ended) leave(why_not);
  return got == taken::whole;
}

/// The handshake, record by record.
void gate_visitor::go_on() {
  for (;;) {
    if (!has_record("it ended in the middle of TLS's handshake")) return;
    if (state_ == state::asking) {
      // What comes now costs time, so the gate says when.
      state_ = state::waiting;
      loop_.change(client_watch_, client_events_ = EPOLLRDHUP);
      return host_.wants_to_answer(id_);
    }
    engine_->offer(std::span(record_).first(std::exchange(in_record_, 0)));
    const step made = engine_->shake();
    if (!flush()) return;
    if (made == step::failed) return part(engine_->problem());
    if (made == step::done) return handshake_done();
  }
}

void gate_visitor::answer() {
  engine_->offer(std::span(record_).first(std::exchange(in_record_, 0)));
  const step made = engine_->shake_until_answer();
  if (made == step::failed) {
    // TLS's own word for it goes first.
    return flush() ? part(engine_->problem()) : void();
  }
  loop_.change(client_watch_, client_events_ = EPOLLIN | EPOLLRDHUP);
  if (made == step::wants_bytes) {
    // A first message in several records, or one that asks for another group.
    state_ = state::asking;
    if (flush()) go_on();
    return;
  }
  std::array<int, 2> pair{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()) != 0) return leave(errno_text(errno));
  local_.reset(pair[0]);
  unique_fd theirs(pair[1]);
  state_ = state::answering;
  loop_.change(client_watch_, client_events_ = EPOLLRDHUP);
  if (!host_.pass_on(*this, std::move(theirs))) return leave("the server is too busy");
  watch_local();
}

void gate_visitor::watch_local() {
  local_events_ = EPOLLIN;
  auto watch = loop_.watch(local_.get(), local_events_, [this](std::uint32_t events) { on_local(events); });
  if (!watch.ok()) return leave(watch.error().message);
  local_watch_ = *watch;
}

void gate_visitor::on_local(std::uint32_t) {
  if (state_ == state::answering) return greet();
  read_local();
}

/// The greeting goes with the server's answer, so it costs no round trip.
void gate_visitor::greet() {
  std::array<std::byte, 4096> plain;
  const ssize_t got = ::recv(local_.get(), plain.data(), plain.size(), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) return leave("");
  if (!engine_->write_with_answer(std::span(plain).first(static_cast<std::size_t>(got))))
    return leave(engine_->problem());
  state_ = state::shaking;
  greeted_ = true;
  loop_.change(client_watch_, client_events_ = EPOLLIN | EPOLLRDHUP);
  loop_.change(local_watch_, local_events_ = 0);
  (void)flush();
}

void gate_visitor::handshake_done() {
  const transport::tls::secret binding = engine_->binding(), key = engine_->inner_key();
  channel_facts facts;
  const auto bytes = [](const transport::tls::secret& s) {
    const auto* first = reinterpret_cast<const std::uint8_t*>(s.data());
    return std::vector<std::uint8_t>(first, first + s.size());
  };
  facts.binding = bytes(binding);
  facts.inner_key = bytes(key);
  if (const auto theirs = engine_->certificate(); theirs.present && theirs.trusted) {
    facts.certificate = theirs.name.substr(0, longest_certificate_name);
    // A name that does not fit names nobody: half of it might be somebody else.
    for (const std::string& one : theirs.also) {
      if (facts.also.size() < most_certificate_names && one.size() <= longest_alternative)
        facts.also.push_back(one);
    }
  }
  std::vector<std::byte> message;
  const std::vector<std::byte> payload = payload_of(facts);
  wire::writer w(message);
  w.put(static_cast<std::uint32_t>(payload.size()));
  w.bytes(payload);
  if (!forward(message)) return;
  state_ = state::talking;
  loop_.change(local_watch_, local_events_ = EPOLLIN);
  host_.shaken(id_);
  read_client();
}

/// The daemon reads at once; what does not fit is not a hello.
bool gate_visitor::forward(std::span<const std::byte> plain) {
  if (::send(local_.get(), plain.data(), plain.size(), MSG_DONTWAIT | MSG_NOSIGNAL) ==
      static_cast<ssize_t>(plain.size()))
    return true;
  return leave(""), false;
}

void gate_visitor::read_client() {
  std::array<std::byte, transport::tls::most_in_record> plain;
  for (;;) {
    if (in_record_ == 0) {
      std::byte kind{};
      const ssize_t got = ::recv(client_.get(), &kind, 1, MSG_PEEK | MSG_DONTWAIT);
      if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
      if (got <= 0) return leave("");
      if (kind == handshake_record) {
        inner_begins_ = true;
        return loop_.change(client_watch_, client_events_ = EPOLLRDHUP | (client_events_ & EPOLLOUT));
      }
    }
    if (!has_record("")) return;
    engine_->offer(std::span(record_).first(std::exchange(in_record_, 0)));
    std::ptrdiff_t got = 0;
    while ((got = engine_->read(plain)) > 0)
      if (!forward(std::span(plain).first(static_cast<std::size_t>(got)))) return;
    if (got == -2) return leave(engine_->problem());
    if (got == -1) return leave("");
  }
}

void gate_visitor::read_local() {
  static std::array<std::byte, at_once> plain;  // the gate has one thread
  const ssize_t got = ::recv(local_.get(), plain.data(), plain.size(), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) {
    loop_.forget(std::exchange(local_watch_, 0));
    local_ended_ = true;
    return sent_ < out_.used ? void() : local_ended();
  }
  std::span<const std::byte> rest = std::span(plain).first(static_cast<std::size_t>(got));
  follow_answer(rest);
  while (!rest.empty()) {
    const auto next = rest.first(std::min(rest.size(), transport::tls::most_in_record));
    if (!engine_->write(next)) return leave(engine_->problem());
    rest = rest.subspan(next.size());
  }
  (void)flush();
}

/// Notes the header of the daemon's answer.
void gate_visitor::follow_answer(std::span<const std::byte> plain) {
  const std::size_t lacks = wire::header_size - answered_.size();
  answered_.insert(answered_.end(), plain.begin(),
                   plain.begin() + static_cast<std::ptrdiff_t>(std::min(lacks, plain.size())));
}

/// Returns false if this visitor is gone.
bool gate_visitor::flush() {
  for (;;) {
    if (sent_ == out_.used) {
      out_.used = sent_ = 0;
      engine_->take_output(out_);
      if (out_.used == 0) break;
    }
    const auto left = out_.bytes().subspan(sent_);
    const ssize_t sent = ::send(client_.get(), left.data(), left.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) {
      loop_.change(client_watch_, client_events_ |= EPOLLOUT);
      if (local_watch_ != 0) loop_.change(local_watch_, local_events_ = 0);
      return true;
    }
    if (sent < 0) return leave(""), false;
    sent_ += static_cast<std::size_t>(sent);
  }
  if ((client_events_ & EPOLLOUT) != 0) {
    loop_.change(client_watch_, client_events_ &= ~static_cast<std::uint32_t>(EPOLLOUT));
    if (local_watch_ != 0 && state_ == state::talking) loop_.change(local_watch_, local_events_ = EPOLLIN);
    if (local_ended_) return local_ended(), false;
  }
  return true;
}

/// The daemon has nothing more to say: another process has the client now, or it was refused.
void gate_visitor::local_ended() {
  bool refused = false;
  if (answered_.size() == wire::header_size) {
    const auto header = wire::decode_header(
        std::span<const std::byte, wire::header_size>(answered_.data(), wire::header_size),
        wire::max_frame_payload);
    refused = header.ok() && header->kind == wire::frame_kind::refusal;
  }
  if (!refused) return leave("");
  part("");
}

/// Lets the client read the last words.
void gate_visitor::part(const std::string& why) {
  state_ = state::parting;
  why_ = why;
  ::shutdown(client_.get(), SHUT_WR);
  loop_.change(client_watch_, client_events_ = EPOLLIN | EPOLLRDHUP);
  loop_.forget(timer_);
  timer_ = loop_.after(parting_time, [this] { leave(why_); });
}

void gate_visitor::read_rest() {
  std::array<std::byte, 4096> nothing;
  while (ignored_ < parting_bytes) {
    const ssize_t got = ::recv(client_.get(), nothing.data(), nothing.size(), MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) break;
    ignored_ += static_cast<std::size_t>(got);
  }
  leave(why_);
}

}  // namespace outboard::backend
