// The configuration in layers: /etc/outboard/outboard.toml, then ~/.config/outboard/outboard.toml, then the
// environment; the command puts its flags on top. Read once at start by main() or the front-end library's one
// init; a value afterwards. Unknown keys and bad values are errors that name file, line and what is accepted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/configuration/identity_settings.hh"
#include "base/log.hh"
#include "base/result.hh"

namespace outboard {

enum class device_choice { automatic, vendor, cpu, mock };
std::string_view name(device_choice d);
/// "auto", "vendor", "cpu"; "mock" is for tests.
std::optional<device_choice> parse_device(std::string_view text);

enum class log_format { console, json };

/// Zero leaves the choice to the cpu device.
struct cpu_settings {
  std::uint32_t capability = 0;              ///< compute capability times ten
  std::uint64_t memory = 0;                  ///< bytes of device memory that it reports and hands out
  std::uint32_t cores = 0;                   ///< threads that execute
  std::uint32_t kernel_timeout_seconds = 0;  ///< a kernel that runs longer fails; 0: never
};

/// In shape_settings::name.
inline constexpr std::string_view board_name_mark = "{name}";

/// What clients see of the devices lent, where it is not all that there is.
struct shape_settings {
  std::vector<std::string> visible;  ///< indices or beginnings of UUIDs, in the clients' order; empty: all
  std::string name;                  ///< "{name}" in it stands for the board's own; empty: that alone
  std::uint64_t memory = 0;          ///< most bytes of one device that a session may hold; 0: all
};

struct pool_settings {
  std::uint32_t per_key = 1;        ///< idle warm workers for one device and driver environment; 0: none
  std::uint32_t burst = 2;          ///< the same while sessions come fast: as many as began of late
  std::uint32_t most = 8;           ///< idle warm workers of all keys
  std::uint32_t idle_minutes = 10;  ///< a warm worker that nobody wants is dropped
};

/// Whether workers, which carry out their clients' programs, are locked in: wholly, or no session is served
/// (`required`); as far as the kernel can (`possible`); never. `automatic`: CUDA's on the cpu device as
/// `required`, all others as `possible`.
enum class confine_choice { automatic, required, off, possible };
std::string_view name(confine_choice c);

/// Whether each worker gets a control group (cgroup v2) of its own: where the daemon has one to divide;
/// always, or the server does not start; never.
enum class cgroup_choice { automatic, required, off };
std::string_view name(cgroup_choice c);

/// How clients over a network show by MUNGE which user they are.
struct munge_settings {
  bool on = false;
  std::string socket;  ///< of munged; empty: where its library looks
};

struct limit_settings {
  std::uint32_t sessions = 1024;  ///< that run or wait; more are refused
  std::uint32_t running = 0;      ///< that have a worker at once, the others wait; 0: all
  /// Connections without a finished hello. Above it the oldest goes of the source that has the most; one
  /// source has at most three quarters of them.
  std::uint32_t unauthenticated = 256;
  std::uint32_t hello_seconds = 5;
  std::uint32_t drain_seconds = 30;
  std::uint32_t linger_seconds = 60;     ///< how long a session outlives the loss of its link; 0: not at all
  std::uint32_t keepalive_seconds = 30;  ///< a silent dead peer is noticed after it
};

/// Module images that the server keeps on disk.
struct cache_settings {
  std::string directory;            ///< empty: where caches of this user or service lie
  std::uint64_t size = 2ull << 30;  ///< most bytes; 0: none are kept
};

/// What OpenCL's compilers keep on the server's disk for later sessions of the same identity.
struct compiler_cache_settings {
  std::string directory;                    ///< empty: where caches of this user or service lie
  std::uint64_t size = 4ull << 30;          ///< most bytes of all identities; 0: nothing is kept
  std::uint64_t per_identity = 1ull << 30;  ///< of one; likewise
};

/// Whether connections over a network are encrypted: with peers beyond this machine; always; as the client
/// wishes (servers only); never.
enum class tls_choice { automatic, required, allowed, off };
std::string_view name(tls_choice c);

/// Paths of PEM files, and who is trusted.
struct certificate_settings {
  // Server.
  std::string server, server_key;  ///< empty: a key of its own, with a certificate that it signs itself
  std::string own_key;             ///< where that is kept; empty: where this user's or service's state is
  std::string client_authority;    ///< who signs clients' certificates; empty: none are asked for
  // Client.
  std::string client, client_key;  ///< empty: none
  std::string server_authority;    ///< who signs servers' certificates; empty: fingerprints decide
  std::string known_servers;       ///< file of fingerprints; empty: beside the user's configuration
};

inline constexpr std::uint32_t most_wait_seconds = 7 * 86400;

/// Each way, of one context of a session.
inline constexpr std::uint32_t most_data_connections = 16;

struct config {
  // Client.
  std::vector<std::string> servers;
  bool sync = false;
  std::string trace;
  std::string profile;  ///< file; empty: none
  bool profile_summary = false;
  bool cupti = true;
  bool find_addresses = true;  ///< of page-locked memory kernels see what addresses are found of, else all
  bool concurrent_managed = true;  ///< host and kernels use managed memory at the same time, where they can
  // Both.
  std::string token_file;
  munge_settings munge;
  tls_choice tls = tls_choice::automatic;
  certificate_settings certificates;
  log::level log = log::level::error;
  bool rings = true;  ///< shared memory with a peer on this host, where both ends have it
  /// For the bytes of large copies, each way, where memory cannot be shared; 0: none beside the session's. A
  /// client has no more than half as many as its cores, but four.
  std::uint32_t data_connections = 8;
  bool compression = true;   ///< of the bytes of large copies over data connections, where it is faster
  bool module_cache = true;  ///< of images that clients over slow lines need not send again
  std::uint32_t wait_seconds = 120;  ///< how long a program waits for its session to begin
  bool log_given = false;            ///< some layer said it: the server's own default is info
  device_choice device = device_choice::automatic;
  std::vector<std::pair<std::string, std::string>> plugins;  ///< transport scheme, shared object
  // Server.
  std::vector<std::string> listen;
  bool insecure = false;
  std::string tokens_file;               ///< of named tokens; empty: where this user's or service's state is
  std::vector<std::string> allow_users;  ///< further users of unix: sockets, by name or number; "*": all
  log_format format = log_format::console;
  std::string audit_file;  ///< who did what; empty: none
  limit_settings limits;
  pool_settings pool;
  cache_settings cache;
  compiler_cache_settings compiler_cache;
  confine_choice confine = confine_choice::automatic;
  std::vector<std::string>
      confined_reads;  ///< what workers that are locked in may read, beside what they need
  std::vector<std::string> confined_writes;  ///< and folders in which they may write
  cgroup_choice cgroup = cgroup_choice::automatic;
  cpu_settings cpu;
  shape_settings shape;
  std::vector<identity_settings> identities;  ///< in the order of the files

  std::vector<std::string> sources;            ///< the files that were read, for `doctor`
  std::map<std::string, std::string> origins;  ///< of each key ("section.key") that was set: what set it last
};

struct config_sources {
  std::vector<std::string> files;                    ///< lowest first; one that does not exist is passed over
  std::string must_exist;                            ///< read instead of `files` when not empty (--config)
  std::function<const char*(const char*)> variable;  ///< getenv
};

/// The two files by the rules of XDG, and the environment of this process.
config_sources default_config_sources();

result<config> load_config(const config_sources& sources);

/// "a,b" as a list; an address without a port gets its scheme's default; empty parts are an error.
result<std::vector<std::string>> parse_endpoints(std::string_view text);
std::string with_default_port(std::string_view url);

/// The token: the file's bytes without white space at the end. It must be a regular file that nobody else may
/// read (0600), or that root lets a group read (0440), or in the folder in which systemd hands out
/// `credentials`; with at least 16 bytes of token.
result<std::vector<std::byte>> read_token(const std::string& path, std::string_view credentials = {});

/// "8GiB", "512MiB", "65536".
std::optional<std::uint64_t> parse_size(std::string_view text);

}  // namespace outboard
