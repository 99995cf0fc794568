#include "backend/worker/worker_main.hh"

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>

#include "backend/cuda/cuda_session.hh"
#include "backend/daemon/child.hh"
#include "backend/daemon/control.hh"
#include "backend/disk/compiler_cache.hh"
#include "backend/disk/folder.hh"
#include "backend/identity/memory_page.hh"
#include "backend/resuming/resumption.hh"
#include "backend/session/session.hh"
#include "backend/worker/device_output.hh"
#include "backend/worker/warm_device.hh"
#include "base/log.hh"
#include "base/schemes.hh"
#include "marshal/cuda/snapshot.hh"
#include "transport/tls/handed_over.hh"
#include "transport/tls/library.hh"
#include "wire/features.hh"

namespace outboard::backend {
namespace {

constexpr int control = worker_control_descriptor;

std::string describe_code(const api::driver_table& driver, const char* call, CUresult code) {
  const char* name = nullptr;
  if (!driver.cuGetErrorName || driver.cuGetErrorName(code, &name) != CUDA_SUCCESS || !name)
    name = "unknown error";
  return std::string(call) + ": " + name + " (" + std::to_string(code) + ")";
}

result<std::unique_ptr<device::device>> open_device(const worker_options& options) {
  auto device = options.open_device();
  if (!device.ok()) return device;
  const api::driver_table& driver = (*device)->cuda();
  if (!driver.cuInit) return failure("the " + std::string((*device)->kind()) + " device has no cuInit");
  if (const CUresult code = driver.cuInit(0); code != CUDA_SUCCESS) {
    return failure((*device)->describe() + ": " + describe_code(driver, "cuInit", code));
  }
  return device;
}

int give_facts(const device::device& device) {
  auto snapshot = marshal::take_snapshot(device.cuda(), false);
  const status sent =
      snapshot.ok()
          ? send_control(
                control, control_kind::facts,
                encode(facts_message{std::string(device.kind()), device.describe(), encode(*snapshot)}))
          : send_control(control, control_kind::failed, encode_text(snapshot.error().message));
  return sent.ok() ? 0 : 1;
}

/// What the warm context of a device occupies: the difference of the free memory around its creation.
class memory_meter {
 public:
  memory_meter(const worker_options& options, const device::device& device, int ordinal) : options_(options) {
    char id[32] = "";
    const api::driver_table& driver = device.cuda();
    if (options.free_memory && driver.cuDeviceGetPCIBusId &&
        driver.cuDeviceGetPCIBusId(id, sizeof id, ordinal) == CUDA_SUCCESS) {
      pci_bus_id_ = id;
      before_ = options.free_memory(pci_bus_id_);
    }
  }
  std::uint64_t taken() const {
    if (!before_) return 0;
    const auto after = options_.free_memory(pci_bus_id_);
    return after && *after < *before_ ? *before_ - *after : 0;
  }

 private:
  const worker_options& options_;
  std::string pci_bus_id_;
  std::optional<std::uint64_t> before_;
};

/// The driver's own first device: what a program uses that chooses none. Null where no context may wait.
std::unique_ptr<device::device> warm_up(const worker_options& options, device::device& device) {
  constexpr int ordinal = 0;
  const auto began = std::chrono::steady_clock::now();
  const memory_meter meter(options, device, ordinal);
  auto warm = make_warm_device(device, ordinal);
  ready_message ready;
  ready.context = warm.ok();
  ready.context_bytes = meter.taken();
  ready.microseconds = static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - began)
          .count());
  if (!warm.ok()) log::debug("no context in waiting: ", warm.error().message);
  (void)send_control(control, control_kind::ready, encode(ready)).ok();
  return warm.ok() ? std::move(*warm) : nullptr;
}

std::optional<image_cache> open_images(const cache_settings& cache) {
  auto opened = image_cache::open(cache.directory, cache.size);
  if (opened.ok()) return std::move(*opened);
  log::warn("no module cache: ", opened.error().message);
  return std::nullopt;
}

/// How long the byte behind a hello may take that says whether the client could share memory with us.
constexpr std::chrono::seconds probe_patience{5};

/// A client on a Unix socket of ours may ask for rings. What stands between us may be a relay to another
/// host: only a descriptor that arrives shows that nothing does.
result<std::unique_ptr<transport::connection>> share_memory(
    const worker_options& options, std::unique_ptr<transport::connection> by_socket) {
  transport::transport* rings = options.transports->find(memory_scheme().name);
  CHECK(rings != nullptr);
  const auto probe = by_socket->receive_descriptor(transport::clock::now() + probe_patience);
  if (!probe.ok()) {
    if (probe.error().next != action::fail) return probe.error();
    log::debug("no rings: ", probe.error().message);
    return by_socket;
  }
  auto socket = by_socket->detach();
  if (!socket.ok()) return std::move(socket).error();
  return rings->attach(std::move(*socket));
}

/// What the session's identity holds, with this session's slot; nothing: the daemon is gone.
struct identity_memory {
  memory_page page;
  std::uint32_t slot = 0;
};

std::optional<identity_memory> take_memory() {
  auto message = receive_control(control, true);
  if (!message.ok() || !*message) return std::nullopt;
  CHECK((*message)->kind == control_kind::memory && (*message)->descriptor);
  const auto about = decode_memory((*message)->payload);
  CHECK(about.ok());
  auto page = memory_page::open((*message)->descriptor);
  CHECK(page.ok());
  return identity_memory{std::move(*page), about->slot};
}

/// The daemon lets the client's later connections in there. Null: the session cannot be resumed.
std::unique_ptr<resumption> open_door(const wire::hello& hello, std::uint64_t session,
                                      const resumption::attach_link& attach) {
  if ((hello.features & wire::feature_resume) == 0) return nullptr;
  auto message = receive_control(control, true);
  if (!message.ok() || !*message) return nullptr;  // the daemon is gone, and we are about to be
  CHECK((*message)->kind == control_kind::door && (*message)->descriptor);
  const auto about = decode_door((*message)->payload);
  CHECK(about.ok());
  return std::make_unique<resumption>(
      session, std::move((*message)->descriptor), *about, attach, [](bool interrupted) {
        (void)send_control(control, interrupted ? control_kind::interrupted : control_kind::restored, {})
            .ok();
      });
}

/// What the session speaks, once it is known what its client asked for.
using make_api = std::function<std::unique_ptr<session_api>(const wire::hello&, const image_terms&)>;

int serve(const worker_options& options, const make_api& make, device_output* output) {
  auto message = receive_control(control, true);
  if (!message.ok() || !*message) return 0;  // the daemon has no use for this worker
  CHECK((*message)->kind == control_kind::assign);
  auto assign = decode_assign((*message)->payload);
  CHECK(assign.ok() && (*message)->descriptor);
  auto hello = wire::decode_hello(assign->hello);
  CHECK(hello.ok());
  auto memory = take_memory();
  if (!memory) return 0;
  auto connection =
      transport::tls::attach(*options.transports, assign->scheme, std::move((*message)->descriptor));
  if (!connection.ok()) {
    (void)send_control(control, control_kind::failed, encode_text(connection.error().message)).ok();
    return 1;
  }
  (void)send_control(control, control_kind::serving, {}, options.activity).ok();
  if ((hello->features & wire::feature_rings) != 0) {
    connection = share_memory(options, std::move(*connection));
    if (!connection.ok()) {
      (void)send_control(control, control_kind::ended,
                         encode(ended_message{false, connection.error().message}))
          .ok();
      return 0;
    }
  }
  const auto attach = [&options](const std::string& scheme,
                                 unique_fd fd) -> result<std::unique_ptr<transport::connection>> {
    return transport::tls::attach(*options.transports, scheme, std::move(fd));
  };
  const auto resuming = open_door(*hello, assign->session, attach);
  if (resuming) connection = resuming->begin_session(std::move(*connection));
  std::unique_ptr<session_api> api = make(*hello, assign->images);
  broker_link broker(control);
  const session_end end = serve_session({.connection = std::move(*connection),
                                         .hello = std::move(*hello),
                                         .id = assign->session,
                                         .seal = assign->seal,
                                         .api = api.get(),
                                         .output = output,
                                         .broker = &broker,
                                         .attach = attach,
                                         .resuming = resuming.get(),
                                         .shape = options.shape,
                                         .activity = options.page,
                                         .memory = {&memory->page, memory->slot}});
  if (!end.stuck) api.reset();
  (void)send_control(control, control_kind::ended, encode(ended_message{end.orderly, end.why})).ok();
  if (end.stuck) ::_exit(0);
  return 0;
}

/// Confines this process: besides what its executor needs, it may write where drivers, compilers and this
/// worker keep what later sessions find.
status confine(const worker_options& options) {
  confinement how = *options.confine;
  how.log_refusals = log::enabled(log::level::debug);
  if (!options.compilers.empty()) {
    for (const kept_kind& kind : kept_kinds) how.kept.push_back(options.compilers + "/" + kind.name);
  }
  // Opened with the first session that uses them.
  if (how.by != executor::platforms && !options.cache.directory.empty())
    how.kept.push_back(options.cache.directory);
  const char* const compute = ::getenv("CUDA_CACHE_PATH");
  if (how.by == executor::driver && compute && compute[0] == '/') {
    (void)open_own_folder(compute).ok();  // the driver would make it
    how.kept.emplace_back(compute);
  }
  OUTBOARD_TRY(confine_this_process(how, ::getenv));
  log::debug("confined by ", confinement_here());
  return {};
}

}  // namespace

int run_worker(const worker_options& options) {
  if (const status tied = die_with_parent(options.parent); !tied.ok()) return 1;
  ::fcntl(control, F_SETFD, FD_CLOEXEC);
  ::prctl(PR_SET_NAME, "outboard-worker");
  // The daemon logs it and, if a client is already waiting, reports it to the client.
  const auto failed = [](const error& why) {
    (void)send_control(control, control_kind::failed, encode_text(why.message)).ok();
    return 1;
  };
  // What ends encrypted connections is a file, too.
  if (options.tls) {
    const auto loaded = transport::tls::load();
    if (!loaded.ok()) return failed(loaded.error());
    // The first connection of a process takes some milliseconds more; a warm worker has that behind it.
    (void)(*loaded)->start_server({});
  }
  // Before there is another thread, a driver or a byte of a client's.
  if (options.confine) {
    const status confined = confine(options);
    if (!confined.ok()) return failed(failure("it cannot be confined: " + confined.error().message));
  }
  auto output = device_output::take_over();
  if (!output.ok()) log::warn("what kernels print is lost: ", output.error().message);
  if (options.open_api) {
    auto api = options.open_api();
    if (!api.ok()) return failed(api.error());
    const auto opened = [&](const wire::hello&, const image_terms&) { return std::move(*api); };
    return serve(options, opened, output.ok() ? output->get() : nullptr);
  }
  auto device = open_device(options);
  if (!device.ok()) return failed(device.error());
  if (options.probe) return give_facts(**device);
  std::unique_ptr<device::device> warm;
  if (options.warm) {
    warm = warm_up(options, **device);
  } else if (auto now = make_warm_device(**device, 0); now.ok()) {
    // The snapshot needs a context of the first device, the program will too: made once.
    warm = std::move(*now);
  }
  std::optional<image_cache> images;
  const auto speaks_cuda = [&](const wire::hello& hello, const image_terms& access) {
    if ((hello.features & wire::feature_image_recall) != 0) images = open_images(options.cache);
    return std::make_unique<cuda_session>(warm ? *warm : **device,
                                          kept_images{images ? &*images : nullptr, access});
  };
  return serve(options, speaks_cuda, output.ok() ? output->get() : nullptr);
}

}  // namespace outboard::backend
