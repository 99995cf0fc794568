#include "frontend/profile/profile_source.hh"

#include <utility>

#include "frontend/lane.hh"
#include "frontend/profile/profile_clock.hh"

namespace outboard::frontend {
namespace {

/// Questions behind those that bring records: one of them is quick, and says where the clocks stand.
constexpr int further_questions = 4;

}  // namespace

std::string profile_source::start() {
  request_.clear();
  if (!ask(services_.start)) return "the server has no answer to the question for it";
  wire::reader from(reply_);
  auto reply = marshal::take_body<marshal::profile_start_reply>(from);
  if (from.finished()) return std::move(reply.refusal);
  server_.malformed_reply("the start of a profile");
  return "the session is lost";
}

void profile_source::stop() {
  request_.clear();
  (void)ask(services_.stop);
}

void profile_source::fetch(bool all, profile_receiver& into) {
  into.begin_fetch();
  bool more = true;
  for (int further = 0; more || further < further_questions; further += more ? 0 : 1) {
    if (!take(all, into, more)) break;
  }
  into.end_fetch();
}

/// One reply. False: there will be none.
bool profile_source::take(bool all, profile_receiver& into, bool& more) {
  request_.clear();
  wire::writer w(request_);
  marshal::put_body(w, marshal::profile_take_body{all});
  const std::int64_t asked = profile_clock::now();
  if (!ask(services_.take)) return false;
  const std::int64_t answered = profile_clock::now();
  wire::reader from(reply_);
  auto reply = marshal::take_body<marshal::profile_take_reply>(from);
  if (!from.finished()) return server_.malformed_reply("a profile"), false;
  more = reply.more;
  into.add(std::move(reply), asked, answered);
  return true;
}

/// The request is written; the reply is there if this is true.
bool profile_source::ask(std::uint32_t what) {
  const outgoing question{what, this_lane().id, 0, request_, {}};
  return server_.call(question, reply_) == CUDA_SUCCESS;
}

}  // namespace outboard::frontend
