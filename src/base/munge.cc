#include "base/munge.hh"

#include <dlfcn.h>
#include <signal.h>
#include <sys/types.h>

#include <cstdlib>
#include <ctime>
#include <memory>
#include <mutex>

namespace outboard::munge {
namespace {

constexpr const char* library_name = "libmunge.so.2";

// Of munge.h, whose numbers belong to the library's interface.
constexpr int option_socket = 8;
enum answer : int {
  good = 0,
  internal = 1,
  no_memory = 5,
  no_socket = 6,
  too_late = 7,
  invalid = 14,
  expired = 15,
  from_the_future = 16,
  replayed = 17,
  not_for_us = 18,
};

struct context;

struct library {
  context* (*create)() = nullptr;
  void (*destroy)(context*) = nullptr;
  int (*set)(context*, int option, ...) = nullptr;
  const char* (*context_error)(context*) = nullptr;
  const char* (*error_text)(int) = nullptr;
  int (*encode)(char** credential, context*, const void* content, int length) = nullptr;
  int (*decode)(const char* credential, context*, void** content, int* length, uid_t*, gid_t*) = nullptr;
};

template <class Function>
bool find(void* in, const char* name, Function*& into) {
  into = reinterpret_cast<Function*>(::dlsym(in, name));
  return into != nullptr;
}

result<library> load() {
  void* const object = ::dlopen(library_name, RTLD_NOW | RTLD_LOCAL);
  if (!object) {
    return failure(std::string("MUNGE cannot be used here: ") + ::dlerror() +
                   "; install it (Debian: munge and libmunge2; rpm: munge and munge-libs), or leave `munge` "
                   "(OUTBOARD_MUNGE) off");
  }
  library made;
  const bool complete =
      find(object, "munge_ctx_create", made.create) && find(object, "munge_ctx_destroy", made.destroy) &&
      find(object, "munge_ctx_set", made.set) && find(object, "munge_ctx_strerror", made.context_error) &&
      find(object, "munge_strerror", made.error_text) && find(object, "munge_encode", made.encode) &&
      find(object, "munge_decode", made.decode);
  if (!complete) return failure(std::string(library_name) + " lacks functions of MUNGE 0.5");
  return made;
}

/// Once it was found it stays; what is missing may be installed while a daemon runs.
result<library> loaded() {
  static std::mutex mutex;
  static result<library> kept = failure("");
  const std::lock_guard lock(mutex);
  if (!kept.ok()) kept = load();
  return kept;
}

/// A service that ends while it is written to would end this process: the library asks for no less.
class without_broken_pipes {
 public:
  without_broken_pipes() {
    sigset_t pending;
    sigemptyset(&pipes_);
    sigaddset(&pipes_, SIGPIPE);
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    ::pthread_sigmask(SIG_BLOCK, &pipes_, &before_);
  }
  ~without_broken_pipes() {
    const timespec at_once{};
    if (!was_pending_) ::sigtimedwait(&pipes_, nullptr, &at_once);
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  without_broken_pipes(const without_broken_pipes&) = delete;

 private:
  sigset_t pipes_, before_;
  bool was_pending_ = false;
};

struct freed {
  void operator()(void* memory) const { std::free(memory); }
};

/// One question to the service.
class question {
 public:
  question(const library& by, const std::string& socket) : by_(by), context_(by.create()) {
    if (context_ && !socket.empty()) by_.set(context_, option_socket, socket.c_str());
  }
  ~question() {
    if (context_) by_.destroy(context_);
  }
  question(const question&) = delete;

  context* about() const { return context_; }
  std::string why(int code) const {
    const char* text = context_ ? by_.context_error(context_) : nullptr;
    if (!text || *text == 0) text = by_.error_text(code);
    return text ? text : "error " + std::to_string(code);
  }

 private:
  const library& by_;
  context* const context_;
  const without_broken_pipes quiet_;
};

std::string silent(const std::string& why) {
  return "MUNGE does not answer here: " + why +
         "; start it (systemctl start munge), or name its socket in munge_socket (OUTBOARD_MUNGE_SOCKET)";
}

bool is_of_the_service(int code) {
  return code == internal || code == no_memory || code == no_socket || code == too_late;
}

/// What is wrong with a credential, for who has shown it.
std::string problem_of(int code, const std::string& why) {
  switch (code) {
    case expired:
    case from_the_future:
      return "the MUNGE credential is not of this time: " + why +
             "; set the clocks of both machines by the same source (NTP)";
    case invalid:
      return "the MUNGE credential was made with another key: " + why +
             "; both machines must have the same /etc/munge/munge.key";
    case replayed:
      return "the MUNGE credential was used before: " + why + "; connect again";
    case not_for_us:
      return "the MUNGE credential is for another user than this server's: " + why;
    default:
      return "the MUNGE credential cannot be read: " + why +
             "; both machines must have the same key and versions of MUNGE that fit";
  }
}

}  // namespace

result<std::string> make_credential(const std::string& socket, std::span<const std::byte> content) {
  const auto by = loaded();
  if (!by.ok()) return by.error();
  const question ask(*by, socket);
  char* made = nullptr;
  const int code = by->encode(&made, ask.about(), content.data(), static_cast<int>(content.size()));
  const std::unique_ptr<char, freed> owner(made);
  if (code != good || !made) return failure(silent(ask.why(code)));
  return std::string(made);
}

result<claim> read_credential(const std::string& socket, const std::string& credential) {
  const auto by = loaded();
  if (!by.ok()) return outboard::error{action::retry, by.error().message};
  const question ask(*by, socket);
  void* content = nullptr;
  int length = 0;
  uid_t user = 0;
  gid_t group = 0;
  const int code = by->decode(credential.c_str(), ask.about(), &content, &length, &user, &group);
  // Of some errors there is a content, too.
  const std::unique_ptr<void, freed> owner(content);
  if (code != good) {
    if (is_of_the_service(code)) return outboard::error{action::retry, silent(ask.why(code))};
    return failure(problem_of(code, ask.why(code)));
  }
  const auto* const first = static_cast<const std::byte*>(content);
  return claim{user, group, {first, first + length}};
}

}  // namespace outboard::munge
