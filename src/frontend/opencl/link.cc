#include "frontend/opencl/link.hh"

#include <pthread.h>
#include <sys/auxv.h>

#include <cstdio>
#include <cstdlib>

#include "api/opencl/own_library.hh"
#include "base/log.hh"
#include "frontend/opencl/shown.hh"
#include "frontend/settings.hh"
#include "frontend/trace.hh"
#include "wire/features.hh"
#include "wire/opencl_session.hh"

namespace outboard::frontend::opencl {
namespace {

constexpr std::chrono::seconds connect_patience{10};

std::atomic<bool> touched{false};  // a connection has been asked for
const std::vector<cl_platform_id> none;

}  // namespace

link& link::instance() {
  // Never destroyed: programs release objects from their destructors, in any order.
  static link* const the_one = new link;
  return *the_one;
}

void link::boot(const boot_options& options) {
  options_ = options;
  on_lane_end([](std::uint32_t lane) {
    if (session* server = instance().server()) server->end_lane(lane);
  });
  pthread_atfork(nullptr, nullptr, [] { instance().forked_child(); });
}

/// The connection, its locks and its buffers are the parent's. A child in which nothing was begun may begin
/// by itself.
void link::forked_child() {
  trace::forked();
  if (!touched.load(std::memory_order_acquire)) return;
  life_.store(life::ended, std::memory_order_release);
  functions_.forked();
}

void link::shut_down() {
  if (life_.exchange(life::ended) != life::running) return;
  session_->goodbye();
  functions_.end();
}

session* link::server() {
  return life_.load(std::memory_order_acquire) == life::running ? session_.get() : nullptr;
}

const std::vector<cl_platform_id>& link::platforms() {
  if (life_.load(std::memory_order_acquire) == life::fresh) {
    touched.store(true, std::memory_order_release);
    const std::lock_guard lock(connect_mutex_);
    if (!std::exchange(tried_, true)) connect();
  }
  return life_.load(std::memory_order_acquire) == life::running ? platforms_ : none;
}

void link::connect() {
  // In a worker of a back-end our own devices are no devices of its host.
  if (std::getenv(api::opencl::worker_variable)) return;
  if (::getauxval(AT_SECURE))
    return log::error("a program with privileges gets no OpenCL device of a server");
  const auto settings = client_settings();
  // The library may be installed for all programs: those that name no server have no platform of ours.
  if (!settings) return log::debug(settings.error().message);
  synchronous_ = settings->synchronous;
  if (settings->log) log::set_level(*settings->log);
  if (!settings->trace_file.empty()) trace::start(settings->trace_file.c_str());
  if (auto added = options_.add_transports(transports_, settings->plugins); !added)
    return log::error(added.error().message);
  wire::hello hello = introduce_ourselves();
  hello.wanted = wire::purpose_opencl;
  auto dialed = dial_any(*settings, transports_, hello, transport::clock::now() + connect_patience);
  if (!dialed) return log::error("no OpenCL: ", dialed.error().message);
  auto snapshot = marshal::opencl::decode_snapshot(dialed->welcome.content);
  if (!snapshot) return log::error(dialed->url, ": ", snapshot.error().message);
  session_events events;
  events.sticky_error = [](std::uint64_t, std::int32_t) {};
  events.output = [](int descriptor, std::string_view text) {
    (void)!std::fwrite(text.data(), 1, text.size(), descriptor == 1 ? stdout : stderr);
  };
  events.lost = [url = dialed->url](const std::string& why) {
    log::error(why, " (", url, "): every OpenCL call returns an error from now on; restart the program");
  };
  session_ = std::make_unique<session>(std::move(dialed->connection), std::move(events));
  session_->session_id = dialed->welcome.session;
  this_lane().how = answered::waited;  // the hello counts as a round trip
  adopt(std::move(*snapshot));
  (void)std::atexit([] { instance().shut_down(); });
  life_.store(life::running, std::memory_order_release);
}

void link::adopt(marshal::opencl::snapshot snapshot) {
  for (marshal::opencl::platform_facts& facts : snapshot.platforms) {
    auto info = std::make_unique<platform_info>();
    platform_info& platform = *info;
    platform.info = shown_of_platform(std::move(facts.info), snapshot.host);
    const auto handle =
        reinterpret_cast<cl_platform_id>(make_named(handle_kind::cl_platform, facts.handle, std::move(info)));
    for (marshal::opencl::device_facts& device : facts.devices) {
      auto about = std::make_unique<device_info>();
      about->platform = handle;
      about->facts = {device.handle, shown_of_device(std::move(device.info), snapshot.host)};
      platform.devices.push_back(reinterpret_cast<cl_device_id>(
          make_named(handle_kind::cl_device, device.handle, std::move(about))));
    }
    platforms_.push_back(handle);
  }
}

}  // namespace outboard::frontend::opencl
