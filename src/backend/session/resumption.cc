#include "backend/session/resumption.hh"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "backend/daemon/handshake.hh"
#include "transport/send_whole.hh"
#include "transport/tls/handed_over.hh"
#include "wire/make_frame.hh"

namespace outboard::backend {
namespace {

using namespace std::chrono_literals;

/// How often the streams are looked after while nobody knocks and none changes: if they were used since the
/// last look or the client's time runs out, and else, when a part of the time between two beats is enough.
constexpr auto look_every = 100ms, look_at_idle_every = 500ms;
/// What a client sends first fits into any socket's buffer, and so does our answer.
constexpr auto answer_patience = 5s;
/// How long a client may take to read why it was refused.
constexpr auto parting_time = 1s;
/// A client that has never said anything as part of the stream may lack the secret, and then cannot come
/// back. One that has it notices a silent link after 5 s, and may need 5 s more to reach a busy server.
constexpr std::chrono::milliseconds unheard = 15s;
/// For a client that is still there to hear the end of a session that we end. It looks every 0.5 s, and a
/// worker has to be gone soon.
constexpr auto last_words = 1s;
/// A context of a client has some dozen data connections.
constexpr std::size_t most_past = 4096;
/// A client knocks for one stream at a time, and for all of them when its link is back.
constexpr std::size_t most_callers = 128;

}  // namespace

resumption::resumption(std::uint64_t session, unique_fd door, const wire::resume_terms& terms,
                       attach_link attach, report_link report)
    : session_(session),
      door_(std::move(door)),
      changed_(std::make_shared<unique_fd>(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))),
      terms_(terms),
      attach_(std::move(attach)),
      report_(std::move(report)),
      thread_([this] { stand_at_door(); }) {}

resumption::~resumption() {
  stopped_.store(true);
  ::shutdown(door_.get(), SHUT_RDWR);
  thread_.join();
}

std::unique_ptr<transport::connection> resumption::keep(const wire::stream_name& name,
                                                        std::unique_ptr<transport::connection> link,
                                                        transport::stream_options options, bool plain) {
  auto one = std::make_shared<kept>();
  one->name = name;
  options.changed = [changed = changed_] { (void)::eventfd_write(changed->get(), 1); };
  one->stream = std::make_shared<transport::resumable_stream>(std::move(link), std::move(options), plain);
  const std::lock_guard lock(mutex_);
  if (plain) own_ = one;
  streams_.push_back(one);
  return transport::connection_of(one->stream);
}

std::unique_ptr<transport::connection> resumption::begin_session(
    std::unique_ptr<transport::connection> link) {
  return keep({}, std::move(link), {}, true);
}

std::unique_ptr<transport::connection> resumption::adopt(const wire::stream_name& name,
                                                         std::unique_ptr<transport::connection> link) {
  return keep(name, std::move(link), transport::options_for_pieces(), false);
}

void resumption::welcomed() {
  std::vector<std::byte> terms = wire::encode(terms_);
  const iovec part{terms.data(), terms.size()};
  (void)own_->stream->send({&part, 1});  // the reader notices a lost connection
  own_->stream->begin();
}

void resumption::await_end() {
  std::shared_ptr<kept> own;
  {
    const std::lock_guard lock(mutex_);
    own = own_;
  }
  if (own) own->stream->await_end(transport::clock::now() + last_words);
}

void resumption::stand_at_door() {
  ::prctl(PR_SET_NAME, "outboard-door");
  bool used = false;
  while (!stopped_.load()) {
    std::array watched{pollfd{door_.get(), POLLIN, 0}, pollfd{changed_->get(), POLLIN, 0}};
    const auto pause = used || interrupted_ ? look_every : look_at_idle_every;
    if (::poll(watched.data(), watched.size(), static_cast<int>(pause.count())) > 0 &&
        watched[0].revents != 0) {
      auto message = receive_control(door_.get(), false);
      if (message.ok() && *message) {
        answer(**message);
      } else if (message.ok() || message.error().next != action::retry) {
        break;  // the session is over, or the daemon is gone
      }
    }
    eventfd_t changes = 0;
    (void)::eventfd_read(changed_->get(), &changes);
    used = look_after_streams();
  }
  for (caller& c : callers_) c.thread.join();
}

bool resumption::look_after_streams() {
  callers_.remove_if([](caller& c) { return c.over.load() && (c.thread.join(), true); });
  std::vector<std::shared_ptr<kept>> all, gone;
  std::shared_ptr<kept> own;
  {
    const std::lock_guard lock(mutex_);
    const auto left = std::partition(streams_.begin(), streams_.end(), [](const auto& one) {
      // Else its owner has let it go, and nothing is on the way.
      return one.use_count() > 1 || one->stream.use_count() > 1 || one->stream->leaving();
    });
    gone.assign(left, streams_.end());
    streams_.erase(left, streams_.end());
    for (const auto& one : gone) past_.push_back(one->name);
    while (past_.size() > most_past) past_.pop_front();
    all = streams_;
    own = own_;
  }
  bool used = false;
  const std::chrono::milliseconds given(terms_.linger_milliseconds);
  for (const auto& one : all) {
    used = one->stream->tend() || used;
    const auto since = one->stream->down_since();
    if (since && one->stream->leaving() && transport::clock::now() - *since >= given)
      one->stream->give_up(false, "");
  }
  if (!own || own->stream->leaving()) return used;
  // While a link is exchanged for another one there is none for a moment.
  const std::unique_lock settled(own->resuming, std::try_to_lock);
  if (!settled) return true;
  const auto since = own->stream->down_since();
  if (interrupted_ && since != interrupted_) report_(false);  // it came back, be it for a moment
  if (since && since != interrupted_) report_(true);
  interrupted_ = since;
  const auto linger = own->stream->peer_joined() ? given : std::min(given, unheard);
  if (since && transport::clock::now() - *since >= linger) {
    own->stream->give_up(
        false, fmt::format("the link to the client was interrupted and did not come back within {} s{}",
                           linger.count() / 1000,
                           linger == given ? " (limits.linger_seconds)" : ", and had never said anything"));
  }
  return used;
}

void resumption::answer(control_message& m) {
  auto knock = body_of<knock_message>(m.payload);
  CHECK(m.kind == control_kind::knock && knock && m.descriptor);
  if (callers_.size() >= most_callers) return;  // the client tries again
  caller& c = callers_.emplace_back();
  try {
    c.thread = std::thread([this, &c, about = std::move(*knock), fd = std::move(m.descriptor)]() mutable {
      let_in(about, std::move(fd));
      c.over.store(true);
    });
  } catch (const std::system_error&) {
    callers_.pop_back();  // as above
  }
}

std::pair<resumption::standing, std::shared_ptr<resumption::kept>> resumption::find(
    const wire::stream_name& name) {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find(streams_, name, [](const auto& one) { return one->name; });
  if (found != streams_.end() && !(*found)->stream->ended()) return {standing::kept, *found};
  if (found != streams_.end() || std::ranges::find(past_, name) != past_.end()) return {standing::over, {}};
  return {standing::unknown, {}};
}

/// Over TLS our answer has to wait for the client's next message, which it sends right behind its hello.
/// Waiting for it here keeps no later knock waiting if that link has broken, too.
bool resumption::has_spoken(const unique_fd& client) const {
  const auto until = transport::clock::now() + answer_patience;
  pollfd one{client.get(), POLLIN, 0};
  while (!stopped_.load() && transport::clock::now() < until) {
    if (::poll(&one, 1, static_cast<int>(look_every.count())) > 0) return true;
  }
  return false;
}

void resumption::let_in(const knock_message& m, unique_fd descriptor) {
  if (transport::tls::is_encrypted(m.scheme) && !has_spoken(descriptor)) return;
  auto link = attach_(m.scheme, std::move(descriptor));
  if (!link) return;
  const auto [found, one] = find(m.stream);
  // A data connection may break before the request that tells us of it.
  if (found == standing::unknown)
    return refuse(**link, wire::refusal_reason::busy, "the session does not know this connection yet");
  if (found == standing::over || !one->stream->can_resume(m.arrived))
    return refuse(**link, wire::refusal_reason::question, "there is nothing to resume");
  one->stream->cut_link();  // ends an earlier knock that still sends
  const std::lock_guard resuming(one->resuming);
  if (!welcome(**link, m, one->stream->stop_link())) return;
  (void)one->stream->resume(std::move(*link), m.arrived);
  (void)::eventfd_write(changed_->get(), 1);
}

status resumption::welcome(transport::connection& link, const knock_message& m, std::uint64_t arrived) const {
  auto content = wire::encode_resume_answer(arrived, terms_.secret, m.fresh);
  return transport::send_whole(link, make_welcome(m.seal, std::move(content), session_),
                               transport::clock::now() + answer_patience);
}

void resumption::refuse(transport::connection& link, wire::refusal_reason reason,
                        const std::string& why) const {
  const auto frame = wire::make_frame(wire::frame_kind::refusal, wire::encode(wire::refusal{reason, why}));
  if (!transport::send_whole(link, frame, transport::clock::now() + answer_patience).ok()) return;
  // The end of an encrypted handshake is still to come. Closed before that, the socket would reset the
  // connection, and the client would not read why.
  (void)link.wait_readable(transport::clock::now() + parting_time);
}

}  // namespace outboard::backend
