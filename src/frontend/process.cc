#include "frontend/process.hh"

#include <pthread.h>
#include <sys/auxv.h>
#include <unistd.h>
#include <algorithm>

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "base/log.hh"
#include "base/version.hh"
#include "frontend/core_dumps.hh"
#include "frontend/dial.hh"
#include "frontend/memory/live_memory.hh"
#include "frontend/memory/managed_blocks.hh"
#include "frontend/profile/profile.hh"
#include "frontend/settings.hh"
#include "frontend/trace.hh"
#include "transport/resumable/stream.hh"
#include "wire/features.hh"
#include "wire/output.hh"

namespace outboard::frontend {

std::atomic<core_dump_taker> core_dumps{nullptr};

namespace {

constexpr std::chrono::seconds connect_patience{10};
std::atomic<bool> touched{false};  // a connection has been asked for

/// By way of stdio, as the real driver: what the program printed before comes out before.
void put_out(int descriptor, std::string_view text) {
  if (descriptor == wire::output_core_dump) {
    auto* const take = core_dumps.load();
    return take ? take(text) : void();
  }
  if (descriptor == wire::output_log) return log::error(text);
  (void)!std::fwrite(text.data(), 1, text.size(), descriptor == wire::output_text ? stdout : stderr);
}

}  // namespace

process& process::instance() {
  // Never destroyed: libraries call the driver from their destructors, in any order (design section 5.4).
  static process* const the_one = new process;
  return *the_one;
}

process::process() = default;
process::~process() = default;

void process::boot(const boot_options& options) {
  options_ = options;
  on_lane_end([](lane& ended) {
    profile::end_lane(ended);
    process& p = instance();
    if (p.usable() && p.server()) p.server()->end_lane(ended.id);
  });
  pthread_atfork(nullptr, nullptr, [] { process::instance().forked_child(); });
}

void process::forked_child() {
  // As on the real driver, CUDA is not initialised in a child. Nothing is freed and no byte is sent: the
  // connection, its locks and its buffers are the parent's.
  trace::forked();
  profile::forked();
  watch_calls(call_watcher::tool, false);  // a profiler's locks are the parent's
  annotation_tool.store(nullptr);
  // One in which nothing was begun may begin by itself.
  if (!touched.load(std::memory_order_acquire)) return;
  life_.store(life::forked, std::memory_order_release);
  functions_.forked();
  if (options_.forked) options_.forked();
}

void process::shut_down() {
  if (life_.load() == life::forked) return;
  life_.store(life::ended, std::memory_order_release);
  if (call_observer* const own = tool.load()) own->ending();
  if (session_) profile::finish(session_->moved());
  if (session_) session_->goodbye();
  memory_.stop();
  functions_.end();
  if (session_) session_->await_goodbye(transport::clock::now() + transport::parting_time);
}

CUresult process::connect() {
  const life now = life_.load(std::memory_order_acquire);
  if (now == life::forked) return CUDA_ERROR_NOT_INITIALIZED;
  if (now == life::ended) return CUDA_ERROR_DEINITIALIZED;
  if (now == life::connected || now == life::running) return CUDA_SUCCESS;
  touched.store(true, std::memory_order_release);
  std::string unrecorded;
  {
    const std::lock_guard lock(connect_mutex_);
    if (!std::exchange(tried_, true)) connect_code_ = connect_locked(unrecorded);
    if (unrecorded.empty()) return connect_code_;
  }
  tool.load()->cannot_record(unrecorded);
  return connect_code_;
}

result<wire::welcome> process::ask_aside(wire::hello question, transport::deadline until) const {
  if (::getauxval(AT_SECURE)) return failure("a program with privileges asks no server");
  const auto settings = client_settings();
  if (!settings) return settings.error();
  // Of its own, so that a child of fork() may ask too.
  transport::registry transports;
  if (auto added = options_.add_transports(transports, settings->plugins); !added) return added.error();
  auto dialed = dial_any(*settings, transports, question, until);
  if (!dialed) return std::move(dialed).error();
  return std::move(dialed->welcome);
}

void process::use_session(const dialed& with, const settings& s) {
  dialer_ = data_dialer(transports_, with, s);
  exchanges_words_ = (with.welcome.features & wire::feature_words) != 0;
  lane_uploads_ = (with.welcome.features & wire::feature_lane_uploads) != 0;
  const bool kept = (with.welcome.features & wire::feature_image_recall) != 0;
  recalls_ = kept ? std::make_unique<image_recalls>(with.challenge) : nullptr;
  memory_.use(facts_, s);
}

session_events process::make_events(const std::string& url) {
  session_events events;
  events.sticky_error = [this](std::uint64_t context, std::int32_t code) { sticky(context, code); };
  events.graph_place = [this](std::uint64_t id, std::uint64_t offset, std::uint64_t size) -> std::byte* {
    const auto box = functions_.box(id);
    return box ? box->place(offset, size) : nullptr;
  };
  events.output = put_out;
  events.lost = [url](const std::string& why) {
    log::error(why, " (", url, "): every CUDA call returns an error from now on; restart the program");
  };
  return events;
}

CUresult process::connect_locked(std::string& unrecorded) {
  if (::getauxval(AT_SECURE)) {
    log::error(
        "this program runs with privileges that its user has not (setuid, setgid or capabilities): "
        "it gets no device, because a server would be named by that user");
    return CUDA_ERROR_NO_DEVICE;
  }
  const auto settings = client_settings();
  if (!settings) {
    log::error(settings.error().message);
    return CUDA_ERROR_NO_DEVICE;
  }
  synchronous_ = settings->synchronous;
  if (settings->log) log::set_level(*settings->log);
  if (!settings->trace_file.empty()) trace::start(settings->trace_file.c_str());
  if (settings->profile.on()) profile::start(settings->profile);
  if (auto added = options_.add_transports(transports_, settings->plugins); !added) {
    log::error(added.error().message);
    return CUDA_ERROR_NO_DEVICE;
  }
  wire::hello hello = introduce_ourselves();
  hello.wanted = wire::purpose::session;
  memory_.claim_window(hello);
  auto dialed = dial_any(*settings, transports_, hello, transport::clock::now() + connect_patience);
  if (!dialed) {
    log::error(dialed.error().message);
    const bool spoilt = dialed.error().reason == static_cast<int>(wire::refusal_reason::devices);
    return spoilt ? CUDA_ERROR_INVALID_DEVICE : CUDA_ERROR_NO_DEVICE;
  }
  auto snapshot = marshal::decode_snapshot(dialed->welcome.content);
  if (!snapshot) {
    log::error(dialed->url, ": ", snapshot.error().message);
    return CUDA_ERROR_NO_DEVICE;
  }
  facts_ = std::move(snapshot).value();
  objects_.adopt(facts_);
  memory_.adopt(facts_);
  session_ = std::make_unique<session>(std::move(dialed->connection), make_events(dialed->url));
  session_->session_id = dialed->welcome.session;
  use_session(*dialed, *settings);
  if (session_->passes_descriptors()) memory_.expect_shared_pages();
  functions_.surround([this] { memory_.lend(*session_); }, [this] { memory_.take_back(*session_); });
  records_work_ = (dialed->welcome.features & wire::feature_profile) != 0;
  samples_boards_ = (dialed->welcome.features & wire::feature_samples) != 0;
  profile::attach(*session_, records_work_);
  if (call_observer* const own = tool.load()) unrecorded = own->connected();
  this_lane().how = answered::waited;  // the hello counts as a round trip
  // As a real driver (580): what the program has made before its first call is destroyed after this, and
  // every call from there says so.
  (void)std::atexit([] { instance().shut_down(); });
  life expected = life::fresh;
  life_.compare_exchange_strong(expected, life::connected, std::memory_order_acq_rel);
  return CUDA_SUCCESS;
}

CUresult process::init() {
  if (const CUresult code = connect(); code != CUDA_SUCCESS) return code;
  if (facts_.devices.empty()) return CUDA_ERROR_NO_DEVICE;
  life expected = life::connected;
  life_.compare_exchange_strong(expected, life::running, std::memory_order_acq_rel);
  return usable() ? CUDA_SUCCESS : CUDA_ERROR_DEINITIALIZED;
}

CUresult process::gate(const lane& own, bool needs_context) const {
  switch (life_.load(std::memory_order_acquire)) {
    case life::fresh:
    case life::connected:
    case life::forked:
      return CUDA_ERROR_NOT_INITIALIZED;
    case life::ended:
      return CUDA_ERROR_DEINITIALIZED;
    case life::running:
      break;
  }
  if (session_->lost()) return CUDA_ERROR_DEVICE_UNAVAILABLE;
  if (own.in_callback) return CUDA_ERROR_NOT_PERMITTED;
  if (!needs_context) return CUDA_SUCCESS;
  const context_state* current = own.current();
  if (!current) return CUDA_ERROR_INVALID_CONTEXT;
  if (!current->active.load(std::memory_order_acquire)) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  if (const std::int32_t sticky = current->sticky.load(std::memory_order_acquire))
    return static_cast<CUresult>(sticky);
  if (!current->owner) [[likely]]
    return CUDA_SUCCESS;
  if (!current->owner->active.load(std::memory_order_acquire)) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  return static_cast<CUresult>(current->owner->sticky.load(std::memory_order_acquire));
}

CUresult process::gate(const api::description& about, const lane& own) const {
  return about.preinit ? CUDA_SUCCESS : gate(own, !about.noctx);
}

void process::sticky(std::uint64_t context, std::int32_t code) {
  if (context_state* state = objects_.find_context(context))
    state->sticky.store(code, std::memory_order_release);
  if (code != CUDA_ERROR_ILLEGAL_ADDRESS || !memory_.find_addresses() || !memory_.arena().has_private())
    return;
  if (told_of_addresses_.exchange(true)) return;
  log::error(
      "a kernel went to memory that is not there (CUDA_ERROR_ILLEGAL_ADDRESS, 700). If it does so here only, "
      "it may have got the address of page-locked memory in a form that is not found in what it was told "
      "(halves, a distance): try OUTBOARD_FIND_ADDRESSES=0");
}

}  // namespace outboard::frontend
