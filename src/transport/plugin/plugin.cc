#include "transport/plugin/plugin.hh"

#include <dlfcn.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/errno_text.hh"
#include "base/steady.hh"
#include "transport/plugin/abi.h"
#include "transport/url.hh"

namespace outboard::transport::plugin {

namespace {

using outboard::error;
using table = outboard_transport_v1;

// What comes back from a plug-in is data of a stranger: numbers are checked, texts end at their buffer.
error to_error(const outboard_error& e) {
  auto next =
      static_cast<action>(e.next >= 0 && e.next <= OUTBOARD_ACTION_FALL_BACK ? e.next : OUTBOARD_ACTION_FAIL);
  return {next, std::string(e.message, ::strnlen(e.message, sizeof e.message))};
}

io to_io(std::int32_t value) {
  return value >= 0 && value <= OUTBOARD_IO_INTERRUPTED ? static_cast<io>(value) : io::broken;
}

std::int64_t to_abi(deadline until) {
  if (until == no_deadline) return OUTBOARD_NO_DEADLINE;
  return steady_nanoseconds(until);
}

template <class Write>
std::string read_text(Write write) {
  std::string text(256, '\0');
  std::size_t length = write(text.data(), text.size());
  if (length >= text.size()) {
    text.resize(std::min<std::size_t>(length, 1 << 16) + 1);
    length = write(text.data(), text.size());
  }
  text.resize(std::min(length, text.size() - 1));
  return text;
}

class loaded_connection final : public connection {
 public:
  loaded_connection(const table* t, void* self) : t_(t), self_(self) {
    outboard_capabilities c{};
    t_->connection_what(self_, &c);
    what_ = {c.same_host != 0,
             c.passes_descriptors != 0,
             c.detachable != 0,
             c.peer_identity != 0,
             static_cast<std::size_t>(std::clamp<std::uint64_t>(c.preferred_chunk, 1, 1 << 30)),
             c.detachable != 0};
  }
  ~loaded_connection() override { t_->connection_destroy(self_); }

  const capabilities& what() const override { return what_; }

  io_result send(std::span<const iovec> parts, deadline until) override {
    std::uint64_t bytes = 0;
    io status = to_io(t_->connection_send(self_, parts.data(), parts.size(), to_abi(until), &bytes));
    return {status, static_cast<std::size_t>(bytes)};
  }

  io_result receive(std::span<std::byte> into, deadline until) override {
    std::uint64_t bytes = 0;
    io status = to_io(t_->connection_receive(self_, into.data(), into.size(), to_abi(until), &bytes));
    if (bytes > into.size()) return {io::broken, 0};
    return {status, static_cast<std::size_t>(bytes)};
  }

  io wait_readable(deadline until) override {
    return to_io(t_->connection_wait_readable(self_, to_abi(until)));
  }
  void interrupt() override { t_->connection_interrupt(self_); }
  bool peer_gone() override { return t_->connection_peer_gone(self_) != 0; }
  void shutdown() override { t_->connection_shutdown(self_); }
  void set_spin(std::chrono::microseconds budget) override {
    t_->connection_set_spin(self_, std::chrono::nanoseconds(budget).count());
  }

  status send_descriptor(int fd) override {
    outboard_error e{};
    if (t_->connection_send_descriptor(self_, fd, &e) != 0) return to_error(e);
    return {};
  }

  result<unique_fd> receive_descriptor(deadline until) override {
    outboard_error e{};
    int fd = -1;
    if (t_->connection_receive_descriptor(self_, to_abi(until), &fd, &e) != 0) return to_error(e);
    return unique_fd(fd);
  }

  result<unique_fd> detach() override {
    outboard_error e{};
    int fd = -1;
    if (t_->connection_detach(self_, &fd, &e) != 0) return to_error(e);
    return unique_fd(fd);
  }

  result<peer_identity> peer() const override {
    outboard_error e{};
    outboard_peer p{};
    if (t_->connection_peer(self_, &p, &e) != 0) return to_error(e);
    return peer_identity{p.user, p.group, p.process};
  }

  std::string describe() const override {
    return read_text(
        [&](char* text, std::size_t size) { return t_->connection_describe(self_, text, size); });
  }

 private:
  const table* t_;
  void* self_;
  capabilities what_;
};

class loaded_listener final : public listener {
 public:
  loaded_listener(const table* t, void* self) : t_(t), self_(self) {}
  ~loaded_listener() override { t_->listener_destroy(self_); }

  result<std::unique_ptr<connection>> accept(deadline until) override {
    outboard_error e{};
    void* made = nullptr;
    if (t_->listener_accept(self_, to_abi(until), &made, &e) != 0) return to_error(e);
    return std::unique_ptr<connection>(std::make_unique<loaded_connection>(t_, made));
  }

  void interrupt() override { t_->listener_interrupt(self_); }
  int poll_descriptor() const override { return t_->listener_poll_descriptor(self_); }

  std::string url() const override {
    return read_text([&](char* text, std::size_t size) { return t_->listener_url(self_, text, size); });
  }

 private:
  const table* t_;
  void* self_;
};

class loaded_transport final : public transport {
 public:
  loaded_transport(const table* t, void* self) : t_(t), self_(self), scheme_(t->scheme) {}
  ~loaded_transport() override { t_->destroy(self_); }

  std::string_view scheme() const override { return scheme_; }

  result<std::unique_ptr<connection>> connect(std::string_view address, deadline until) override {
    return make<connection, loaded_connection>([&](void** made, outboard_error* e) {
      return t_->connect(self_, address.data(), address.size(), to_abi(until), made, e);
    });
  }

  result<std::unique_ptr<listener>> listen(std::string_view address, const listen_options& options) override {
    outboard_listen_options o{options.backlog, options.allow_foreign_hosts ? 1 : 0};
    return make<listener, loaded_listener>([&](void** made, outboard_error* e) {
      return t_->listen(self_, address.data(), address.size(), &o, made, e);
    });
  }

  result<std::unique_ptr<connection>> attach(unique_fd fd) override {
    return make<connection, loaded_connection>(
        [&](void** made, outboard_error* e) { return give(fd, t_->attach(self_, fd.get(), made, e)); });
  }

  result<std::unique_ptr<listener>> adopt_listener(unique_fd fd) override {
    return make<listener, loaded_listener>([&](void** made, outboard_error* e) {
      return give(fd, t_->adopt_listener(self_, fd.get(), made, e));
    });
  }

 private:
  // The plug-in has taken the descriptor if it succeeded.
  static std::int32_t give(unique_fd& fd, std::int32_t code) {
    if (code == 0) (void)fd.release();
    return code;
  }

  template <class Base, class Derived, class Call>
  result<std::unique_ptr<Base>> make(Call call) {
    outboard_error e{};
    void* made = nullptr;
    if (call(&made, &e) != 0) return to_error(e);
    return std::unique_ptr<Base>(std::make_unique<Derived>(t_, made));
  }

  const table* t_;
  void* self_;
  std::string scheme_;
};

bool complete(const table& t) {
  return t.create && t.destroy && t.connect && t.listen && t.attach && t.adopt_listener &&
         t.connection_destroy && t.connection_what && t.connection_send && t.connection_receive &&
         t.connection_wait_readable && t.connection_interrupt && t.connection_peer_gone &&
         t.connection_shutdown && t.connection_set_spin && t.connection_send_descriptor &&
         t.connection_receive_descriptor && t.connection_detach && t.connection_peer &&
         t.connection_describe && t.listener_destroy && t.listener_accept && t.listener_interrupt &&
         t.listener_poll_descriptor && t.listener_url;
}

status check_table(const std::string& name, const table* t) {
  if (t == nullptr)
    return failure(name + " does not speak version " + std::to_string(OUTBOARD_TRANSPORT_VERSION) +
                   " of the transport interface; it was built for another version of Outboard");
  if (t->version != OUTBOARD_TRANSPORT_VERSION || t->size != sizeof(table))
    return failure(name + " gave a table of version " + std::to_string(t->version) + " and " +
                   std::to_string(t->size) + " bytes, expected version " +
                   std::to_string(OUTBOARD_TRANSPORT_VERSION) + " and " + std::to_string(sizeof(table)) +
                   " bytes");
  if (t->scheme == nullptr || !is_scheme(t->scheme))
    return failure(name + " calls its transport '" + (t->scheme ? printable(t->scheme) : "") +
                   "', which is no name for a URL (lower-case letters, digits, + and -, at most 16)");
  if (!complete(*t)) return failure(name + " leaves out functions of the transport interface");
  return {};
}

}  // namespace

result<std::unique_ptr<transport>> load(const std::string& path) {
  std::string name = "transport plug-in " + printable(path);
  if (path.find('/') == std::string::npos)
    return failure(name + ": give the path of the file, with a / in it");
  struct stat file;
  if (::stat(path.c_str(), &file) != 0) return failure(name + ": " + errno_text(errno));
  void* object = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (object == nullptr) {
    const char* why = ::dlerror();
    return failure(name + " cannot be loaded: " + (why ? why : "no reason given"));
  }
  auto entry = reinterpret_cast<outboard_transport_entry_function>(::dlsym(object, OUTBOARD_TRANSPORT_ENTRY));
  if (entry == nullptr)
    return failure(name + " is a shared object but no transport: it has no function " +
                   OUTBOARD_TRANSPORT_ENTRY);
  const auto* t = static_cast<const table*>(entry(OUTBOARD_TRANSPORT_VERSION));
  OUTBOARD_TRY(check_table(name, t));
  outboard_error e{};
  void* self = nullptr;
  if (t->create(&self, &e) != 0) {
    error reason = to_error(e);
    reason.message = name + ": " + reason.message;
    return reason;
  }
  return std::unique_ptr<transport>(std::make_unique<loaded_transport>(t, self));
}

}  // namespace outboard::transport::plugin
