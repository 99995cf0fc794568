// What the verbs of the command take, filled by main() from the command line. Each verb_x() gives the exit
// status.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/configuration/config.hh"

namespace outboard::tool {

/// Flags that several verbs share; an empty one was not given.
struct common_flags {
  std::string config_file;
  std::map<std::string, std::string>
      settings;  ///< by key (base/configuration/settings.hh): what the flag says
  std::string library;
  bool json = false;

  bool given(const char* key) const { return settings.contains(key); }
};

struct serve_flags {
  std::string private_folder;  ///< hidden: `run`'s own back-end, which lives in this folder and removes it
  int ready_descriptor = -1;   ///< hidden: gets the URLs, a line each, once all listen
};

struct worker_flags {
  pid_t parent = -1;
  std::string device;  ///< by name
  bool probe = false, warm = false;
  bool no_visible_device = false;    ///< its CUDA_VISIBLE_DEVICES names none of the devices
  bool opencl = false;               ///< for a session that speaks OpenCL
  std::string confine;               ///< the folder in which it may write; empty: it is not confined
  bool confine_helper = false;       ///< no worker: it confines itself to what its work needs
  std::string compilers;             ///< where its compilers keep what stays; empty: nowhere
  compiler_cache_settings tidy;      ///< no worker: looks after this compiler cache, if it has a directory
  std::string remove_folders;        ///< no worker: removes sessions' folders below this one
  bool gate = false;                 ///< no worker: ends TLS
  bool tls = false;                  ///< clients may come encrypted
  bool monitor = false;              ///< no worker: the helper that answers NVML
  pid_t checkpoint = -1;             ///< no worker: changes the state of this one and ends
  std::vector<std::string> visible;  ///< of the helper: PCI addresses
  bool visible_in_order = false;     ///< clients see them in that order, else in NVML's own
  std::uint64_t reserve_from = 0;    ///< where NVIDIA's driver places what it reserves; 0: anywhere
  cache_settings cache;
  std::vector<std::string> settings;  ///< KEY=TEXT of those that workers read
  std::vector<std::string> plugins;   ///< NAME=LIBRARY
};

struct bench_flags {
  bool markdown = false;
  bool native = false;  ///< this machine's own driver alone
  std::string output;   ///< the file that gets the page; empty: the standard output
  std::string compare;  ///< an earlier page as JSON, whose native rows are put beside ours
  double seconds = 20;  ///< the whole run, about
};

struct measure_flags {
  bool native = false;     ///< by this machine's own driver, else by the library that the loader finds
  double seconds = 1;      ///< all rows, about
  std::uint64_t bulk = 0;  ///< bytes of the large copies; 0: none
};

struct token_flags {
  std::vector<std::string> words;  ///< create NAME, list, revoke NAME
  std::string lifetime;            ///< of create, as 30d; empty: for ever
};

struct replace_flags {
  std::uint64_t session = 0;
  double patience = 2;  ///< seconds
};

int verb_serve(const common_flags& common, const serve_flags& flags);
/// `own_program`: the command is a part of ours, so what fails before it has the statuses of the other verbs.
int verb_run(const common_flags& common, const std::vector<std::string>& command, bool own_program = false);
int verb_devices(const common_flags& common, bool opencl);
/// Hidden: a program that prints what OpenCL devices our library shows.
int verb_opencl_list(const std::string& library, bool as_json);
int verb_sessions(const common_flags& common);
int verb_reload(const common_flags& common);
int verb_replace(const common_flags& common, const replace_flags& flags);
int verb_doctor(const common_flags& common, bool only_cure);
int verb_settings(const common_flags& common, bool example, bool document);
int verb_cdi(const common_flags& common, const std::string& action, const std::string& output);
int verb_bench(const common_flags& common, const bench_flags& flags);
int verb_measure(const measure_flags& flags);
int verb_token(const common_flags& common, const token_flags& flags);
int verb_worker(const worker_flags& flags);

/// Where the named tokens of this user's or service's server are unless `tokens_file` says so; empty: nobody
/// knows.
std::string default_tokens_file();

/// Files, environment, then flags. The reason of an error is the exit status: usage for a flag, configuration
/// for the rest.
result<config> load_with_flags(const common_flags& flags);

/// One sentence on stderr; gives `status` back.
int complain(int status, const std::string& sentence);
/// The same of an error of load_with_flags().
int complain_of_configuration(const outboard::error& problem);

}  // namespace outboard::tool
