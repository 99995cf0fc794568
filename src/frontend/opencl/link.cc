#include "frontend/opencl/link.hh"

#include <pthread.h>
#include <sys/auxv.h>

#include <cstdio>
#include <cstdlib>

#include "api/opencl/own_library.hh"
#include "base/log.hh"
#include "frontend/opencl/shown.hh"
#include "frontend/profile/profile.hh"
#include "frontend/trace.hh"
#include "transport/resumable/stream.hh"
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
  on_lane_end([](lane& ended) {
    profile::end_lane(ended);
    if (instance().life_.load(std::memory_order_acquire) != life::running) return;
    for (const auto& each : instance().peers_) each->server->end_lane(ended.id);
  });
  pthread_atfork(nullptr, nullptr, [] { instance().forked_child(); });
}

/// The connection, its locks and its buffers are the parent's. A child in which nothing was begun may begin
/// by itself.
void link::forked_child() {
  trace::forked();
  profile::forked();
  if (!touched.load(std::memory_order_acquire)) return;
  life_.store(life::ended, std::memory_order_release);
  for (const auto& each : peers_) each->functions.forked();
}

void link::shut_down() {
  if (life_.exchange(life::ended) != life::running) return;
  profile::finish(moved());
  for (const auto& each : peers_) each->server->goodbye();
  for (const auto& each : peers_) each->functions.end();
  const auto until = transport::clock::now() + transport::parting_time;
  for (const auto& each : peers_) each->server->await_goodbye(until);
}

session* link::server() {
  peer* const home = home_of_call();
  return home && life_.load(std::memory_order_acquire) == life::running ? home->server.get() : nullptr;
}

sent_files* link::files() {
  peer* const home = home_of_call();
  return home && home->takes_files ? &home->files : nullptr;
}

bool link::has_areas() {
  const peer* const home = home_of_call();
  return home && home->has_areas && !synchronous_;
}

host_functions& link::functions() { return home_of_call()->functions; }

traffic link::moved() const {
  traffic all;
  for (const auto& each : peers_) {
    const traffic its = each->server->moved();
    all.sent += its.sent;
    all.received += its.received;
  }
  return all;
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
  // Not the first that welcomes us, as for CUDA: a program chooses among platforms.
  std::vector<std::string> reasons;
  auto only = *settings;
  for (const std::string& url : settings->servers) {
    only.servers = {url};
    if (auto done = connect_to(only); !done) reasons.push_back(done.error().message);
  }
  for (const std::string& reason : reasons)
    peers_.empty() ? log::error("no OpenCL: ", reason) : log::warn("no OpenCL: ", reason);
  if (peers_.empty()) return;
  this_lane().how = answered::waited;  // the hello counts as a round trip
  (void)std::atexit([] { instance().shut_down(); });
  // A program that finds no server of ours, and asks for platforms only, leaves its other profile alone.
  if (settings->profile.on()) profile::start(settings->profile);
  profile::attach(*peers_.front()->server, peers_.front()->records_work,
                  profile_services::of<api::opencl::service>());
  for (std::size_t i = 1; i < peers_.size(); ++i) {
    peers_[i]->server->notes_calls = false;
    profile::lacks("what the devices of " + peers_[i]->url + " do: it asks one server, the first");
  }
  life_.store(life::running, std::memory_order_release);
}

status link::connect_to(const settings& only) {
  wire::hello hello = introduce_ourselves();
  hello.wanted = wire::purpose_opencl;
  hello.features |= wire::feature_build_files | wire::feature_transfer_areas;
  auto dialed = dial_any(only, transports_, hello, transport::clock::now() + connect_patience);
  if (!dialed) return failure(dialed.error().message);
  auto snapshot = marshal::opencl::decode_snapshot(dialed->welcome.content);
  if (!snapshot) return failure(dialed->url + ": " + snapshot.error().message);
  session_events events;
  events.sticky_error = [](std::uint64_t, std::int32_t) {};
  events.output = [](int descriptor, std::string_view text) {
    (void)!std::fwrite(text.data(), 1, text.size(), descriptor == 1 ? stdout : stderr);
  };
  events.lost = [url = dialed->url](const std::string& why) {
    log::error(why, " (", url,
               "): every OpenCL call to its devices returns an error from now on; restart the program");
  };
  peer& made = *peers_.emplace_back(std::make_unique<peer>());
  made.server = std::make_unique<session>(std::move(dialed->connection), std::move(events));
  made.server->session_id = dialed->welcome.session;
  made.takes_files = (dialed->welcome.features & wire::feature_build_files) != 0;
  made.has_areas = (dialed->welcome.features & wire::feature_transfer_areas) != 0;
  made.records_work = (dialed->welcome.features & wire::feature_profile) != 0;
  made.url = dialed->url;
  if (!synchronous_) made.dialer = data_dialer(transports_, *dialed, only);
  const at_home here(&made);
  const bool offered = (dialed->welcome.features & wire::feature_fine_grain) != 0;
  adopt(std::move(*snapshot), offered && made.server->passes_descriptors());
  return {};
}

void link::adopt(marshal::opencl::snapshot snapshot, bool shares_memory) {
  for (marshal::opencl::platform_facts& facts : snapshot.platforms) {
    auto info = std::make_unique<platform_info>();
    platform_info& platform = *info;
    platform.host = snapshot.host;
    platform.shares_memory = shares_memory;
    platform.extension_functions = take_extension_functions(facts.info);
    platform.info = shown_of_platform(std::move(facts.info), snapshot.host, platform.extension_functions);
    const auto handle =
        reinterpret_cast<cl_platform_id>(make_named(handle_kind::cl_platform, facts.handle, std::move(info)));
    for (marshal::opencl::device_facts& device : facts.devices) {
      auto about = std::make_unique<device_info>();
      about->platform = handle;
      about->memory_limit = take_memory_limit(device.info);
      about->facts = {device.handle, shown_of_device(std::move(device.info), snapshot.host,
                                                     platform.extension_functions, shares_memory)};
      platform.devices.push_back(reinterpret_cast<cl_device_id>(
          make_named(handle_kind::cl_device, device.handle, std::move(about))));
    }
    platforms_.push_back(handle);
  }
}

}  // namespace outboard::frontend::opencl
