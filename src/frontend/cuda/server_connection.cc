#include "frontend/cuda/server_connection.hh"

#include <pthread.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "base/log.hh"
#include "frontend/cuda/core_dumps.hh"
#include "frontend/cuda/memory/managed_blocks.hh"
#include "frontend/cuda/process.hh"
#include "frontend/dial.hh"
#include "frontend/settings.hh"
#include "frontend/trace.hh"
#include "wire/features.hh"
#include "wire/output.hh"

namespace outboard::frontend {

std::atomic<core_dump_taker> core_dumps{nullptr};

namespace {

constexpr std::chrono::seconds connect_patience{10};
/// What small page-locked blocks share where the server can pass descriptors: a large page.
constexpr std::uint64_t arena_shared_chunk = 2u << 20;

std::atomic<bool> connection_wanted{false};  // by any thread of this process, or of a parent

/// What becomes of what a session reports, but for errors of contexts.
session_events events_of(host_functions& functions, const std::string& url) {
  session_events events;
  events.graph_place = [&functions](std::uint64_t id, std::uint64_t offset,
                                    std::uint64_t size) -> std::byte* {
    const auto box = functions.box(id);
    return box && box->written ? box->place(offset, size) : nullptr;
  };
  // Through stdio, as the real driver does, so that the program's own output keeps its place before this.
  events.output = [](int descriptor, std::string_view text) {
    if (descriptor == wire::output_core_dump) {
      auto* const take = core_dumps.load();
      return take ? take(text) : void();
    }
    (void)!std::fwrite(text.data(), 1, text.size(), descriptor == wire::output_text ? stdout : stderr);
  };
  events.lost = [url](const std::string& why) {
    log::error(why, " (", url, "): every CUDA call returns an error from now on; restart the program");
  };
  return events;
}

}  // namespace

void server_connection::boot(const boot_options& options) {
  options_ = options;
  on_lane_end([](std::uint32_t lane) {
    const server_connection& c = process::instance().connection;
    if (c.usable() && c.server()) c.server()->end_lane(lane);
  });
  pthread_atfork(nullptr, nullptr, [] { process::instance().connection.forked_child(); });
}

void server_connection::forked_child() {
  // As on the real driver, CUDA is not initialised in a child. Nothing is freed and no byte is sent: the
  // connection, its locks and its buffers are the parent's.
  trace::forked();
  // A forked child that never used CUDA may initialise it.
  if (!connection_wanted.load(std::memory_order_acquire)) return;
  life_.store(life::forked, std::memory_order_release);
  process_.functions.forked();
  if (options_.forked) options_.forked();
}

void server_connection::shut_down() {
  if (life_.load() == life::forked) return;
  life_.store(life::ended, std::memory_order_release);
  if (session_) session_->goodbye();
  process_.memory.managed().stop();
  process_.functions.end();
}

CUresult server_connection::connect() {
  const life now = life_.load(std::memory_order_acquire);
  if (now == life::forked) return CUDA_ERROR_NOT_INITIALIZED;
  if (now == life::ended) return CUDA_ERROR_DEINITIALIZED;
  if (now == life::connected || now == life::running) return CUDA_SUCCESS;
  connection_wanted.store(true, std::memory_order_release);
  const std::lock_guard lock(connect_mutex_);
  if (!tried_) {
    tried_ = true;
    connect_code_ = connect_locked();
  }
  return connect_code_;
}

result<wire::welcome> server_connection::ask_server(wire::hello question, transport::deadline until) const {
  if (::getauxval(AT_SECURE))
    return failure("a program with more privileges than its user has asks no server");
  const auto settings = client_settings();
  if (!settings) return settings.error();
  // Transports of its own, so that a child of fork() may ask too.
  transport::registry transports;
  if (auto added = options_.add_transports(transports, settings->plugins); !added) return added.error();
  auto dialed = dial_any(*settings, transports, question, until);
  if (!dialed) return std::move(dialed).error();
  return std::move(dialed->welcome);
}

void server_connection::use_session(const dialed& with, const settings& s) {
  dialer_ = data_dialer(transports_, with, s);
  lane_uploads_ = (with.welcome.features & wire::feature_lane_uploads) != 0;
  const bool kept = (with.welcome.features & wire::feature_image_recall) != 0;
  recalls_ = kept ? std::make_unique<image_recalls>(with.challenge) : nullptr;
  concurrent_managed_ =
      s.concurrent_managed && !process_.devices.facts().devices.empty() && page_gate::possible();
  for (const marshal::device_facts& device : process_.devices.facts().devices) {
    const auto can = static_cast<std::size_t>(CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS);
    concurrent_managed_ =
        concurrent_managed_ && can < device.attributes.size() && device.attributes[can].value != 0;
  }
}

/// What a rebuilt session keeps from its first connection.
void server_connection::prepare_host_memory() {
  if (session_->passes_descriptors()) process_.memory.arena.set_small_chunk(arena_shared_chunk);
  process_.functions.surround(
      [this] {
        if (process_.memory.mirrors.any()) (void)process_.memory.mirrors.fetch(*session_, this_lane());
        process_.memory.managed().lend();
      },
      [this] {
        process_.memory.managed().take_back();
        if (process_.memory.mirrors.any()) (void)process_.memory.mirrors.send(*session_, this_lane());
      });
}

CUresult server_connection::connect_locked() {
  if (::getauxval(AT_SECURE)) {
    log::error(
        "this program runs with more privileges than its user has (setuid, setgid or capabilities): "
        "it gets no device, because that user would choose the server");
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
  if (auto added = options_.add_transports(transports_, settings->plugins); !added) {
    log::error(added.error().message);
    return CUDA_ERROR_NO_DEVICE;
  }
  wire::hello hello = introduce_ourselves();
  hello.wanted = wire::purpose::session;
  process_.memory.claim();
  const device_window& window = process_.memory.window;
  if (window.slot_size()) hello.window_base = window.base(), hello.window_slot_size = window.slot_size();
  auto dialed = dial_any(*settings, transports_, hello, transport::clock::now() + connect_patience);
  if (!dialed) {
    log::error(dialed.error().message);
    const bool spoilt = dialed.error().reason == static_cast<int>(wire::refusal_reason::devices);
    return spoilt ? CUDA_ERROR_INVALID_DEVICE : CUDA_ERROR_NO_DEVICE;
  }
  return begin_session(*dialed, *settings);
}

CUresult server_connection::begin_session(dialed& with, const settings& s) {
  auto snapshot = marshal::decode_snapshot(with.welcome.content);
  if (!snapshot) {
    log::error(with.url, ": ", snapshot.error().message);
    return CUDA_ERROR_NO_DEVICE;
  }
  if (!process_.memory.window.open(*snapshot)) {
    log::error(with.url, ": the server's range of device addresses is not the one that it was given");
    return CUDA_ERROR_NO_DEVICE;
  }
  process_.devices.adopt(std::move(snapshot).value());
  session_events events = events_of(process_.functions, with.url);
  events.sticky_error = [this](std::uint64_t context, std::int32_t code) {
    process_.devices.context_failed(context, code);
  };
  session_ = std::make_unique<session>(std::move(with.connection), std::move(events));
  session_->session_id = with.welcome.session;
  use_session(with, s);
  prepare_host_memory();
  this_lane().how = answered::waited;  // the hello counts as a round trip
  // As a real driver (580): what the program has made before its first call is destroyed after this, and
  // every call from there says so.
  (void)std::atexit([] { process::instance().connection.shut_down(); });
  life expected = life::fresh;
  life_.compare_exchange_strong(expected, life::connected, std::memory_order_acq_rel);
  return CUDA_SUCCESS;
}

CUresult server_connection::init() {
  if (const CUresult code = connect(); code != CUDA_SUCCESS) return code;
  if (process_.devices.facts().devices.empty()) return CUDA_ERROR_NO_DEVICE;
  life expected = life::connected;
  life_.compare_exchange_strong(expected, life::running, std::memory_order_acq_rel);
  return usable() ? CUDA_SUCCESS : CUDA_ERROR_DEINITIALIZED;
}

CUresult server_connection::state_of_owner(const context_state& owner) {
  if (!owner.active.load(std::memory_order_acquire)) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  return static_cast<CUresult>(owner.sticky.load(std::memory_order_acquire));
}

}  // namespace outboard::frontend
