#include "transport/tls/library.hh"

#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <array>
#include <mutex>
#include <string>
#include <vector>

namespace outboard::transport::tls {
namespace {

constexpr const char* file_name = "outboard-tls.so";

std::string folder_of(const char* path) {
  std::array<char, PATH_MAX> real{};
  const std::string whole = ::realpath(path, real.data()) ? real.data() : path;
  return whole.substr(0, whole.rfind('/'));
}

/// Next to the front-end library that this code is part of; for the command, where those libraries are.
std::vector<std::string> places() {
  Dl_info own{}, program{};
  if (::dladdr(reinterpret_cast<void*>(&places), &own) == 0) return {};
  const bool in_program = ::dladdr(reinterpret_cast<void*>(::getauxval(AT_PHDR)), &program) != 0 &&
                          program.dli_fbase == own.dli_fbase;
  const std::string folder = folder_of(in_program ? "/proc/self/exe" : own.dli_fname);
  if (!in_program) return {folder + "/" + file_name};
  return {folder + "/../lib/outboard/" + file_name, folder + "/" + file_name};
}

result<library*> open_library() {
  std::string tried;
  for (const std::string& path : places()) {
    tried = path;
    if (::access(path.c_str(), R_OK) != 0) continue;
    void* const object = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!object) return failure(std::string("TLS cannot be loaded: ") + ::dlerror());
    void* const symbol = ::dlsym(object, library_symbol);
    library* const made = symbol ? reinterpret_cast<library_function>(symbol)(library_interface) : nullptr;
    if (!made) return failure(path + " is of another version of Outboard; install both from one version");
    return made;
  }
  return failure("TLS is not installed: there is no " + tried +
                 "; install it, or set tls = \"off\" where the network is trusted");
}

}  // namespace

result<library*> load() {
  static std::mutex one_at_a_time;
  static result<library*>* loaded = nullptr;  // never destroyed: threads may use it at the exit
  const std::lock_guard lock(one_at_a_time);
  if (!loaded) loaded = new result<library*>(open_library());
  return *loaded;
}

void prepare_to_serve() {
  if (const auto loaded = load(); loaded.ok()) (void)(*loaded)->start_server({});
}

}  // namespace outboard::transport::tls
