#include "frontend/reconnector.hh"

#include <sys/prctl.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <thread>
#include <utility>

#include "base/blocked_signals.hh"
#include "base/log.hh"
#include "base/version.hh"
#include "frontend/run_report.hh"

namespace outboard::frontend {
namespace {

using namespace std::chrono_literals;

/// How often the streams are looked after while nothing is reported: those that were used since the last
/// look, and others, for which a part of the time between two beats is enough.
constexpr auto look_every = 100ms, look_at_idle_every = 500ms;
/// The server lets us hear from it every 1.5 s: a link over which nothing comes for so long is dead, whatever
/// TCP says, for a relay may still acknowledge.
constexpr auto silence = 5s;

/// A server that is there greets within this time and three round trips. Trying again soon finds a link that
/// has come back early; a busy server is found by a second thread with more patience.
constexpr auto least_patience = 40ms;
constexpr auto patient = 5s, patient_after = 1s;
/// A server that has greeted takes a moment to pass the connection on to the worker.
constexpr auto answer_patience = 5s;
/// A port at which nothing listens for so long belongs to no relay that restarts.
constexpr auto absence = 2s;
constexpr auto first_pause = 2ms, longest_pause = 20ms;

std::string seconds(std::chrono::milliseconds time) { return std::to_string((time.count() + 999) / 1000); }

}  // namespace

reconnector::reconnector(const transport::registry& transports, const dialed& with,
                         std::vector<std::byte> token, std::shared_ptr<encryption> encrypts)
    : transports_(transports),
      url_(with.url),
      token_(std::move(token)),
      encrypts_(std::move(encrypts)),
      session_(with.welcome.session),
      terms_(*with.terms),
      run_(report_to_run({url_, session_, terms_.secret})),
      quick_(std::min<std::chrono::nanoseconds>(least_patience + 3 * with.greeted_after, patient)) {}

std::shared_ptr<reconnector> reconnector::make(const transport::registry& transports, const dialed& with,
                                               std::vector<std::byte> token,
                                               std::shared_ptr<encryption> encrypts) {
  return std::shared_ptr<reconnector>(
      new reconnector(transports, with, std::move(token), std::move(encrypts)));
}

std::unique_ptr<transport::connection> reconnector::adopt_session(
    std::unique_ptr<transport::connection> link) {
  return watch({}, std::move(link), {.silence = silence});
}

std::unique_ptr<transport::connection> reconnector::adopt(const wire::stream_name& name,
                                                          std::unique_ptr<transport::connection> link) {
  transport::stream_options options = transport::options_for_pieces();
  options.silence = silence;
  return watch(name, std::move(link), std::move(options));
}

std::unique_ptr<transport::connection> reconnector::watch(const wire::stream_name& name,
                                                          std::unique_ptr<transport::connection> link,
                                                          transport::stream_options options) {
  auto one = std::make_shared<watched>();
  one->name = name;
  options.changed = [weak = weak_from_this(), watching = std::weak_ptr(one)] {
    const auto here = weak.lock();
    const auto what = watching.lock();
    if (!here || !what) return;
    const std::lock_guard lock(here->mutex_);
    // Else `outboard run` ends the session when it learns that the program is dead.
    if (what == here->own_ && what->stream->parted()) report_end(here->run_);
    here->changed_ = true;
    here->wanted_.notify_all();
  };
  one->stream = std::make_shared<transport::resumable_stream>(std::move(link), std::move(options));
  // Before the thread sees the stream, for which it would have no owner any more.
  std::unique_ptr<transport::connection> owner = transport::connection_of(one->stream);
  {
    const std::lock_guard lock(mutex_);
    if (!own_) own_ = one;
    watched_.push_back(one);
  }
  if (!start_thread()) log::warn("a broken link to ", url_, " will end the session: no thread can be made");
  return owner;
}

bool reconnector::start_thread() {
  const std::lock_guard lock(mutex_);
  if (running_) return true;
  const blocked_signals blocked;
  try {
    std::thread([self = shared_from_this()] { self->look_after_all(); }).detach();
  } catch (const std::system_error&) {
    return false;
  }
  return running_ = true;
}

std::vector<std::shared_ptr<reconnector::watched>> reconnector::all() {
  std::vector<std::shared_ptr<watched>> gone;  // they go without the lock
  const std::lock_guard lock(mutex_);
  const auto left = std::partition(watched_.begin(), watched_.end(), [](const auto& one) {
    // Else its owner has let it go, and nothing is on the way.
    return one->stream.use_count() > 1 || one->redialing.load() || one->stream->leaving();
  });
  gone.assign(left, watched_.end());
  watched_.erase(left, watched_.end());
  return watched_;
}

void reconnector::look_after_all() {
  ::prctl(PR_SET_NAME, "outboard-links");
  while (!own_->stream->ended()) {
    bool used = false;
    for (const auto& one : all()) {
      used = one->stream->tend() || used;
      if (one->stream->down_since()) bring_back(one);
    }
    std::unique_lock lock(mutex_);
    wanted_.wait_for(lock, used ? look_every : look_at_idle_every,
                     [this] { return std::exchange(changed_, false); });
  }
  // What the session's other streams wait for will not come.
  for (const auto& one : all()) one->stream->give_up(true, "");
}

/// Several streams break at the same time, and each takes some round trips: a thread for each.
void reconnector::bring_back(const std::shared_ptr<watched>& one) {
  if (one->redialing.exchange(true)) return;
  const blocked_signals blocked;
  try {
    std::thread([self = shared_from_this(), one] {
      ::prctl(PR_SET_NAME, "outboard-redial");
      self->keep_trying(*one, self->quick_);
      one->redialing.store(false);
      const std::lock_guard lock(self->mutex_);
      self->changed_ = true;
      self->wanted_.notify_all();
    }).detach();
  } catch (const std::system_error&) {
    one->redialing.store(false);  // the next look tries again
  }
}

void reconnector::keep_trying(watched& one, std::chrono::nanoseconds patience) {
  const auto linger = std::chrono::milliseconds(terms_.linger_milliseconds);
  const auto began = transport::clock::now();
  tries so_far;
  std::jthread slower;
  if (patience == quick_) log::info("the link to ", url_, " is interrupted");
  for (std::chrono::nanoseconds pause = first_pause;;
       pause = std::min<std::chrono::nanoseconds>(2 * pause, longest_pause)) {
    const auto since = one.stream->down_since();
    if (!since) return;
    const auto now = transport::clock::now();
    if (now - *since >= linger) {
      return one.stream->give_up(
          false, "the link to the server was interrupted for longer than " + seconds(linger) +
                     " s (limits.linger_seconds of the server), after which it ends the session" +
                     (so_far.problem.empty() ? "" : "; last: " + so_far.problem));
    }
    switch (attempt(one, patience, so_far)) {
      case outcome::resumed:
        return log::info("the link to ", url_, " is back");
      case outcome::over:
        return;
      case outcome::again:
        break;
    }
    if (patience < patient && !slower.joinable() && now - began > patient_after) {
      const blocked_signals blocked;
      try {
        slower = std::jthread([this, &one] { keep_trying(one, patient); });
      } catch (const std::system_error&) {
        patience = patient;
      }
    }
    std::this_thread::sleep_for(pause);
  }
}

reconnector::outcome reconnector::attempt(watched& one, std::chrono::nanoseconds patience, tries& so_far) {
  wire::hello hello;
  hello.product = product;
  hello.wanted = wire::purpose_resume;
  wire::handshake_challenges fresh;
  const auto complete = [&](wire::hello& h, const wire::nonce& server) {
    const std::lock_guard resuming(one.resuming);
    if (!one.stream->down_since()) return false;
    so_far.asked_after = one.resumes;
    fresh = {server, h.challenge};
    wire::resume_question question;
    question.session = session_;
    question.stream = one.name;
    question.arrived = one.stream->stop_link();
    h.admin_question = wire::encode_resume_question(question, terms_.secret, fresh);
    return true;
  };
  auto made = dial(transports_, url_, std::move(hello), token_, transport::clock::now() + patience,
                   answer_patience, encrypts_, complete);
  if (!made) return refused(one, made.error(), so_far);
  return go_on(one, std::move(made->connection),
               wire::decode_resume_answer(made->welcome.content, terms_.secret, fresh), so_far);
}

/// What a failed try means for the session.
reconnector::outcome reconnector::refused(watched& one, const error& why, tries& so_far) {
  so_far.problem = why.message;
  const auto now = transport::clock::now();
  const bool absent = why.reason == ECONNREFUSED;
  so_far.absent_since = absent ? std::min(so_far.absent_since, now) : transport::no_deadline;
  // The server has ended; a relay on the way would be back by now.
  if (absent && now - so_far.absent_since >= absence) return one.stream->give_up(false, ""), outcome::over;
  if (absent || why.reason == 0 || why.reason == static_cast<int>(wire::refusal_reason::busy))
    return outcome::again;
  // The server has no such session any more, which is how it ends those whose worker is gone.
  const bool gone = why.reason == static_cast<int>(wire::refusal_reason::question);
  const std::lock_guard resuming(one.resuming);
  if (gone && out_of_date(one, so_far)) return outcome::again;
  one.stream->give_up(gone, gone ? "" : why.message);
  return outcome::over;
}

/// With `resuming`: the stream has gone on since the last question, by the other thread. The question and the
/// answer say how much had arrived before that, so nothing may be sent again from there, by either side.
bool reconnector::out_of_date(const watched& one, const tries& so_far) {
  return one.resumes != so_far.asked_after;
}

reconnector::outcome reconnector::go_on(watched& one, std::unique_ptr<transport::connection> link,
                                        const result<std::uint64_t>& server_has, tries& so_far) {
  if (!server_has) return so_far.problem = server_has.error().message, outcome::again;
  const std::lock_guard resuming(one.resuming);
  if (!one.stream->down_since()) return outcome::resumed;  // by the other thread
  if (out_of_date(one, so_far)) return outcome::again;
  ++one.resumes;
  if (one.stream->resume(std::move(link), *server_has)) return outcome::resumed;
  one.stream->give_up(false, "the server resumed the session elsewhere than it was");
  return outcome::over;
}

bool reconnector::await_link() {
  std::unique_lock lock(mutex_);
  while (own_->stream->down_since()) wanted_.wait_for(lock, look_every);
  return !own_->stream->ended();
}

}  // namespace outboard::frontend
