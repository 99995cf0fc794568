// The configuration in layers: /etc/outboard/outboard.toml, then ~/.config/outboard/outboard.toml, then the
// environment; the command adds its flags on top. Read once at start by main() or the front-end library's one
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
  std::uint64_t memory = 0;                  ///< bytes of device memory that the device reports and allocates
  std::uint32_t cores = 0;                   ///< threads that execute
  std::uint32_t kernel_timeout_seconds = 0;  ///< a kernel that runs longer fails; 0: no limit
};

/// Placeholder in shape_settings::name.
inline constexpr std::string_view board_name_mark = "{name}";

/// What clients see of the lent devices, if it is not everything.
struct shape_settings {
  std::vector<std::string> visible;  ///< indices or UUID prefixes, in the clients' order; empty: all
  std::string name;          ///< "{name}" in it stands for the board's own name; empty: the own name only
  std::uint64_t memory = 0;  ///< most bytes of one device that a session may hold; 0: no limit
};

struct pool_settings {
  std::uint32_t per_key = 1;  ///< idle warm workers for one device and driver environment; 0: none
  std::uint32_t burst = 2;  ///< per_key in a burst: one for each session of the last 30 s, at most this many
  std::uint32_t most = 8;   ///< idle warm workers of all keys
  std::uint32_t idle_minutes = 10;  ///< a warm worker that is unused for this long is stopped
};

/// Whether workers are confined: as far as the kernel can; or not run at all unless the kernel can do all of
/// it; or never.
enum class confine_choice { automatic, required, off };
std::string_view name(confine_choice c);

/// What a server does with a GPU whose kernels can access all memory of their worker: not start; serve only
/// where workers are confined completely; serve as if it were another GPU.
enum class pageable_choice { refuse, confine, allow };

struct limit_settings {
  std::uint32_t sessions = 1024;   ///< running or waiting; further ones are refused
  std::uint32_t per_identity = 0;  ///< of one identity; 0: a quarter where several are known, else all
  std::uint32_t running = 0;       ///< that have a worker at the same time, while the others wait; 0: all
  std::uint32_t unauthenticated =
      256;  ///< connections without a finished hello; above it, the source with most loses its oldest
  std::uint32_t hello_seconds = 5;
  std::uint32_t drain_seconds = 30;
  std::uint32_t linger_seconds = 0;      ///< how long a session outlives the loss of its link; 0: not at all
  std::uint32_t keepalive_seconds = 30;  ///< a peer that died silently is noticed after this time
  std::uint64_t host_memory =
      0;  ///< most bytes of the server's own that a session may hold; 0: three quarters
};

/// Module images that the server keeps on disk.
struct cache_settings {
  std::string directory;            ///< empty: the cache folder of this user or service
  std::uint64_t size = 2ull << 30;  ///< in bytes; 0: no images are kept
};

/// What OpenCL's compilers keep on the server's disk for later sessions of the same identity.
struct compiler_cache_settings {
  std::string directory;                    ///< empty: the cache folder of this user or service
  std::uint64_t size = 4ull << 30;          ///< in bytes, of all identities; 0: nothing is kept
  std::uint64_t per_identity = 1ull << 30;  ///< in bytes, of one identity; 0: nothing is kept
};

/// What one identity (a tenant of the server) may do and use. Words and sizes are checked when they are read.
struct identity_settings {
  std::vector<std::string>
      members;  ///< credentials, as "token NAME"; empty: the token of the identity's name
  std::vector<std::string> rights{"run", "list", "suspend"};
  std::vector<std::string> devices;  ///< as shape_settings::visible, of the devices lent; empty: all
  std::uint32_t sessions = 0;        ///< running or waiting; 0: what limits.per_identity says
  std::uint32_t running = 0;         ///< at once; 0: no limit of its own
  std::uint32_t waiting = 0;         ///< 0: no limit of its own
  std::uint32_t weight = 100;        ///< its share of the places when others wait, too
  std::uint32_t priority = 0;        ///< who has the higher one gets the next place
  // In bytes; 0: no limit of its own.
  std::uint64_t device_memory = 0;        ///< of each device, for all its sessions together
  std::uint64_t host_memory = 0;          ///< of the server's own, likewise
  std::uint64_t session_host_memory = 0;  ///< of the server's own, for one session; 0: limits.host_memory
};

struct named_identity {
  std::string name;
  identity_settings is;
};

/// Whether connections over a network are encrypted: with peers beyond this machine; always; as the client
/// wishes (servers only); never.
enum class tls_choice { automatic, required, allowed, off };
std::string_view name(tls_choice c);

/// Paths of PEM files, and who is trusted.
struct certificate_settings {
  // For servers.
  std::string server, server_key;  ///< empty: a key of its own, with a certificate that it signs itself
  std::string own_key;             ///< where that is kept; empty: where this user's or service's state is
  std::string client_authority;    ///< who signs clients' certificates; empty: none are asked for
  // For clients.
  std::string client, client_key;  ///< empty: none
  std::string server_authority;    ///< who signs servers' certificates; empty: fingerprints decide
  std::string known_servers;       ///< file of fingerprints; empty: next to the user's configuration
};

inline constexpr std::uint32_t most_wait_seconds = 7 * 86400;

/// In each direction, for one context of a session.
inline constexpr std::uint32_t most_data_connections = 16;

struct config {
  // For clients.
  std::vector<std::string> servers;
  bool sync = false;
  std::string trace;
  bool concurrent_managed = true;  ///< where possible, host and kernels use managed memory at the same time
  // For clients and servers.
  std::string token_file;
  tls_choice tls = tls_choice::automatic;
  certificate_settings certificates;
  log::level log = log::level::error;
  bool rings = true;  ///< use shared memory with a peer on this host, if both ends can
  /// In each direction, for the bytes of large copies where memory cannot be shared; 0: the session's
  /// connection only. A client opens at most half as many as it has cores, but up to four in any case.
  std::uint32_t data_connections = 8;
  bool compression = true;   ///< compress large copies over data connections where that is faster
  bool module_cache = true;  ///< keep images, so that clients over slow links need not send them again
  std::uint32_t wait_seconds = 120;  ///< how long a program waits for its session to begin
  bool log_given = false;            ///< a layer set it; if none did, the server's default is info
  device_choice device = device_choice::automatic;
  std::vector<std::pair<std::string, std::string>> plugins;  ///< transport scheme, shared object
  // For servers.
  std::vector<std::string> listen;
  std::string tokens_file;  ///< of named tokens; empty: where this user's or service's state is
  std::string audit_file;   ///< empty: none
  bool insecure = false;
  std::vector<std::string> allow_users;  ///< further users of unix: sockets, by name or number; "*": all
  log_format format = log_format::console;
  limit_settings limits;
  pool_settings pool;
  cache_settings cache;
  compiler_cache_settings compiler_cache;
  confine_choice confine = confine_choice::automatic;  ///< of OpenCL sessions
  std::optional<confine_choice> confine_cuda;  ///< nothing: required for the cpu device, else automatic
  pageable_choice pageable = pageable_choice::refuse;
  cpu_settings cpu;
  shape_settings shape;
  identity_settings identity;              ///< of everybody without a row of their own
  std::vector<named_identity> identities;  ///< what load_config() made of the rows

  /// The keys of the rows [identity."NAME"], by name, each as what it does to `identity`. A row begins with
  /// the values of [identity], which a later file may change.
  std::map<std::string, std::vector<std::function<void(config&)>>> identity_rows;
  std::vector<std::string> sources;            ///< the files that were read, for `doctor`
  std::map<std::string, std::string> origins;  ///< for each "section.key" that was set, what set it last
};

struct config_sources {
  std::vector<std::string> files;                    ///< lowest layer first; a missing file is skipped
  std::string must_exist;                            ///< read instead of `files` when not empty (--config)
  std::function<const char*(const char*)> variable;  ///< getenv
};

/// The two files by the rules of XDG, and the environment of this process.
config_sources default_config_sources();

result<config> load_config(const config_sources& sources);

/// Makes `identities` of what all layers say. Part of load_config().
void resolve_identities(config& c);

/// Splits "a,b" into a list; an address without a port gets its transport's default port; empty parts are an
/// error.
result<std::vector<std::string>> parse_endpoints(std::string_view text);
std::string with_default_port(std::string_view url);

/// Reads the token: the file's bytes without white space at the end, at least 16. It must be a regular file
/// that only its owner may read (0600). A file of root's, or one in the service manager's folder of
/// credentials, may also be readable by its group (0440), so that root can give a secret to a service that
/// runs as another user.
result<std::vector<std::byte>> read_token(const std::string& path);

/// The token file that the service manager passes to this service (systemd: LoadCredential=outboard.token,
/// which is /etc/credstore/outboard.token on the machine); empty: there is none.
std::string token_credential(const std::function<const char*(const char*)>& variable);

/// Parses "8GiB", "512MiB", "65536".
std::optional<std::uint64_t> parse_size(std::string_view text);

}  // namespace outboard
