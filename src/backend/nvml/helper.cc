#include "backend/nvml/helper.hh"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <mutex>
#include <thread>

#include "backend/confinement/confinement.hh"
#include "backend/daemon/control.hh"
#include "backend/daemon/handshake.hh"
#include "backend/daemon/queue/fair_shares.hh"
#include "backend/daemon/workers/child.hh"
#include "backend/nvml/visitor.hh"
#include "base/log.hh"
#include "transport/buffered.hh"
#include "transport/send_whole.hh"
#include "transport/tls/handed_over.hh"
#include "transport/tls/library.hh"
#include "wire/frame.hh"
#include "wire/hello.hh"
#include "wire/make_frame.hh"

namespace outboard::backend::nvml {
namespace {

constexpr int control = worker_control_descriptor;
/// Of all peers together, a thread each; monitoring tools keep one connection.
constexpr std::size_t most_clients = 256;
/// A driver that could not be opened is not asked for it at each question.
constexpr std::chrono::seconds pause_between_tries{5};

struct client {
  std::unique_ptr<transport::connection> connection;
  identity who;
  unsigned process = 0;  ///< by its own word
  std::uint64_t id = 0;
  wire::seal seal = {};
};

bool send_all(transport::connection& to, std::span<const std::byte> bytes) {
  // A client that takes nothing for this long is stuck: its thread is worth more.
  const auto until = transport::clock::now() + std::chrono::seconds(30);
  return transport::send_whole(to, bytes, until).ok();
}

void refuse(transport::connection& to, wire::refusal_reason reason, const std::string& why) {
  send_all(to, make_frame(wire::frame_kind::refusal, encode(wire::refusal{reason, why})));
  to.shutdown();  // the daemon may keep a descriptor of it until it sees the end
}

bool welcome(const client& c) { return send_all(*c.connection, make_welcome(c.seal, {}, c.id)); }

/// Questions and answers until the client leaves; the text says why it was thrown out, if it was.
std::string converse(transport::connection& with, visitor& own) {
  auto receiver = std::make_unique<transport::buffered_receiver>(with);
  std::vector<std::byte> question, frame;
  while (true) {
    std::array<std::byte, wire::header_size> raw;
    if (receiver->fill(raw) != transport::io::done) return {};
    const auto header = wire::decode_header(raw, marshal::nvml::max_bytes);
    if (!header.ok()) return header.error().message;
    if (header->kind == wire::frame_kind::goodbye) return {};
    if (header->kind != wire::frame_kind::call) return "a frame that is no question";
    question.resize(header->size);
    if (receiver->fill(question) != transport::io::done) return {};
    frame.assign(wire::header_size, std::byte{0});
    if (!own.answer(header->opcode, question, frame))
      return "a malformed question " + std::to_string(header->opcode);
    wire::encode_header({.size = static_cast<std::uint32_t>(frame.size() - wire::header_size),
                         .kind = wire::frame_kind::reply,
                         .ticket = header->ticket},
                        std::span(frame).first<wire::header_size>());
    if (!send_all(with, frame)) return {};
  }
}

class helper {
 public:
  explicit helper(const helper_options& options) : options_(options) {
    house_.visible = options.visible;
    house_.in_order = options.in_order;
    house_.shape = options.shape;
  }

  int run() {
    open_device();
    while (true) {
      auto message = receive_control(control, true);
      if (!message.ok() || !*message) return 0;  // the daemon has ended
      on_message(**message);
    }
  }

 private:
  void on_message(control_message& m) {
    if (m.kind == control_kind::session_began || m.kind == control_kind::session_over) {
      const auto session = decode_session(m.payload);
      CHECK(session.ok());
      if (m.kind == control_kind::session_began) {
        house_.sessions.began(*session, m.descriptor);
      } else {
        house_.sessions.over(session->worker);
      }
    } else if (m.kind == control_kind::client) {
      auto about = decode_client(m.payload);
      CHECK(about.ok() && m.descriptor);
      begin_client(*about, std::move(m.descriptor));
    }
  }

  void open_device() {
    tried_ = transport::clock::now();
    auto opened = options_.open([this] { return house_.sessions.all(); });
    if (!opened.ok()) {
      problem_ = opened.error().message;
      // What is locked out looks like a fault of the library's.
      if (options_.confine)
        problem_ +=
            " (the NVML helper is confined: worker.reads opens more to it, worker.confine = \"off\" shows "
            "whether that is why)";
      return log::warn("NVML: ", problem_);
    }
    device_ = std::move(*opened);
    house_.device = device_.get();
    log::debug("NVML: ", device_->describe());
  }

  void begin_client(const client_message& about, unique_fd descriptor) {
    const auto hello = wire::decode_hello(about.assign.hello);
    CHECK(hello.ok());
    const unique_fd same(::fcntl(descriptor.get(), F_DUPFD_CLOEXEC, 0));
    auto connection =
        transport::tls::attach(*options_.transports, about.assign.scheme, std::move(descriptor));
    if (!connection.ok()) {
      ::shutdown(same.get(), SHUT_RDWR);
      return log::warn("NVML client: ", connection.error().message);
    }
    if (!device_ && transport::clock::now() > tried_ + pause_between_tries) open_device();
    if (!device_)
      return refuse(**connection, wire::refusal_reason::device, "no NVML on the server: " + problem_);
    if (const std::string problem = take_place(about.peer); !problem.empty())
      return refuse(**connection, wire::refusal_reason::busy, problem);
    std::thread([this, c = client{std::move(*connection),
                                  {about.peer, hello->host},
                                  static_cast<unsigned>(hello->process),
                                  about.assign.session,
                                  about.assign.seal}] {
      serve(c);
      const std::lock_guard lock(mutex_);
      clients_.give_back(c.who.peer);
    }).detach();
  }

  /// Why there is none; empty: it has one.
  std::string take_place(const std::string& peer) {
    const std::lock_guard lock(mutex_);
    if (clients_.take(peer)) return {};
    return std::to_string(clients_.taken_by(peer)) + " programs of " + peer + " ask NVML, of all " +
           std::to_string(clients_.taken()) + "; the limit is " + std::to_string(most_clients) +
           ", shared with others";
  }

  void serve(const client& c) {
    visitor own(house_, c.who, c.process);
    if (!welcome(c)) return c.connection->shutdown();
    const std::string why = converse(*c.connection, own);
    if (!why.empty())
      log::warn("NVML client ", c.id, " (", c.connection->describe(), ") is thrown out: ", why);
    c.connection->shutdown();
  }

  const helper_options& options_;
  house house_;
  std::unique_ptr<device::nvml_device> device_;
  std::string problem_;
  transport::deadline tried_{};
  std::mutex mutex_;
  fair_shares clients_{most_clients};  // with mutex_
};

}  // namespace

int run_helper(const helper_options& options) {
  if (const status tied = die_with_parent(options.parent); !tied.ok()) return 1;
  ::fcntl(control, F_SETFD, FD_CLOEXEC);
  ::prctl(PR_SET_NAME, "outboard-nvml");
  if (options.tls) transport::tls::prepare_to_serve();
  // Before there is another thread, a library of somebody else's, or a byte of a client's.
  if (options.confine && !options.confine()) return exit_unconfined;
  helper h(options);
  const int status = h.run();
  // Clients' threads still answer: what they use must not be taken down under them.
  ::_exit(status);
}

}  // namespace outboard::backend::nvml
