#include "backend/worker/worker_main.hh"

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "backend/confinement/confinement.hh"
#include "backend/daemon/control.hh"
#include "backend/daemon/workers/child.hh"
#include "backend/disk/compiler_cache.hh"
#include "backend/session/resumption.hh"
#include "backend/session/session.hh"
#include "backend/session/successor.hh"
#include "backend/worker/device_output.hh"
#include "backend/worker/shared_account.hh"
#include "base/log.hh"
#include "base/log_fields.hh"
#include "base/schemes.hh"
#include "transport/tls/handed_over.hh"
#include "transport/tls/library.hh"
#include "wire/features.hh"

namespace outboard::backend {
namespace {

constexpr int control = worker_control_descriptor;

/// The daemon logs it and, if a client waits already, tells it. The worker's exit status.
int fail_to_start(const error& why) {
  (void)send_control(control, control_kind::failed, encode_text(why.message)).ok();
  return 1;
}

int give_facts(worker_api& api) {
  const auto facts = api.facts();
  const status sent = facts.ok()
                          ? send_control(control, control_kind::facts, encode(*facts))
                          : send_control(control, control_kind::failed, encode_text(facts.error().message));
  return sent.ok() ? 0 : 1;
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

void report_end(const ended_message& end) {
  (void)send_control(control, control_kind::ended, encode(end)).ok();
}

/// Over it the daemon says that another worker is to go on with the session. Null: it is gone.
std::unique_ptr<successor> open_exit(const attach_connection& attach) {
  auto message = receive_control(control, true);
  if (!message.ok() || !*message) return nullptr;
  CHECK((*message)->kind == control_kind::exit && (*message)->descriptor);
  return std::make_unique<successor>(std::move((*message)->descriptor), attach);
}

void tell_begin(const worker_options& options) {
  (void)send_control(control, control_kind::serving, {}, options.activity).ok();
}

/// Who the session is for, and in one that another worker has, that worker.
struct client_link {
  std::unique_ptr<transport::connection> connection;
  std::unique_ptr<predecessor> before;
};

result<client_link> take_client(const worker_options& options, const attach_connection& attach,
                                const std::string& scheme, const wire::hello& hello, unique_fd client) {
  auto connection = attach(scheme, std::move(client));
  if (!connection.ok()) return std::move(connection).error();
  tell_begin(options);
  if ((hello.features & wire::feature_rings) != 0) connection = share_memory(options, std::move(*connection));
  if (!connection.ok()) return std::move(connection).error();
  return client_link{std::move(*connection), nullptr};
}

/// While the session is another worker's still.
status prepare(worker_api& api, predecessor& before) {
  const auto preparation = before.receive_preparation();
  if (!preparation.ok()) return preparation.error();
  return before.tell_prepared(api.load_ahead(*preparation));
}

/// Of a session that another worker has: it comes over `channel`, and its client's connection with it.
result<client_link> inherit_client(worker_api& api, const attach_connection& attach, unique_fd channel) {
  auto between = attach(successor_scheme(), std::move(channel));
  if (!between.ok()) return std::move(between).error();
  client_link made;
  made.before = std::make_unique<predecessor>(std::move(*between));
  OUTBOARD_TRY(prepare(api, *made.before));
  OUTBOARD_TRY(made.before->receive());
  auto stream = take_connection(made.before->image());
  if (!stream.ok()) return std::move(stream).error();
  auto connection = attach(stream->scheme, std::move(stream->descriptors.front()));
  if (!connection.ok()) return std::move(connection).error();
  made.connection = std::move(*connection);
  if (const status on = made.connection->go_on(*stream); !on.ok()) {
    (void)fail_to_start(on.error());
    ::_exit(1);  // the stream is another worker's, and nothing of it may be closed in order
  }
  return made;
}

/// What the daemon says first: for which session, after a limit of its identity, if it has one. Nothing: it
/// has no use for this worker.
struct assignment {
  std::optional<account_share> account;
  shape_settings shape;
  assign_message session;
  wire::hello hello;
  unique_fd descriptor;  ///< the client's, or what leads to the worker that has the session
  bool goes_on = false;  ///< another worker has it
};

result<std::optional<assignment>> await_assignment(const worker_options& options) {
  auto message = receive_control(control, true);
  if (!message.ok() || !*message) return std::optional<assignment>();
  assignment got;
  got.shape = options.shape;
  if ((*message)->kind == control_kind::account) {
    got.account = take_share(**message, got.shape);
    if (!got.account) return failure("no limit for its identity's memory");
    message = receive_control(control, true);
    if (!message.ok() || !*message) return std::optional<assignment>();
  }
  got.goes_on = (*message)->kind == control_kind::take_over;
  CHECK(got.goes_on || (*message)->kind == control_kind::assign);
  auto assign = decode_assign((*message)->payload);
  CHECK(assign.ok() && (*message)->descriptor);
  auto hello = wire::decode_hello(assign->hello);
  CHECK(hello.ok());
  got.session = std::move(*assign);
  got.hello = std::move(*hello);
  got.descriptor = std::move((*message)->descriptor);
  return std::optional(std::move(got));
}

int serve(const worker_options& options, worker_api& api, device_output* output) {
  auto awaited = await_assignment(options);
  if (!awaited.ok()) return fail_to_start(awaited.error());
  if (!*awaited) return 0;
  assignment& given = **awaited;
  log::set_lasting_fields({{"session", static_cast<std::int64_t>(given.session.session)},
                           {"user", given.hello.user},
                           {"program", given.hello.program}});
  const auto attach = [&options](const std::string& scheme,
                                 unique_fd fd) -> result<std::unique_ptr<transport::connection>> {
    return transport::tls::attach(*options.transports, scheme, std::move(fd));
  };
  auto client = given.goes_on ? inherit_client(api, attach, std::move(given.descriptor))
                              : take_client(options, attach, given.session.scheme, given.hello,
                                            std::move(given.descriptor));
  if (!client.ok()) return fail_to_start(client.error());
  const auto resuming = given.goes_on ? nullptr : open_door(given.hello, given.session.session, attach);
  const auto next = open_exit(attach);
  if (resuming) client->connection = resuming->begin_session(std::move(client->connection));
  session_maker make_api = api.speak(given.hello, given.session.images);
  broker_link broker(control);
  // The last to be made: it may hold the session, which uses what stands above.
  const session_end end = serve_session({.connection = std::move(client->connection),
                                         .hello = std::move(given.hello),
                                         .id = given.session.session,
                                         .seal = given.session.seal,
                                         .make_api = std::move(make_api),
                                         .output = output,
                                         .broker = &broker,
                                         .attach = attach,
                                         .resuming = resuming.get(),
                                         .next = next.get(),
                                         .before = client->before.get(),
                                         .on_begin = [&options] { tell_begin(options); },
                                         .shape = given.shape,
                                         .account = given.account ? &*given.account : nullptr,
                                         .activity = options.page,
                                         .held_by_page = options.held_by_page});
  if (end.handed_on) ::_exit(0);
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
  for (const std::string& path : options.made_writes) add_writable(terms.folders, path);
  terms.folders.insert(terms.folders.end(), options.confined_writes.begin(), options.confined_writes.end());
  std::erase(terms.folders, "");
  terms.reads = options.confined_reads;
  terms.cuda_driver = options.cuda_driver;
  terms.own_code_alone = options.own_code_alone;
  return confine_this_process(terms, [](const char* name) -> const char* { return std::getenv(name); });
}

/// What fails for being locked out looks like a fault of the driver's; so does a list of devices that hides
/// all of them.
error with_hint(const worker_options& options, error why) {
  if (options.no_visible_device && why.reason == no_device)
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
  if (options.tls) transport::tls::prepare_to_serve();
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
  device_output* const printed = output.ok() ? output->get() : nullptr;
  const auto api = options.open_api(printed);
  if (!api.ok()) return fail_to_start(with_hint(options, api.error()));
  if (options.probe) return give_facts(**api);
  const ready_message ready = (*api)->get_ready(options.warm);
  if (options.warm) (void)send_control(control, control_kind::ready, encode(ready)).ok();
  return serve(options, **api, printed);
}

}  // namespace outboard::backend
