// What the verbs of the command take; main() fills it in from the command line. Each verb_x() returns the
// exit status. Main thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/config.hh"

namespace outboard::tool {

/// Flags that several verbs share. An empty one was not given.
struct common_flags {
  std::string config_file;
  std::map<std::string, std::string> settings;  ///< by key, with the text of the flag (base/settings.hh)
  std::string library;
  bool json = false;

  bool given(const char* key) const { return settings.contains(key); }
};

struct serve_flags {
  std::string private_folder;  ///< hidden, for `run`: a private server's folder, which it removes at its end
  int ready_descriptor = -1;  ///< hidden: gets the URLs, one per line, once the server listens on all of them
};

struct worker_flags {
  pid_t parent = -1;
  std::string device;  ///< the name of its kind
  bool probe = false, warm = false;
  bool opencl = false;    ///< for a session that speaks OpenCL
  bool tls = false;       ///< clients may come encrypted
  bool confine = false;   ///< it confines itself before it reads anything of a client
  std::string folder;     ///< where it may write if it is confined; empty: nowhere
  std::string compilers;  ///< where its compilers keep what later sessions may find; empty: nowhere
  // Each of the next five makes the process a helper instead of a worker.
  compiler_cache_settings tidy;       ///< tidies this compiler cache, if the directory is set
  std::string remove_folders;         ///< removes sessions' folders below this one
  bool monitor = false;               ///< answers NVML
  bool gate = false;                  ///< ends TLS
  pid_t checkpoint = -1;              ///< carries out one step of a checkpoint on this worker
  std::vector<std::string> visible;   ///< for NVML: PCI addresses of the devices lent
  bool visible_in_order = false;      ///< for NVML: clients see them in that order, else in NVML's own
  std::vector<std::string> settings;  ///< KEY=TEXT of the settings that workers read
  cache_settings cache;
  std::vector<std::string> plugins;  ///< NAME=LIBRARY
};

struct token_flags {
  std::string action;  ///< create, list, revoke
  std::string name, lifetime;
};

int verb_serve(const common_flags& common, const serve_flags& flags);
int verb_run(const common_flags& common, const std::vector<std::string>& command);
int verb_devices(const common_flags& common);
int verb_sessions(const common_flags& common);
int verb_doctor(const common_flags& common);
int verb_reload(const common_flags& common);
int verb_end(const common_flags& common, std::uint64_t session);
int verb_token(const common_flags& common, const token_flags& flags);
int verb_settings(const common_flags& common, bool example, bool document);
int verb_worker(const worker_flags& flags);

/// Where the named tokens of this user's or service's server are unless `tokens_file` says so; empty: nobody
/// knows.
std::string default_tokens_file();
/// Where a server keeps the key that it makes for itself.
std::string default_server_key();

/// Reads files, environment and flags, in this order. The reason of an error is the exit status: wrong usage
/// for a flag, wrong configuration for everything else.
result<config> load_with_flags(const common_flags& flags);

/// Writes one sentence to stderr; returns `status`.
int complain(int status, const std::string& sentence);
/// Complains of an error of load_with_flags(); returns its exit status.
int complain_of_configuration(const outboard::error& problem);

}  // namespace outboard::tool
