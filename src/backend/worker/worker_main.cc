#include "backend/worker/worker_main.hh"

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "backend/confinement/confinement.hh"
#include "backend/cuda/session.hh"
#include "backend/daemon/control.hh"
#include "backend/daemon/workers/child.hh"
#include "backend/disk/compiler_cache.hh"
#include "backend/session/resumption.hh"
#include "backend/session/session.hh"
#include "backend/worker/device_output.hh"
#include "backend/worker/shared_account.hh"
#include "backend/worker/warm_device.hh"
#include "base/log.hh"
#include "base/log_fields.hh"
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

/// The daemon logs it and, if a client waits already, tells it. The worker's exit status.
int fail_to_start(const error& why) {
  (void)send_control(control, control_kind::failed, encode_text(why.message)).ok();
  return 1;
}

/// A program that goes on after its failures does not fill its user's screen with them.
constexpr unsigned most_failures_told = 16;

/// `output` may be null and outlives the device. The reason of an error is cuInit's code, if that is why.
result<std::unique_ptr<device::device>> open_device(const worker_options& options, device_output* output) {
  // What goes wrong in a program is its user's matter: the server's log has it for information.
  const auto told = std::make_shared<std::atomic<unsigned>>(0);
  auto device = options.open_device([output, told](std::string_view line) {
    log::info(line);
    const unsigned before = told->fetch_add(1, std::memory_order_relaxed);
    if (output && before <= most_failures_told)
      output->tell(before < most_failures_told ? line : "more failures of this program are left out here");
  });
  if (!device.ok()) return device;
  const api::driver_table& driver = (*device)->cuda();
  if (!driver.cuInit) return failure("the " + std::string((*device)->kind()) + " device has no cuInit");
  if (const CUresult code = driver.cuInit(0); code != CUDA_SUCCESS) {
    return outboard::error{action::fail, (*device)->describe() + ": " + describe_code(driver, "cuInit", code),
                           code};
  }
  return device;
}

std::string why_no_profiles(device::device& device) {
  device::work_recorder* const recorder = device.recorder();
  if (!recorder) return "this build of the server cannot record it";
  const status could = recorder->look();
  return could.ok() ? std::string() : could.error().message;
}

int give_facts(device::device& device) {
  auto snapshot = marshal::take_snapshot(device.cuda(), false);
  const status sent =
      snapshot.ok() ? send_control(control, control_kind::facts,
                                   encode(facts_message{std::string(device.kind()), device.describe(),
                                                        encode(*snapshot), why_no_profiles(device)}))
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

/// The daemon lets the client's later connections in there. Null: the session cannot be resumed.
std::unique_ptr<resumption> open_door(const wire::hello& hello, std::uint64_t session,
                                      const resumption::attach_link& attach) {
  if ((hello.features & wire::feature_resume) == 0) return nullptr;
  auto message = receive_control(control, true);
  if (!message.ok() || !*message) return nullptr;  // the daemon is gone, and we are about to be
  CHECK((*message)->kind == control_kind::door && (*message)->descriptor);
  const auto terms = wire::decode_resume_terms((*message)->payload);
  CHECK(terms.ok());
  return std::make_unique<resumption>(
      session, std::move((*message)->descriptor), *terms, attach, [](bool interrupted) {
        (void)send_control(control, interrupted ? control_kind::interrupted : control_kind::restored, {})
            .ok();
      });
}

/// Its share of what its identity may hold, which bounds what the client sees of the devices, too. Nothing:
/// the daemon has not given one that can be used.
std::optional<account_share> take_share(const control_message& given, shape_settings& shape) {
  const auto slot = decode_slot(given.payload);
  CHECK(slot.ok() && given.descriptor);
  auto share = account_share::open(given.descriptor, *slot);
  if (share) shape.memory = shape.memory == 0 ? share->most() : std::min(shape.memory, share->most());
  return share;
}

/// Where the images of this session's modules are kept; nothing: nowhere.
std::optional<image_cache> open_images(const cache_settings& where) {
  auto opened = image_cache::open(where.directory, where.size);
  if (opened.ok()) return std::move(*opened);
  log::warn("no module cache: ", opened.error().message);
  return std::nullopt;
}

void report_end(const ended_message& end) {
  (void)send_control(control, control_kind::ended, encode(end)).ok();
}

/// A session whose program speaks CUDA, or what `other` makes.
int serve(const worker_options& options, device::device* device, session_maker other, device_output* output) {
  auto message = receive_control(control, true);
  if (!message.ok() || !*message) return 0;  // the daemon has no use for this worker
  std::optional<account_share> account;
  shape_settings shape = options.shape;
  if ((*message)->kind == control_kind::account) {
    account = take_share(**message, shape);
    if (!account) return fail_to_start(failure("no limit for its identity's memory"));
    message = receive_control(control, true);
    if (!message.ok() || !*message) return 0;
  }
  CHECK((*message)->kind == control_kind::assign);
  auto assign = decode_assign((*message)->payload);
  CHECK(assign.ok() && (*message)->descriptor);
  auto hello = wire::decode_hello(assign->hello);
  CHECK(hello.ok());
  log::set_lasting_fields({{"session", static_cast<std::int64_t>(assign->session)},
                           {"user", hello->user},
                           {"program", hello->program}});
  const auto attach = [&options](const std::string& scheme,
                                 unique_fd fd) -> result<std::unique_ptr<transport::connection>> {
    return transport::tls::attach(*options.transports, scheme, std::move(fd));
  };
  auto connection = attach(assign->scheme, std::move((*message)->descriptor));
  if (!connection.ok()) return fail_to_start(connection.error());
  (void)send_control(control, control_kind::serving, {}, options.activity).ok();
  if ((hello->features & wire::feature_rings) != 0) {
    connection = share_memory(options, std::move(*connection));
    if (!connection.ok()) return report_end({false, connection.error().message}), 0;
  }
  const auto resuming = open_door(*hello, assign->session, attach);
  if (resuming) connection = resuming->begin_session(std::move(*connection));
  std::optional<image_cache> images;
  if (!other && (hello->features & wire::feature_image_recall) != 0) images = open_images(options.cache);
  const cuda_terms cuda{device, images ? &*images : nullptr, assign->images, options.confine_to.empty()};
  broker_link broker(control);
  // The last to be made: it may hold the session, which uses what stands above.
  const session_end end = serve_session({.connection = std::move(*connection),
                                         .hello = std::move(*hello),
                                         .id = assign->session,
                                         .seal = assign->seal,
                                         .make_api = other ? std::move(other) : speak_cuda(cuda),
                                         .output = output,
                                         .broker = &broker,
                                         .attach = attach,
                                         .resuming = resuming.get(),
                                         .shape = shape,
                                         .account = account ? &*account : nullptr,
                                         .activity = options.page,
                                         .held_by_page = options.held_by_page});
  if (resuming) resuming->await_end();
  report_end({end.orderly, end.why});
  if (end.stuck) ::_exit(0);
  return 0;
}

/// The driver keeps what it has compiled where it would without confinement; a folder has to be there to be
/// opened to it.
void add_writable(std::vector<std::string>& folders, const std::string& path) {
  if (path.empty()) return;
  std::error_code failed;
  if (std::filesystem::create_directories(path, failed); failed)
    return log::debug("nothing is kept in ", path, ": ", failed.message());
  folders.push_back(path);
}

status confine(const worker_options& options) {
  confinement_terms terms;
  terms.folders = {options.confine_to};
  if (!options.compilers.empty()) {
    for (const kept_kind& kind : kept_kinds) terms.folders.push_back(options.compilers + "/" + kind.name);
  }
  if (!options.open_api) {
    terms.folders.push_back(options.cache.directory);
    if (options.cuda_driver) {
      const char* const compiled = std::getenv("CUDA_CACHE_PATH");
      add_writable(terms.folders, compiled ? compiled : "");
    }
  }
  terms.folders.insert(terms.folders.end(), options.confined_writes.begin(), options.confined_writes.end());
  std::erase(terms.folders, "");
  terms.reads = options.confined_reads;
  terms.cuda_driver = options.cuda_driver;
  return confine_this_process(terms, [](const char* name) -> const char* { return std::getenv(name); });
}

/// What fails for being locked out looks like a fault of the driver's; so does a list of devices that hides
/// all of them.
error with_hint(const worker_options& options, error why) {
  if (options.no_visible_device && why.reason == CUDA_ERROR_NO_DEVICE)
    why.message += " (CUDA_VISIBLE_DEVICES names none of this server's devices)";
  else if (!options.confine_to.empty())
    why.message +=
        " (the worker is confined: worker.reads and worker.writes open more to it, "
        "worker.confine = \"off\" shows whether that is why)";
  return why;
}

}  // namespace

int run_worker(const worker_options& options) {
  if (const status tied = die_with_parent(options.parent); !tied.ok()) return 1;
  ::fcntl(control, F_SETFD, FD_CLOEXEC);
  ::prctl(PR_SET_NAME, "outboard-worker");
  // What ends encrypted connections is a file, too. Where it is missing there is no gate, and nobody comes
  // encrypted. A process's first connection takes some milliseconds more; a warm worker has that behind it.
  if (options.tls) {
    if (const auto loaded = transport::tls::load(); loaded.ok()) (void)(*loaded)->start_server({});
  }
  // Before there is another thread, a driver or a byte of a client's.
  if (!options.confine_to.empty()) {
    const auto began = std::chrono::steady_clock::now();
    if (const status confined = confine(options); !confined.ok())
      return fail_to_start(failure("it cannot be confined: " + confined.error().message));
    log::debug("confined in ",
               std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - began)
                   .count(),
               " us");
  }
  auto output = device_output::take_over();
  if (!output.ok()) log::warn("what kernels print is lost: ", output.error().message);
  if (options.open_api) {
    auto api = options.open_api();
    if (!api.ok()) return fail_to_start(with_hint(options, api.error()));
    return serve(options, nullptr, std::move(*api), output.ok() ? output->get() : nullptr);
  }
  auto device = open_device(options, output.ok() ? output->get() : nullptr);
  if (!device.ok()) return fail_to_start(with_hint(options, device.error()));
  if (options.probe) return give_facts(**device);
  std::unique_ptr<device::device> warm;
  if (options.warm) {
    warm = warm_up(options, **device);
  } else if (auto now = make_warm_device(**device, 0); now.ok()) {
    // The snapshot needs a context of the first device, the program will too: made once.
    warm = std::move(*now);
  }
  return serve(options, warm ? warm.get() : device->get(), {}, output.ok() ? output->get() : nullptr);
}

}  // namespace outboard::backend
