// What the verbs of the command take, filled by main() from the command line. Each verb_x() gives the exit
// status.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/config.hh"

namespace outboard::tool {

/// Flags that several verbs share; an empty one was not given.
struct common_flags {
  std::string config_file;
  std::string server;  ///< URL[,URL]
  std::string token_file;
  std::string device;
  std::string library;
  bool json = false;
};

struct serve_flags {
  std::vector<std::string> listen;
  bool insecure = false;
  std::string log_level, log_format;
  std::optional<std::uint32_t> drain_seconds;
  std::string private_folder;  ///< hidden: `run`'s own back-end, which lives in this folder and removes it
  int ready_descriptor = -1;   ///< hidden: gets the URLs, a line each, once all listen
};

struct worker_flags {
  pid_t parent = -1;
  bool probe = false, warm = false;
  bool opencl = false;               ///< for a session that speaks OpenCL
  std::string confine;               ///< the folder in which it may write; empty: it is not confined
  std::string compilers;             ///< where its compilers keep what stays; empty: nowhere
  compiler_cache_settings tidy;      ///< no worker: looks after this compiler cache, if it has a directory
  std::string remove_folders;        ///< no worker: removes sessions' folders below this one
  bool monitor = false;              ///< no worker: the helper that answers NVML
  pid_t checkpoint = -1;             ///< no worker: changes the state of this one and ends
  std::vector<std::string> visible;  ///< of the helper: PCI addresses
  std::string log_level, log_format;
  bool visible_in_order = false;  ///< clients see them in that order, else in NVML's own
  cpu_settings cpu;
  shape_settings shape;
  cache_settings cache;
  std::uint32_t keepalive_seconds = 30;
  std::vector<std::string> plugins;  ///< NAME=LIBRARY
};

int verb_serve(const common_flags& common, const serve_flags& flags);
int verb_run(const common_flags& common, const std::vector<std::string>& command);
int verb_devices(const common_flags& common);
int verb_sessions(const common_flags& common);
int verb_doctor(const common_flags& common);
int verb_worker(const common_flags& common, const worker_flags& flags);

/// Files, environment, then the flags that all verbs share.
result<config> load_with_flags(const common_flags& flags);

/// One sentence on stderr; gives `status` back.
int complain(int status, const std::string& sentence);

}  // namespace outboard::tool
