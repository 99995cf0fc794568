#include "backend/session/successor.hh"

#include <sys/prctl.h>
#include <sys/socket.h>

#include <utility>

#include "backend/daemon/control.hh"
#include "backend/session/successor_messages.hh"

namespace outboard::backend {
namespace {

using namespace std::chrono_literals;

/// A copy of module images and of variables; what the device holds is not copied.
constexpr auto time_to_give = 30s;
/// For the other worker to be there: it may open a device.
constexpr auto time_to_start = 60s;
/// For the other worker to make everything again: it loads modules, and compiles them perhaps.
constexpr auto time_to_make = 120s;

/// What the two say to each other behind the image. An empty word of the second: all is made.
constexpr const char* go = "go";
constexpr const char* keep = "keep";

}  // namespace

successor::successor(unique_fd socket, attach_connection attach)
    : socket_(std::move(socket)), attach_(std::move(attach)) {}

successor::~successor() { stop(); }

void successor::stop() {
  ::shutdown(socket_.get(), SHUT_RDWR);
  {
    const std::lock_guard lock(end_mutex_);
    stopped_ = true;
    if (channel_) channel_->shutdown();
  }
  seen_.release();
  if (thread_.joinable()) thread_.join();
}

void successor::watch(std::function<void()> wake) {
  wake_ = std::move(wake);
  thread_ = std::thread([this] { listen(); });
}

void successor::listen() {
  ::prctl(PR_SET_NAME, "outboard-next");
  while (true) {
    auto message = receive_control(socket_.get(), true);
    if (!message.ok() || !*message) return;  // the session is over, or the daemon is gone
    const auto wish = body_of<leave_message>((*message)->payload);
    CHECK((*message)->kind == control_kind::leave && wish && (*message)->descriptor);
    CHECK(!named_.load());  // the daemon waits for the answer to one before the next
    patience_ = std::chrono::milliseconds(wish->milliseconds);
    status ready = open_channel(std::move((*message)->descriptor));
    if (ready.ok()) ready = let_prepare();
    if (ready.ok()) {
      prepared_ = true;
      if (!let_session_see()) return;
      continue;
    }
    {
      const std::lock_guard lock(end_mutex_);
      channel_.reset();
      if (stopped_) return;
    }
    answer(ready.error().message);
  }
}

/// It opens its device, perhaps, and takes nothing before it has.
status successor::open_channel(unique_fd descriptor) {
  auto channel = attach_(successor_scheme(), std::move(descriptor));
  if (!channel.ok()) return std::move(channel).error();
  {
    const std::lock_guard lock(end_mutex_);
    channel_ = std::move(*channel);
    if (stopped_) return failure("the session ended");
  }
  const auto there = receive_word(*channel_, transport::clock::now() + time_to_start);
  return there.ok() ? status() : failure("the other worker did not start: " + there.error().message);
}

/// The session's main thread does the next step, and says so. False: the session is over.
bool successor::let_session_see() {
  named_.store(true);
  wake_();
  seen_.acquire();
  const std::lock_guard lock(end_mutex_);
  return !stopped_;
}

status successor::let_prepare() {
  prepared_ = false;
  if (!let_session_see()) return failure("the session ended");
  if (!preparation_) return failure(std::exchange(why_not_, {}));
  session_image ahead;
  ahead.bytes = std::exchange(preparation_, nullptr)->encode();
  OUTBOARD_TRY(send_image(*channel_, ahead, transport::clock::now() + time_to_give));
  ahead = {};
  const auto done = receive_word(*channel_, transport::clock::now() + time_to_make);
  if (!done.ok()) return failure("the other worker ended: " + done.error().message);
  return done->empty() ? status() : failure(*done);
}

void successor::prepare(result<std::unique_ptr<session_api::preparation>> what) {
  if (what.ok()) {
    preparation_ = std::move(*what);
  } else {
    why_not_ = what.error().message;
  }
  named_.store(false);
  seen_.release();
}

void successor::answer(const std::string& why) {
  (void)send_control(socket_.get(), control_kind::stays, encode_text(why)).ok();
}

status successor::give(const session_image& image) {
  const auto attempt = [&]() -> status {
    const auto until = transport::clock::now() + time_to_give;
    OUTBOARD_TRY(send_image(*channel_, image, until));
    auto made = receive_word(*channel_, until + time_to_make);
    if (!made.ok()) return failure("the other worker ended: " + made.error().message);
    return made->empty() ? status() : status(failure(*made));
  };
  status given = attempt();
  if (given.ok()) given = send_word(*channel_, go, transport::clock::now() + time_to_give);
  if (!given.ok()) refuse(given.error().message);
  return given;
}

void successor::refuse(const std::string& why) {
  (void)send_word(*channel_, keep, transport::clock::now() + time_to_give).ok();
  {
    const std::lock_guard lock(end_mutex_);
    channel_.reset();
  }
  prepared_ = false;
  named_.store(false);
  answer(why);
  seen_.release();
}

result<std::vector<std::byte>> predecessor::receive_preparation() {
  OUTBOARD_TRY(send_word(*channel_, "", transport::clock::now() + time_to_give));
  auto image = receive_image(*channel_, transport::clock::now() + time_to_start + time_to_give);
  if (!image.ok()) return std::move(image).error();
  return std::move(image->bytes);
}

status predecessor::tell_prepared(const status& done) {
  const std::string why = done.ok() ? std::string() : done.error().message;
  OUTBOARD_TRY(send_word(*channel_, why, transport::clock::now() + time_to_give));
  return done;
}

status predecessor::receive() {
  auto image = receive_image(*channel_, transport::clock::now() + time_to_start + time_to_give);
  if (!image.ok()) return std::move(image).error();
  image_ = std::move(*image);
  return {};
}

status predecessor::accept() {
  const auto until = transport::clock::now() + time_to_give;
  (void)send_word(*channel_, "", until).ok();  // whether it hears that or has ended shows what it says
  const auto word = receive_word(*channel_, until);
  // One that ends without a word has not gone on with the session: it is ours, whole.
  if (!word.ok()) return word.error().reason == transport::connection_broke ? status() : status(word.error());
  return *word == go ? status() : status(failure("the session stays with its worker"));
}

void predecessor::decline(const std::string& why) {
  (void)send_word(*channel_, why, transport::clock::now() + time_to_give).ok();
}

}  // namespace outboard::backend
