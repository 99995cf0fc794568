#include "frontend/cupti/board_feed.hh"

#include <utility>

#include "frontend/lane.hh"
#include "marshal/cuda/bodies.hh"

namespace outboard::frontend::cupti {

std::string board_feed::start(session& server) {
  const auto reply = ask(server, true);
  if (!reply) return "the server has no answer to the question for it";
  if (reply->refusal.empty()) server_ = &server;
  return reply->refusal;
}

void board_feed::stop() {
  if (session* const server = std::exchange(server_, nullptr)) (void)ask(*server, false);
}

std::vector<api::board_sample> board_feed::fetch() {
  if (!server_) return {};
  auto reply = ask(*server_, true);
  if (!reply) return {};
  dropped_ += reply->dropped;
  for (api::board_sample& s : reply->samples) s.at = static_cast<std::uint64_t>(clock_.ours(s.at));
  return std::move(reply->samples);
}

std::uint64_t board_feed::take_dropped() { return std::exchange(dropped_, 0); }

/// Nothing: the session is lost.
std::optional<marshal::profile_samples_reply> board_feed::ask(session& server, bool on) {
  request_.clear();
  wire::writer w(request_);
  marshal::put_body(w, marshal::profile_samples_body{on});
  const outgoing question{
      static_cast<std::uint32_t>(marshal::service::profile_samples), this_lane().id, 0, request_, {}};
  clock_.begin_look();
  const std::int64_t asked = profile_clock::now();
  if (server.call(question, reply_) != CUDA_SUCCESS) return std::nullopt;
  const std::int64_t answered = profile_clock::now();
  wire::reader from(reply_);
  auto reply = marshal::take_body<marshal::profile_samples_reply>(from);
  if (!from.finished()) return server.malformed_reply("samples of sensors"), std::nullopt;
  if (reply.left != 0)
    clock_.note(asked, static_cast<std::int64_t>(reply.came), static_cast<std::int64_t>(reply.left),
                answered);
  return reply;
}

}  // namespace outboard::frontend::cupti
