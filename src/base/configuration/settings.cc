#include "base/configuration/settings.hh"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "base/joined.hh"
#include "base/schemes.hh"

namespace outboard {
namespace {

/// What stands in front of a row: its place in the file and elsewhere, and who reads it.
struct place {
  std::string_view section, name, variable, flag;
  unsigned readers;
};

constexpr unsigned of_program = static_cast<unsigned>(reader::program);
constexpr unsigned of_server = static_cast<unsigned>(reader::server);
constexpr unsigned of_worker = reader::server | reader::worker;
constexpr unsigned of_all = reader::program | reader::server | reader::worker;

/// A row whose two functions are given by types without state.
template <class Set, class Text>
constexpr setting row(const place& at, std::string_view accepted, std::string_view meaning, value_form form,
                      Set, Text) {
  return {at.section,
          at.name,
          at.variable,
          at.flag,
          at.readers,
          accepted,
          meaning,
          [](config& c, const given_value& v) -> status {
            if constexpr (std::is_same_v<decltype(Set{}(c, v)), status>) {
              return Set{}(c, v);
            } else {
              return Set{}(c, v) ? status{} : failure("");
            }
          },
          [](const config& c) -> std::string { return Text{}(c); },
          form};
}

template <class Field>
constexpr setting switch_row(const place& at, std::string_view meaning, Field) {
  return row(
      at, "true, false", meaning, value_form::flag,
      [](config& c, const given_value& v) {
        const auto flag = flag_in(v);
        if (flag) Field{}(c) = *flag;
        return flag.has_value();
      },
      [](const config& c) { return std::string(Field{}(c) ? "1" : "0"); });
}

/// "a number from LEAST to MOST", for as long as the program lives.
template <std::int64_t Least, std::int64_t Most>
class range_text {
  static constexpr std::string_view head = "a number from ", between = " to ";
  static constexpr std::size_t digits(std::int64_t number) {
    return number < 10 ? 1 : 1 + digits(number / 10);
  }
  static constexpr void put(char* end, std::int64_t number) {
    do *--end = static_cast<char>('0' + number % 10);
    while ((number /= 10) != 0);
  }
  static constexpr auto letters = [] {
    std::array<char, head.size() + digits(Least) + between.size() + digits(Most)> all{};
    char* at = std::copy(head.begin(), head.end(), all.data()) + digits(Least);
    put(at, Least);
    put(std::copy(between.begin(), between.end(), at) + digits(Most), Most);
    return all;
  }();

 public:
  static constexpr std::string_view text{letters.data(), letters.size()};
};

template <std::int64_t Least, std::int64_t Most, class Field>
constexpr setting number_row(const place& at, std::string_view meaning, Field) {
  return row(
      at, range_text<Least, Most>::text, meaning, value_form::number,
      [](config& c, const given_value& v) {
        const auto number = number_in(v);
        if (!number || *number < Least || *number > Most) return false;
        Field{}(c) = static_cast<std::uint32_t>(*number);
        return true;
      },
      [](const config& c) { return std::to_string(Field{}(c)); });
}

template <std::uint64_t Least, class Field>
constexpr setting size_row(const place& at, std::string_view accepted, std::string_view meaning, Field) {
  return row(
      at, accepted, meaning, value_form::size,
      [](config& c, const given_value& v) {
        const auto size = size_in(v);
        if (!size || *size < Least || *size > (1ull << 44)) return false;
        Field{}(c) = *size;
        return true;
      },
      [](const config& c) { return exact_size_text(Field{}(c)); });
}

template <class Field>
constexpr setting path_row(const place& at, std::string_view meaning, Field) {
  return row(
      at, "a path", meaning, value_form::path,
      [](config& c, const given_value& v) {
        const auto path = text_in(v);
        if (!path || path->empty()) return false;
        Field{}(c) = resolved_path(*path, v.folder);
        return true;
      },
      [](const config& c) { return Field{}(c); });
}

constexpr std::string_view before_urls = "one or a list of URLs of servers: ";
constexpr auto accepted_urls = [] {
  std::array<char, before_urls.size() + all_url_forms.size()> text{};
  std::ranges::copy(all_url_forms, std::ranges::copy(before_urls, text.begin()).out);
  return text;
}();

template <class Field>
constexpr setting urls_row(const place& at, std::string_view meaning, Field) {
  return row(
      at, {accepted_urls.data(), accepted_urls.size()}, meaning, value_form::urls,
      [](config& c, const given_value& v) -> status {
        const auto texts = texts_in(v);
        if (!texts || texts->empty()) return failure("");
        std::vector<std::string> urls;
        for (const std::string& text : *texts) {
          const auto some = parse_endpoints(text);
          if (!some.ok()) return some.error();
          urls.insert(urls.end(), some->begin(), some->end());
        }
        Field{}(c) = std::move(urls);
        return {};
      },
      [](const config& c) { return joined(Field{}(c), ","); });
}

bool set_level(config& c, const given_value& v) {
  const auto level = log::parse_level(text_in(v).value_or(""));
  if (!level) return false;
  c.log = *level;
  return c.log_given = true;
}

bool set_format(config& c, const given_value& v) {
  const auto text = text_in(v).value_or("");
  if (text != "console" && text != "json") return false;
  c.format = text == "json" ? log_format::json : log_format::console;
  return true;
}

bool set_device(config& c, const given_value& v) {
  const auto device = parse_device(text_in(v).value_or(""));
  if (device) c.device = *device;
  return device.has_value();
}

/// "-" is no path, and a "+" stands before one.
bool set_report(std::string& file, const given_value& v) {
  const auto path = text_in(v);
  const std::string mark = path && path->starts_with('+') ? "+" : "";
  if (!path || path->size() == mark.size()) return false;
  file = *path == "-" ? *path : mark + resolved_path(path->substr(mark.size()), v.folder);
  return true;
}

bool set_users(config& c, const given_value& v) {
  auto texts = texts_in(v);
  if (!texts) return false;
  c.allow_users = std::move(*texts);
  return true;
}

bool set_visible(config& c, const given_value& v) {
  auto list = texts_in(v);
  if (!list || list->empty()) return false;
  for (auto at = list->begin(); at != list->end(); ++at) {
    if (at->empty() || std::find(list->begin(), at, *at) != at) return false;
  }
  c.shape.visible = std::move(*list);
  return true;
}

/// What programs print and compare: one line, and no longer than the vendor's libraries have room for.
bool set_name(config& c, const given_value& v) {
  constexpr std::size_t room = 95;
  const auto text = text_in(v);
  const auto printable = [](unsigned char one) { return one >= ' ' && one != 127; };
  if (!text || text->empty() || text->size() > room || !std::ranges::all_of(*text, printable)) return false;
  std::string rest = *text;
  if (const std::size_t at = rest.find(board_name_mark); at != rest.npos)
    rest.erase(at, board_name_mark.size());
  if (rest.find_first_of("{}") != rest.npos) return false;
  c.shape.name = *text;
  return true;
}

constexpr std::array<std::string_view, 4> confine_words{"auto", "require", "off", "try"};

/// The value that stands for one of the words.
template <class Choice>
std::optional<Choice> choice_in(const given_value& v, std::span<const std::string_view> words) {
  const auto at = std::ranges::find(words, text_in(v).value_or(""));
  return at == words.end() ? std::nullopt : std::optional(static_cast<Choice>(at - words.begin()));
}

bool set_confine(config& c, const given_value& v) {
  const auto choice = choice_in<confine_choice>(v, confine_words);
  if (choice) c.confine = *choice;
  return choice.has_value();
}

constexpr std::array<std::string_view, 3> cgroup_words{"auto", "require", "off"};

bool set_cgroup(config& c, const given_value& v) {
  const auto choice = choice_in<cgroup_choice>(v, cgroup_words);
  if (choice) c.cgroup = *choice;
  return choice.has_value();
}

constexpr std::array<std::string_view, 4> tls_words{"auto", "require", "allow", "off"};

bool set_tls(config& c, const given_value& v) {
  const auto choice = choice_in<tls_choice>(v, tls_words);
  if (choice) c.tls = *choice;
  return choice.has_value();
}

/// Paths of the server; "/" would be everything.
template <class Field>
constexpr setting paths_row(const place& at, std::string_view meaning, Field) {
  return row(
      at, "a list of paths, none of them \"/\"", meaning, value_form::texts,
      [](config& c, const given_value& v) {
        auto list = texts_in(v);
        if (!list) return false;
        for (std::string& path : *list) {
          path = resolved_path(path, v.folder);
          if (path.find_first_not_of("/.") == path.npos || path.front() != '/') return false;
        }
        Field{}(c) = std::move(*list);
        return true;
      },
      [](const config& c) { return joined(Field{}(c), ","); });
}

bool set_capability(config& c, const given_value& v) {
  const std::string text = text_in(v).value_or("");
  std::uint32_t value = 0;
  bool fits = text.size() >= 3 && text.size() <= 4;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool digit = text[i] >= '0' && text[i] <= '9';
    fits = fits && (i + 2 == text.size() ? text[i] == '.' : digit);
    if (digit) value = value * 10 + static_cast<std::uint32_t>(text[i] - '0');
  }
  if (!fits || value < 50 || value > 120) return false;
  c.cpu.capability = value;
  return true;
}

std::string capability_text(const config& c) {
  return c.cpu.capability == 0
             ? ""
             : std::to_string(c.cpu.capability / 10) + "." + std::to_string(c.cpu.capability % 10);
}

constexpr std::string_view disk_sizes = "a size like \"2GiB\", up to 16TiB; 0: none";

// clang-format off
constexpr setting rows[]{
    // This machine borrows GPUs.
    urls_row({"", "server", "OUTBOARD_SERVER", "--server", of_program},
             "servers, tried in this order (OpenCL programs see the platforms of all); without one, `outboard run` starts a private server",
             [](auto& c) -> auto& { return c.servers; }),
    path_row({"", "token_file", "OUTBOARD_TOKEN_FILE", "--token-file", of_program | of_server},
             "file (mode 0600) with the token: a client proves with it that it may connect, and clients of `serve` must know it",
             [](auto& c) -> auto& { return c.token_file; }),
    switch_row({"", "munge", "OUTBOARD_MUNGE", "", of_program | of_server},
             "true: a program without a token shows servers over networks by MUNGE which user it is; a server lets in who does, and asks for that or a token",
             [](auto& c) -> auto& { return c.munge.on; }),
    path_row({"", "munge_socket", "OUTBOARD_MUNGE_SOCKET", "", of_program | of_server},
             "the socket of munged; default: where MUNGE's library looks",
             [](auto& c) -> auto& { return c.munge.socket; }),
    row({"", "tls", "OUTBOARD_TLS", "--tls", of_program | of_server}, "auto, require, allow, off",
        "which connections over tcp: are encrypted: those beyond this machine; all; as the client wishes (server); none, for networks that are trusted", value_form::text,
        [](config& c, const given_value& v) { return set_tls(c, v); }, [](const config& c) { return std::string(name(c.tls)); }),
    number_row<1, most_wait_seconds>({"", "wait_seconds", "OUTBOARD_WAIT_SECONDS", "--wait", of_program},
             "how many seconds a program waits for its session on a busy server",
             [](auto& c) -> auto& { return c.wait_seconds; }),
    row({"", "trace", "OUTBOARD_TRACE", "--trace", of_program}, "a path",
        "file that gets a line for each call of the program; %p in it: the process's number; -: stderr; + before it: never over another process's", value_form::path,
        [](config& c, const given_value& v) { return set_report(c.trace, v); }, [](const config& c) { return c.trace; }),
    row({"", "profile", "OUTBOARD_PROFILE", "--profile", of_program}, "a path",
        "file that gets what the program's threads and the device did when, and its NVTX ranges, for Perfetto; %p and + as for trace", value_form::path,
        [](config& c, const given_value& v) { return set_report(c.profile, v); }, [](const config& c) { return c.profile; }),
    switch_row({"", "profile_summary", "OUTBOARD_PROFILE_SUMMARY", "--profile-summary", of_program},
             "true: at its end the program says on stderr which kernels, copies and NVTX ranges took how long, and what waited",
             [](auto& c) -> auto& { return c.profile_summary; }),
    switch_row({"", "cupti", "OUTBOARD_CUPTI", "", of_program},
             "false: `outboard run` does not put its libcupti before NVIDIA's, and profilers in programs see no kernels",
             [](auto& c) -> auto& { return c.cupti; }),
    switch_row({"", "sync", "OUTBOARD_SYNC", "", of_program}, "true: each call waits for its result, for debugging",
             [](auto& c) -> auto& { return c.sync; }),
    switch_row({"", "find_addresses", "OUTBOARD_FIND_ADDRESSES", "", of_program},
             "false: kernels reach page-locked memory in whatever form they get its address, and all of it is sent for each",
             [](auto& c) -> auto& { return c.find_addresses; }),
    switch_row({"", "concurrent_managed", "OUTBOARD_CONCURRENT_MANAGED", "", of_program},
             "false: programs see devices that cannot use managed memory while the host does",
             [](auto& c) -> auto& { return c.concurrent_managed; }),
    row({"", "device", "OUTBOARD_DEVICE", "--device", of_server}, "auto, vendor, cpu",
        "what executes calls: the driver if it finds a GPU, else the PTX interpreter; always the driver; always the interpreter", value_form::text,
        [](config& c, const given_value& v) { return set_device(c, v); }, [](const config& c) { return std::string(name(c.device)); }),
    row({"", "log", "OUTBOARD_LOG", "--log-level", of_all}, "off, error, warn, info, debug",
        "how much is logged on stderr; the default of `serve` is info", value_form::text,
        [](config& c, const given_value& v) { return set_level(c, v); }, [](const config& c) { return std::string(log::name(c.log)); }),
    switch_row({"", "rings", "OUTBOARD_RINGS", "", of_program | of_server},
             "false: no shared memory with a peer on this machine, sockets only", [](auto& c) -> auto& { return c.rings; }),
    number_row<0, most_data_connections>({"", "data_connections", "OUTBOARD_DATA_CONNECTIONS", "", of_program | of_server},
             "connections in each direction for large copies, where memory is not shared; a program uses up to half its number of cores, or 4; 0: none",
             [](auto& c) -> auto& { return c.data_connections; }),
    switch_row({"", "compression", "OUTBOARD_COMPRESSION", "", of_program | of_server},
             "large copies over tcp: are compressed where that makes them faster; false: never", [](auto& c) -> auto& { return c.compression; }),
    switch_row({"", "module_cache", "OUTBOARD_MODULE_CACHE", "", of_program | of_server},
             "over slow links, the second start of a program sends hashes instead of its kernels' code; false: never",
             [](auto& c) -> auto& { return c.module_cache; }),

    // This machine lends its GPUs.
    urls_row({"", "listen", "", "--listen", of_server}, "where `serve` listens; default: on the default socket",
             [](auto& c) -> auto& { return c.listen; }),
    path_row({"", "tokens_file", "", "--tokens-file", of_server},
             "file of the named tokens, which `outboard token` writes; each names who comes over a network with it",
             [](auto& c) -> auto& { return c.tokens_file; }),
    switch_row({"", "insecure", "", "--insecure", of_server}, "true: tcp: lets other machines in without a token",
             [](auto& c) -> auto& { return c.insecure; }),
    row({"", "allow_users", "", "", of_server}, "a list of user names or numbers, or \"*\"",
        "who may use the local sockets, or come by MUNGE, besides their owner; \"*\" for everybody", value_form::texts,
        [](config& c, const given_value& v) { return set_users(c, v); }, [](const config& c) { return joined(c.allow_users, ","); }),
    row({"", "log_format", "", "--log-format", of_worker}, "console, json", "how `serve` writes its log", value_form::text,
        [](config& c, const given_value& v) { return set_format(c, v); },
        [](const config& c) { return std::string(c.format == log_format::json ? "json" : "console"); }),
    path_row({"", "audit_file", "", "--audit-file", of_server},
             "file that gets a line of JSON for each session that begins or ends, each refusal, and what administrators do; default: none",
             [](auto& c) -> auto& { return c.audit_file; }),

    number_row<1, 100000>({"limits", "sessions", "", "", of_server},
             "sessions that run or wait for a place; more are refused", [](auto& c) -> auto& { return c.limits.sessions; }),
    number_row<0, 100000>({"limits", "running", "", "", of_server},
             "sessions that run at once; later ones wait; 0: all run", [](auto& c) -> auto& { return c.limits.running; }),
    number_row<1, 100000>({"limits", "unauthenticated", "", "", of_server},
             "connections that have not yet said hello; above it the oldest goes of the source that has the most", [](auto& c) -> auto& { return c.limits.unauthenticated; }),
    number_row<1, 600>({"limits", "hello_seconds", "", "", of_server},
             "how many seconds a connection may take for its hello", [](auto& c) -> auto& { return c.limits.hello_seconds; }),
    number_row<0, 86400>({"limits", "drain_seconds", "", "--drain", of_server},
             "how many seconds SIGTERM waits for running sessions", [](auto& c) -> auto& { return c.limits.drain_seconds; }),
    number_row<0, 86400>({"limits", "linger_seconds", "", "", of_server},
             "how many seconds a session outlives the loss of its link to a client over a network, which may resume it; 0: it ends at once",
             [](auto& c) -> auto& { return c.limits.linger_seconds; }),
    number_row<1, 86400>({"limits", "keepalive_seconds", "", "", of_worker},
             "after so many seconds of silence a dead peer of tcp: is noticed", [](auto& c) -> auto& { return c.limits.keepalive_seconds; }),

    number_row<0, 64>({"pool", "per_key", "", "", of_server},
             "idle warm workers for each device and driver environment; 0: none", [](auto& c) -> auto& { return c.pool.per_key; }),
    number_row<0, 64>({"pool", "burst", "", "", of_server},
             "the same while sessions begin quickly one after the other: as many as began in the last 30 s, up to this number", [](auto& c) -> auto& { return c.pool.burst; }),
    number_row<0, 1024>({"pool", "most", "", "", of_server},
             "idle warm workers altogether; each holds some hundred MB of GPU memory", [](auto& c) -> auto& { return c.pool.most; }),
    number_row<1, 10080>({"pool", "idle_minutes", "", "", of_server},
             "after so many minutes an idle worker is ended if no session needed one like it", [](auto& c) -> auto& { return c.pool.idle_minutes; }),

    path_row({"cache", "directory", "", "", of_server},
             "where module images are kept; default: $CACHE_DIRECTORY (systemd), else $XDG_CACHE_HOME or ~/.cache",
             [](auto& c) -> auto& { return c.cache.directory; }),
    size_row<0>({"cache", "size", "", "", of_server}, disk_sizes,
             "limit for module images; above it the identity that has most loses what it has not used for longest", [](auto& c) -> auto& { return c.cache.size; }),

    path_row({"compiler_cache", "directory", "", "", of_server},
             "where OpenCL's compilers keep what later sessions of the same identity find; default: next to the module images",
             [](auto& c) -> auto& { return c.compiler_cache.directory; }),
    size_row<0>({"compiler_cache", "size", "", "", of_server}, disk_sizes,
             "limit for all identities together; the least recently used is removed first", [](auto& c) -> auto& { return c.compiler_cache.size; }),
    size_row<0>({"compiler_cache", "per_identity", "", "", of_server}, disk_sizes,
             "limit for one identity", [](auto& c) -> auto& { return c.compiler_cache.per_identity; }),

    path_row({"certificates", "server", "", "", of_server},
             "the server's certificate with its chain, in PEM; read again when it changes; default: one of its own, whose key clients know by its fingerprint",
             [](auto& c) -> auto& { return c.certificates.server; }),
    path_row({"certificates", "server_key", "", "", of_server},
             "the private key of that certificate; default: it is in the same file",
             [](auto& c) -> auto& { return c.certificates.server_key; }),
    path_row({"certificates", "own_key", "", "", of_server},
             "where the server keeps the key that it makes when it has no certificate; default: server_key.pem where the service's or the user's state is",
             [](auto& c) -> auto& { return c.certificates.own_key; }),
    path_row({"certificates", "client_authority", "", "", of_server},
             "certificates of those who sign clients' certificates; such a client needs no token",
             [](auto& c) -> auto& { return c.certificates.client_authority; }),
    path_row({"certificates", "client", "OUTBOARD_CLIENT_CERTIFICATE", "", of_program},
             "the certificate with its chain, in PEM, that this user shows to servers",
             [](auto& c) -> auto& { return c.certificates.client; }),
    path_row({"certificates", "client_key", "OUTBOARD_CLIENT_KEY", "", of_program},
             "the private key of that certificate; default: it is in the same file",
             [](auto& c) -> auto& { return c.certificates.client_key; }),
    path_row({"certificates", "server_authority", "OUTBOARD_SERVER_AUTHORITY", "", of_program},
             "certificates of those who sign servers' certificates; a server must then have the name of its URL; default: fingerprints decide",
             [](auto& c) -> auto& { return c.certificates.server_authority; }),
    path_row({"certificates", "known_servers", "OUTBOARD_KNOWN_SERVERS", "", of_program},
             "file with the fingerprints of servers; default: ~/.config/outboard/known_servers",
             [](auto& c) -> auto& { return c.certificates.known_servers; }),

    row({"worker", "confine", "", "", of_server}, "auto, require, try, off",
        "how workers confine themselves: \"require\": completely, or the session is refused; \"try\": as far as the kernel can; \"off\": not at all; \"auto\": CUDA's on the cpu device as \"require\", all others as \"try\"; the daemon's helpers follow it, where \"auto\" is \"try\"", value_form::text,
        [](config& c, const given_value& v) { return set_confine(c, v); },
        [](const config& c) { return std::string(name(c.confine)); }),
    paths_row({"worker", "reads", "", "", of_worker},
              "what confined workers may read and run beside what drivers need, and the NVML helper may read: files, or folders with all below them",
              [](auto& c) -> auto& { return c.confined_reads; }),
    paths_row({"worker", "writes", "", "", of_worker},
              "folders that are there, in which confined workers may also write",
              [](auto& c) -> auto& { return c.confined_writes; }),
    row({"worker", "cgroup", "", "", of_server}, "auto, require, off",
        "whether each worker gets a control group (cgroup v2) of its own, which limits its processes, and its memory by `host_memory` of its identity: \"auto\": where the server has a group to divide (Delegate=yes); \"require\": else it does not start", value_form::text,
        [](config& c, const given_value& v) { return set_cgroup(c, v); },
        [](const config& c) { return std::string(name(c.cgroup)); }),

    row({"devices", "visible", "", "", of_server}, "a list of indices (\"0\") and beginnings of UUIDs (\"GPU-1a2b\"), each device once",
        "which devices are lent, in the order that clients see; default: all", value_form::texts,
        [](config& c, const given_value& v) { return set_visible(c, v); }, [](const config& c) { return joined(c.shape.visible, ","); }),
    row({"devices", "name", "", "", of_worker}, "a line of 1 to 95 bytes, in which {name} once stands for the board's own name",
        "what programs print; default: the board's own name", value_form::text,
        [](config& c, const given_value& v) { return set_name(c, v); }, [](const config& c) { return c.shape.name; }),
    // Less than 64 MiB and no runtime starts: contexts, printf buffers, a first block.
    size_row<64u << 20>({"devices", "memory", "", "", of_worker}, "a size like \"8GiB\", from 64MiB to 16TiB",
             "how much memory of a device one session may hold, and sees; default: all",
             [](auto& c) -> auto& { return c.shape.memory; }),

    row({"cpu", "compute_capability", "", "", of_worker}, "a text from \"5.0\" to \"12.0\"",
        "the compute capability that kernels see; of a program's PTX the highest version up to it is taken, else the lowest above it; default: 7.5", value_form::text,
        [](config& c, const given_value& v) { return set_capability(c, v); }, [](const config& c) { return capability_text(c); }),
    size_row<16u << 20>({"cpu", "memory", "", "", of_worker}, "a size like \"4GiB\", from 16MiB to 16TiB",
             "memory of the cpu device; default: half of this machine's", [](auto& c) -> auto& { return c.cpu.memory; }),
    number_row<0, 4096>({"cpu", "cores", "", "", of_worker},
             "threads that execute kernels; 0: one for each processor", [](auto& c) -> auto& { return c.cpu.cores; }),
    number_row<0, 86400>({"cpu", "kernel_timeout_seconds", "", "", of_worker},
             "a kernel that runs for more seconds fails; 0: no limit", [](auto& c) -> auto& { return c.cpu.kernel_timeout_seconds; }),
};
// clang-format on

}  // namespace

std::string_view name(tls_choice c) { return tls_words[static_cast<std::size_t>(c)]; }
std::string_view name(cgroup_choice c) { return cgroup_words[static_cast<std::size_t>(c)]; }
std::string_view name(confine_choice c) { return confine_words[static_cast<std::size_t>(c)]; }

std::string resolved_path(const std::string& path, const std::string& folder) {
  const char* home = std::getenv("HOME");
  if (path.starts_with("~/")) return home ? home + path.substr(1) : path;
  return path[0] == '/' || folder.empty() ? path : folder + "/" + path;
}

std::string setting::key() const {
  return section.empty() ? std::string(name) : std::string(section).append(".").append(name);
}

std::span<const setting> all_settings() { return rows; }

const setting* find_setting(std::string_view key) {
  const std::size_t dot = key.find('.');
  return dot == key.npos ? find_setting("", key) : find_setting(key.substr(0, dot), key.substr(dot + 1));
}

const setting* find_setting(std::string_view section, std::string_view name) {
  const auto* const at =
      std::ranges::find_if(rows, [&](const setting& s) { return s.section == section && s.name == name; });
  return at == std::end(rows) ? nullptr : at;
}

status set_by_text(config& c, const setting& s, std::string_view what, std::string_view text) {
  const status set = s.set(c, {.is = std::string(text), .untyped = true, .folder = ""});
  if (set.ok()) return {};
  if (!set.error().message.empty()) return failure(std::string(what) + ": " + set.error().message);
  return failure(std::string(what) + " is \"" + std::string(text) +
                 "\", accepted: " + std::string(s.accepted));
}

std::vector<std::pair<const setting*, std::string>> changed_settings(const config& c, reader by) {
  const config untouched;
  std::vector<std::pair<const setting*, std::string>> changed;
  for (const setting& s : rows) {
    std::string text = s.is_for(by) ? s.text(c) : "";
    if (s.is_for(by) && text != s.text(untouched)) changed.emplace_back(&s, std::move(text));
  }
  return changed;
}

}  // namespace outboard
