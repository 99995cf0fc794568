#include "backend/session/session.hh"

#include "backend/session/patience.hh"
#include "backend/session/resumption.hh"
#include "backend/session/session_core.hh"
#include "backend/session/successor.hh"
#include "base/log.hh"
#include "base/version.hh"
#include "marshal/data_bodies.hh"
#include "transport/spin.hh"
#include "wire/features.hh"
#include "wire/output.hh"

namespace outboard::backend {

using namespace std::chrono_literals;
using ahead = session_api::ahead;

namespace {

/// How often the stand-by looks whether the client is still there while a lane holds the turn inside the
/// driver.
constexpr auto watch_interval = 100ms;
/// The same where a client that ends waits for us to have heard it.
constexpr auto farewell_interval = 10ms;

/// The same while the client is to run a host function: whoever is inside the driver may be waiting for it.
constexpr auto ahead_interval = 1ms;
/// Whether one is inside the driver for long, where the client may write a word that it waits for.
constexpr auto look_interval = 5ms;

/// A client that has closed may have left work that ends by itself (its last requests, the goodbye): it gets
/// this long.
constexpr auto gone_patience = 300ms;

/// Between the last release of a context, which runtimes make from a destructor, and the end of the process.
constexpr auto leaving_moment = 2ms;

/// How long lanes may take to leave the driver once the session is over. A worker has to be gone within a
/// second.
constexpr auto lane_patience = 300ms;

}  // namespace

session_end serve_session(session_request request) {
  auto core = std::make_unique<session_core>(std::move(request));
  session_end end = core->run();
  if (end.stuck) {
    (void)core.release();  // its threads still use it
  } else if (core->api().leaves_commands()) {
    end.left = std::move(core);
  }
  return end;
}

session_core::session_core(session_request request)
    : request_(std::move(request)),
      connection_(*request_.connection),
      from_(connection_),
      api_(request_.make_api(*this)),
      data_(
          api_->pieces(), [this](std::string why) { end(false, std::move(why)); },
          [this] { return api_->look_after_copies(); }) {}

void session_core::welcome() {
  if (request_.hello.features & wire::feature_packed_pieces) data_.pack_pieces();
  auto content = api_->begin();
  std::vector<std::byte> payload;
  wire::frame_header header;
  if (!content) {
    header.kind = wire::frame_kind::refusal;
    payload = wire::encode(wire::refusal{wire::refusal_reason::device, content.error().message});
    send(header, payload);
    return end(false, content.error().message);
  }
  wire::welcome w;
  w.features = request_.hello.features;
  w.session = request_.id;
  w.product = product;
  w.content = std::move(*content);
  header.kind = wire::frame_kind::welcome;
  payload = wire::encode(w, request_.seal);
  send(header, payload);
  if (request_.resuming) request_.resuming->welcomed();
}

/// How long the stand-by waits for the turn before it looks around.
std::chrono::milliseconds session_core::watch_interval_now() const {
  const ahead what = api_->reads_ahead();
  if (what == ahead::answers) return ahead_interval;
  if (what == ahead::words) return executing_.load() ? ahead_interval : look_interval;
  return request_.resuming ? farewell_interval : watch_interval;
}

/// Nothing of it may be taken down with care: another worker has the connection, and memory of the device.
session_end session_core::end_without_a_word(bool handed_on, std::string why) {
  return {.orderly = handed_on, .why = std::move(why), .stuck = true, .handed_on = handed_on};
}

/// An error: the session stays with the worker that has it; nothing has been said to the client.
status session_core::begin() {
  if (!request_.before) return welcome(), status();
  mute_.store(true);
  status gone_on = go_on(request_.before->image());
  if (!gone_on.ok()) return request_.before->decline(gone_on.error().message), gone_on;
  OUTBOARD_TRY(request_.before->accept());
  mute_.store(false);
  return {};
}

session_end session_core::run() {
  if (const status begun = begin(); !begun.ok()) return end_without_a_word(false, begun.error().message);
  if (request_.before && request_.on_begin) request_.on_begin();
  if (request_.next) request_.next->watch([this] { wish_to_leave(); });
  connection_.set_spin(transport::default_spin());
  auto gone_since = std::chrono::steady_clock::time_point::max();
  while (!turn_.ended()) {
    const auto now = std::chrono::steady_clock::now();
    const auto interval = watch_interval_now();
    const std::uint64_t before = executed_.load(std::memory_order_relaxed);
    if (turn_.await_free(standby_, now + interval)) {
      lead(nullptr);
      while (wants_to_leave() && turn_.held_by(standby_) && !turn_.ended()) {
        if (leave()) return end_without_a_word(true, "another worker goes on with it");
        lead(nullptr);
      }
    } else {
      const ahead what = api_->reads_ahead();
      const bool stands = executed_.load(std::memory_order_relaxed) == before;
      if (what == ahead::answers || (what == ahead::words && stands)) read_ahead();
    }
    if (!turn_.ended() && connection_.peer_gone()) {
      gone_since = std::min(gone_since, now);
      if (now - gone_since >= gone_patience) end(false, "the client is gone");
    }
  }
  if (request_.next) request_.next->stop();
  const bool stuck = !join_lanes();
  api_->end(stuck);
  if (!stuck && request_.broker) request_.broker->end();
  const std::lock_guard lock(end_mutex_);
  end_.stuck = stuck;
  return end_;
}

void session_core::end(bool orderly, std::string why) {
  {
    const std::lock_guard lock(end_mutex_);
    if (has_ended_) return;
    has_ended_ = true;
    end_ = {orderly, std::move(why)};
  }
  connection_.shutdown();
  api_->stop();
  data_.end();
  turn_.end();
  turn_.wake(standby_);
}

/// False: a lane is still inside the driver after a little patience.
bool session_core::join_lanes() {
  for (auto& [number, l] : lanes_) turn_.wake(*l);
  const auto until = std::chrono::steady_clock::now() + lane_patience;
  for (auto& [number, l] : lanes_) {
    while (!l->gone.load(std::memory_order_acquire)) {
      if (std::chrono::steady_clock::now() > until) return false;
      std::this_thread::sleep_for(1ms);
    }
  }
  for (auto& [number, l] : lanes_) l->thread.join();
  return data_.join(until);
}

void session_core::send_data(const wire::data_place& place, std::span<const std::byte> bytes) {
  send({.kind = wire::frame_kind::data}, wire::encode_data_place(place), bytes);
}

void session_core::send_data_with_reply(lane& own, const wire::data_place& place,
                                        std::span<const std::byte> bytes) {
  const auto prefix = wire::encode_data_place(place);
  const wire::frame_header header{.size = static_cast<std::uint32_t>(prefix.size() + bytes.size()),
                                  .kind = wire::frame_kind::data,
                                  .ack = executed_.load(std::memory_order_relaxed)};
  std::array<std::byte, wire::header_size> raw;
  wire::encode_header(header, raw);
  for (const std::span<const std::byte> part :
       {std::span<const std::byte>(raw), std::span<const std::byte>(prefix), bytes})
    own.before_reply.insert(own.before_reply.end(), part.begin(), part.end());
}

void session_core::send_behind(std::span<const std::byte> before, wire::frame_header header,
                               std::span<const std::byte> payload, std::span<const std::byte> bulk) {
  header.size = static_cast<std::uint32_t>(payload.size() + bulk.size());
  header.ack = executed_.load(std::memory_order_relaxed);
  std::array<std::byte, wire::header_size> raw;
  wire::encode_header(header, raw);
  const auto part = [](std::span<const std::byte> b) {
    return iovec{const_cast<std::byte*>(b.data()), b.size()};
  };
  const std::array parts{part(before), part(raw), part(payload), part(bulk)};
  const std::size_t first = before.empty() ? 1 : 0;
  const std::lock_guard lock(send_mutex_);
  if (mute_.load()) return;
  // The reader notices a lost connection.
  (void)connection_.send(std::span(parts).subspan(first, (bulk.empty() ? 3 : 4) - first));
}

void session_core::send_descriptor(std::uint64_t ticket, int fd) {
  wire::frame_header header;
  header.kind = wire::frame_kind::descriptor;
  header.ticket = ticket;
  header.ack = executed_.load(std::memory_order_relaxed);
  std::array<std::byte, wire::header_size> raw;
  wire::encode_header(header, raw);
  const std::array parts{iovec{raw.data(), raw.size()}};
  const std::lock_guard lock(send_mutex_);
  // The reader notices a lost connection; a frame without its descriptor would leave the stream out of step.
  if (connection_.send(parts).status != transport::io::done) return;
  if (!connection_.send_descriptor(fd)) connection_.shutdown();
}

bool session_core::client_is_leaving() {
  const auto until = std::chrono::steady_clock::now() + leaving_moment;
  while (!connection_.peer_gone()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(100us);
  }
  return true;
}

std::unique_ptr<transport::connection> session_core::take_data_connection(const marshal::share_token& token) {
  if (!request_.broker || !request_.attach) return nullptr;
  auto kept = request_.broker->take_back(share_class::connection, token);
  if (!kept) return nullptr;
  auto link =
      request_.attach({kept->about.native.begin(), kept->about.native.end()}, std::move(kept->descriptor));
  if (!link.ok()) return nullptr;
  return request_.resuming ? request_.resuming->adopt(token, std::move(*link)) : std::move(*link);
}

std::optional<marshal::data_open_reply> session_core::open_data_connections(
    const marshal::data_open_body& body, std::uint64_t context) {
  marshal::data_open_reply reply;
  const std::uint64_t set = data_.begin_set();
  for (std::size_t i = 0; i < body.tokens.size(); ++i) {
    auto link = take_data_connection(body.tokens[i]);
    if (!link) return std::nullopt;
    if (i < body.inward) {
      if (!data_.add_inward(std::move(link), context, set)) return std::nullopt;
      continue;
    }
    const auto number =
        data_.add_outward(std::move(link), context, set,
                          body.later ? body.later + static_cast<std::uint32_t>(i) - body.inward : 0);
    if (!number) return std::nullopt;
    reply.outward.push_back(*number);
  }
  return reply;
}

bool session_core::make_room(const room_message& needed) const {
  return request_.broker && request_.broker->make_room(needed);
}

std::chrono::microseconds session_core::patience() const { return spin_budget(!others_ask()); }

void session_core::give_up_turn(lane& own) {
  if (own.gave_up_turn || own.replaying) return;
  own.gave_up_turn = true;
  stop_reading_ahead();
  turn_.release(standby_);
}

bool session_core::others_ask() const {
  int others = 0;
  for (auto at = lanes_.begin(); at != lanes_.end() && others < 2; ++at)
    others += !at->second->gone.load(std::memory_order_relaxed);
  return others > 1;
}

void session_core::tell_failure(const std::string& line) {
  log::info(line);
  if (request_.output) request_.output->tell(line);
}

void session_core::send_output() {
  if (!request_.output) return;
  request_.output->flush([this](std::uint8_t what, std::string_view text) {
    if (what != wire::output_log || (request_.hello.features & wire::feature_failure_lines) != 0)
      send_output_bytes(what, std::as_bytes(std::span(text)));
  });
}

void session_core::send_output_bytes(std::uint8_t what, std::span<const std::byte> bytes) {
  wire::frame_header header;
  header.kind = wire::frame_kind::output;
  send(header, std::as_bytes(std::span(&what, 1)), bytes);
}

void request_at_hand::give_up_turn() {
  // Whoever asks behind a post waits for it as its own lane does.
  if (header.kind != wire::frame_kind::post) core.give_up_turn(own);
}

}  // namespace outboard::backend
