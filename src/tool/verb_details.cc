#include "tool/verb_details.hh"

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.hh"

namespace outboard::tool {
namespace {

constexpr std::size_t width_of_terminals = 100;

constexpr std::array<std::pair<std::string_view, std::string_view>, 12> all_details{{
    {"serve",
     "lends this machine's devices on each `--listen URL` (default: `unix:$RUNTIME_DIRECTORY/outboard.sock`, "
     "for root `unix:/run/outboard/outboard.sock`, else in `$XDG_RUNTIME_DIR/outboard`). Its log says which "
     "command a client runs, and who gets in ([who gets in](#who-gets-in))"},
    {"run",
     "runs a program with the front-end library first in its `LD_LIBRARY_PATH`. If no server is named or "
     "configured, it uses a private back-end that ends with the program; a private back-end that finds no "
     "GPU computes on the cpu device and says so"},
    {"devices",
     "lists the devices of a server, or of this machine if there is none. `--opencl` lists those that OpenCL "
     "programs see; it asks by a session like a program's"},
    {"sessions",
     "lists the sessions of a server, with `--json` an array of objects with `id`; `state` is running, "
     "starting or waiting (then `id` and `worker` are null, `waits_behind` is how many came before it and "
     "wait, and `waits_for` is \"a place\" or \"its own\": an end of another session of its identity); "
     "`identity` is whose share it counts for; `api` is CUDA or OpenCL; `memory_bytes` is what a session "
     "holds of all devices (null where the board's driver alone knows); `user` is the kernel's word of a "
     "local socket, else what the client says, with a question mark"},
    {"doctor",
     "shows versions, libraries, transports, devices, OpenCL's platforms, and servers with their warm pool. "
     "It names what is wrong, which section of the documents is about it and, if one command mends the first "
     "fault, that command (`--fix` prints only that command)"},
    {"reload", "makes a server read its configuration again ([reading it again](#reading-it-again))"},
    {"replace",
     "has another worker go on with a session while its program runs ([replace the worker of a running "
     "session](how-to/replace-workers.md))"},
    {"settings",
     "shows every setting, its value here, and the file and line, variable or flag that set it; `--example` "
     "prints a configuration with all defaults"},
    {"cdi",
     "writes `/etc/cdi/outboard.json`, by which podman, docker and others give a server's devices to "
     "containers ([containers](containers.md))"},
    {"completion",
     "prints what completes verbs and flags in bash, zsh or fish: `source <(outboard completion bash)`; "
     "packages bring it"},
    {"bench",
     "measures what calls cost between this machine and a server, in turns with native runs if this machine "
     "has a driver and a GPU; prints a page ([what calls cost](#what-calls-cost))"},
    {"token",
     "makes, lists and revokes the named tokens of this machine's server, each for one person or group "
     "([tokens](how-to/lab-server.md#tokens)). `create NAME` prints the token, which is shown only then; a "
     "running server notices changes by itself"},
}};

}  // namespace

std::string_view details_of(std::string_view verb) {
  const auto found = std::ranges::find(all_details, verb, [](const auto& each) { return each.first; });
  CHECK(found != all_details.end());
  return found->second;
}

std::string details_without_links(std::string_view verb) {
  std::string out(details_of(verb));
  for (std::size_t at; (at = out.find("([")) != out.npos;) {
    const std::size_t middle = out.find("](", at), end = out.find("))", middle);
    CHECK(middle != out.npos && end != out.npos);
    const std::string target = out.substr(middle + 2, end - middle - 2);
    out.replace(at, end + 2 - at, (target.starts_with('#') ? "(docs/command.md" : "(docs/") + target + ")");
  }
  return out;
}

std::string wrapped(std::string_view text) {
  std::string out;
  std::size_t column = 0;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    const bool fits = column + 1 + word.size() <= width_of_terminals;
    if (column > 0) out += fits ? ' ' : '\n';
    column = column > 0 && fits ? column + 1 + word.size() : word.size();
    out += word;
  }
  return out;
}

}  // namespace outboard::tool
