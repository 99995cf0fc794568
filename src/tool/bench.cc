// `outboard bench`: runs the measuring program (measure.cc) under `outboard run` and, where this machine has
// a driver and a GPU, natively, in turns, so that a machine that grows hot or busy does so for both.
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>

#include "backend/daemon/probe.hh"
#include "base/clean_line.hh"
#include "base/configuration/settings.hh"
#include "base/pages.hh"
#include "base/schemes.hh"
#include "bench/pacing.hh"
#include "bench/rows.hh"
#include "tool/ask.hh"
#include "tool/bench_page.hh"
#include "tool/child_output.hh"
#include "tool/exit_status.hh"
#include "tool/json_text.hh"
#include "tool/locate.hh"
#include "tool/private_backend.hh"
#include "tool/text.hh"
#include "tool/verbs.hh"
#include "tool/worker_command.hh"

namespace outboard::tool {
namespace {

using nlohmann::json;

/// One of the two columns: how the program is run, and what its runs gave.
struct way {
  std::vector<std::string> command;  ///< what stands before the program's own flags
  bool ours = true;
  json about;  ///< of the first run: device, library
  std::map<std::string, std::vector<double>> values;
  std::map<std::string, std::string> missing;
};

/// A sentence for the user, or empty where a child has said it already.
struct stop {
  int status = exit_failed;
  std::string why;
};

int tell(const stop& s) { return s.why.empty() ? s.status : complain(s.status, s.why); }

way native_way() { return {{own_path(), "measure", "--native"}, false, {}, {}, {}}; }

/// As its user would: `outboard run` with our flags.
way our_way(const common_flags& common, const std::optional<private_backend>& backend) {
  way w{{own_path(), "run"}, true, {}, {}, {}};
  for (const auto& [key, text] : common.settings) {
    if (key == "device") continue;  // the private back-end has it
    w.command.emplace_back(find_setting(key)->flag);
    w.command.push_back(text);
  }
  if (backend) w.command.insert(w.command.end(), {"--server", backend->url()});
  if (!common.config_file.empty()) w.command.insert(w.command.end(), {"--config", common.config_file});
  if (!common.library.empty()) w.command.insert(w.command.end(), {"--library", common.library});
  w.command.insert(w.command.end(), {"--", own_path(), "measure"});
  return w;
}

/// What one run of the program printed.
std::optional<stop> run_once(const way& w, double seconds, std::uint64_t bulk, json& said) {
  std::vector<std::string> command = w.command;
  command.insert(command.end(),
                 {"--seconds", fmt::format("{:.4f}", seconds), "--bulk", std::to_string(bulk)});
  const auto ran = run_for_output(std::move(command));
  if (!ran.ok()) return stop{exit_failed, ran.error().message};
  if (ran->status != exit_good) return stop{ran->status, ""};
  said = parse(ran->text);
  if (!get(said, "values").is_object()) return stop{exit_failed, "the measuring program printed no figures"};
  if (get(said, "ours") != w.ours) {
    return stop{exit_failed, std::string("the program that was to run ") +
                                 (w.ours ? "through Outboard" : "natively") + " found " +
                                 clean_line(json_text(get(said, "library")))};
  }
  return std::nullopt;
}

void keep(way& w, const json& said) {
  if (w.about.is_null()) w.about = said;
  for (const auto& [name, value] : said["values"].items()) {
    if (value.is_number() && value.get<double>() > 0) w.values[name].push_back(value.get<double>());
  }
  for (const auto& [name, why] : get(said, "missing").items()) {
    if (why.is_string()) w.missing[name] = clean_line(why.get<std::string>());
  }
}

double number(const json& j, const char* key) {
  const json& value = get(j, key);
  return value.is_number() ? value.get<double>() : 0;
}

/// How the time is cut, where one round takes at least so long: odd, so that the median is one of them.
int rounds_in(double seconds, double least) {
  return std::clamp((static_cast<int>(std::min(seconds / 2.5, seconds / least)) - 1) | 1, 3, 7);
}

struct plan {
  int rounds = 3;
  double end = 0;    ///< by bench::microseconds()
  double extra = 0;  ///< seconds that a round takes beyond what its rows are given: starts, large blocks
  std::uint64_t bulk = 0;

  /// Seconds for the rows of each way, where so many rounds are left.
  double share(int rounds_left, std::size_t ways) const {
    const double left = (end - bench::microseconds()) / 1e6 / rounds_left - extra;
    return std::max(0.05, left / static_cast<double>(ways));
  }
};

/// A first run of each way that does not count: code is kept, workers are warm, and it tells what is
/// affordable.
std::optional<stop> prepare(std::vector<way>& ways, double seconds, plan& p) {
  double least_rate = 1e9, whole = 0.001;
  p.end = bench::microseconds() + seconds * 1e6;
  std::uint64_t device_free = bench::most_bulk * 4;
  const double trial = std::min(1.0, seconds * 0.05);
  for (way& w : ways) {
    json said;
    const double began = bench::microseconds();
    if (auto stopped = run_once(w, trial, 0, said)) return stopped;
    const double took = (bench::microseconds() - began) / 1e6;
    p.extra += std::max(0.0, took - trial);
    whole += took;
    for (const char* row : {"in_pageable_1m", "out_pageable_1m"})
      least_rate = std::min(least_rate, number(said["values"], row));
    device_free = std::min(device_free, static_cast<std::uint64_t>(number(said, "free_memory")));
  }
  p.rounds = rounds_in(seconds, whole);
  const auto host_free = static_cast<std::uint64_t>(::sysconf(_SC_AVPHYS_PAGES)) * page_size();
  // Some twenty rows share the time.
  p.bulk = bench::choose_bulk(device_free, host_free, least_rate, p.share(p.rounds, ways.size()) / 10);
  return std::nullopt;
}

/// What the kernel says that the handshake of a TCP connection took on its way to the first server that takes
/// one and back: a round trip of the line, with nothing of ours in it.
class line_meter {
 public:
  explicit line_meter(const asking_means& means, const std::vector<std::string>& servers) : means_(means) {
    for (const std::string& url : servers) {
      const auto first = means.transports.connect(url, soon());
      if (!first.ok()) continue;
      // By the number, so that no name is looked up again.
      url_ = (*first)->describe();
      const std::string_view address = address_of(url_);
      if ((*first)->what().same_host || address.starts_with("127.") || address.starts_with("[::1]"))
        why_not_ = "the connection ends on this machine";
      return;
    }
    why_not_ = "no connection could be made for it";
  }

  const std::string& why_not() const { return why_not_; }

  std::optional<double> measure() {
    if (!why_not_.empty()) return std::nullopt;
    // Once a round: the server counts connections that say nothing.
    const auto connected = means_.transports.connect(url_, soon());
    if (!connected.ok()) return std::nullopt;
    const auto socket = (*connected)->detach();
    tcp_info info{};
    socklen_t size = sizeof info;
    if (!socket.ok() || ::getsockopt(socket->get(), IPPROTO_TCP, TCP_INFO, &info, &size) != 0 ||
        info.tcpi_rtt == 0)
      return std::nullopt;
    return static_cast<double>(info.tcpi_rtt);
  }

 private:
  static transport::deadline soon() { return transport::clock::now() + std::chrono::seconds(5); }

  const asking_means& means_;
  std::string url_, why_not_;
};

std::vector<bench::compared_row> rows_of(const std::vector<way>& ways) {
  std::vector<bench::compared_row> all;
  for (const bench::row& what : bench::rows()) {
    bench::compared_row r{&what, {}, {}};
    for (const way& w : ways) {
      const std::string name(what.name);
      const auto values = w.values.find(name);
      const auto why = w.missing.find(name);
      if (values != w.values.end()) (w.ours ? r.ours : r.native) = bench::summarize(values->second);
      if (why != w.missing.end()) (w.ours ? r.why_not_ours : r.why_not_native) = why->second;
    }
    all.push_back(std::move(r));
  }
  return all;
}

std::string device_text(const json& about) {
  const int v = static_cast<int>(number(about, "driver_version"));
  const json& name = get(about, "device");
  return fmt::format("{}, CUDA {}.{}", name.is_string() ? clean_line(name.get<std::string>()) : "?", v / 1000,
                     v % 1000 / 10);
}

std::string text_of(const json& j, const char* key) {
  const json& value = get(j, key);
  return value.is_string() ? clean_line(value.get<std::string>()) : "not told";
}

/// The server's own words of itself; its load goes among the machines'.
result<bench_server> describe_server(const asking_means& means, const config& c,
                                     const std::vector<std::string>& servers,
                                     std::vector<bench::machine_load>& loads) {
  bench_server s;
  const auto answer = ask_servers(means, servers, "doctor");
  if (!answer.ok()) return answer.error();
  const json about = parse(answer->json);
  const json& machine = get(about, "machine");
  const scheme_traits& scheme = traits_of(answer->url);
  s.url = answer->url;
  s.product = clean_line(answer->product);
  if (machine.is_object()) {
    s.host = fmt::format("{}: {}, {} cores, {}", text_of(machine, "host"), text_of(machine, "cpu"),
                         json_text(get(machine, "cores")), text_of(machine, "kernel"));
    // On one machine it is the same load.
    if (text_of(machine, "host") != look_at_machine().host)
      loads.push_back(
          {"The server's machine", number(machine, "load"), static_cast<int>(number(machine, "cores"))});
  } else {
    s.host = "it does not say what its machine is";
  }
  s.transport = std::string(scheme.name) + ":";
  if (scheme.shares_memory) s.transport += " memory that both ends share";
  if (stays_on_host(answer->url) && !scheme.shares_memory)
    s.transport +=
        c.rings ? " with memory that both ends share, unless the server has that off" : " sockets only";
  s.device = text_of(get(about, "device"), "description");
  return s;
}

/// Why nothing native is measured here; empty: it can be.
std::string why_no_native(const config& c) {
  const auto variable = [](const char* name) -> const char* { return ::getenv(name); };
  const auto own =
      backend::probe_device(worker_command_line(c), std::string(name(device_choice::vendor)), variable);
  if (!own.ok()) return own.error().message;
  return own->snapshot.devices.empty() ? "the driver here has no device" : "";
}

/// Puts the native rows of an earlier page beside ours.
void add_earlier(bench_page& page, const earlier_native& earlier) {
  page.native = earlier.native;
  for (bench::compared_row& r : page.rows) {
    const auto found = std::ranges::find(earlier.rows, r.what, &bench::compared_row::what);
    const bool other_size = r.what->about.find('{') != std::string_view::npos && earlier.bulk != page.bulk;
    if (found == earlier.rows.end()) continue;
    if (other_size)
      r.why_not_native = fmt::format("measured with {} MiB there", earlier.bulk / bench::mebibyte);
    else
      r.native = found->native;
  }
}

int write_page(const bench_page& page, const common_flags& common, const bench_flags& flags) {
  const std::string text = common.json      ? json_page(page)
                           : flags.markdown ? markdown_page(page)
                                            : text_page(page);
  if (flags.output.empty() || flags.output == "-") return print(text);
  std::ofstream file(flags.output);
  if (!(file << text << std::flush)) return complain(exit_failed, "cannot write " + flags.output);
  return exit_good;
}

/// Tells who waits at a terminal; a pipe or a log gets the page alone.
void tell_progress(int turn, int rounds, bool done) {
  if (!::isatty(STDERR_FILENO)) return;
  std::fprintf(stderr, done ? "\r\033[K" : "\rround %d of %d", turn, rounds);
  std::fflush(stderr);
}

std::string now_text() {
  return fmt::format("{:%Y-%m-%d %H:%M} UTC", fmt::gmtime(std::chrono::system_clock::now()));
}

/// The rounds: each way once, and the line.
std::optional<stop> measure(std::vector<way>& ways, plan& p, line_meter* line) {
  for (int turn = 1; turn <= p.rounds; ++turn) {
    tell_progress(turn, p.rounds, false);
    const double share = p.share(p.rounds - turn + 1, ways.size()), began = bench::microseconds();
    for (way& w : ways) {
      json said;
      if (auto stopped = run_once(w, share, p.bulk, said)) return stopped;
      keep(w, said);
      if (!w.ours || line == nullptr) continue;
      const auto took = line->measure();
      if (took) w.values[std::string(bench::line_row)].push_back(*took);
      if (!took) w.missing[std::string(bench::line_row)] = line->why_not();
    }
    p.extra = std::max(0.0, (bench::microseconds() - began) / 1e6 - share * static_cast<double>(ways.size()));
  }
  tell_progress(0, 0, true);
  return std::nullopt;
}

bench_page begin_page(const bench_flags& flags) {
  bench_page page;
  page.date = now_text();
  page.seconds = flags.seconds;
  page.here = look_at_machine();
  return page;
}

void finish_page(bench_page& page, const std::vector<way>& ways, const plan& p) {
  page.rounds = p.rounds;
  page.bulk = p.bulk;
  page.rows = rows_of(ways);
  for (bench::compared_row& r : page.rows) {
    if (p.bulk == 0 && r.what->about.find('{') != std::string_view::npos)
      r.why_not_ours = r.why_not_native = "one of 2 MiB would take too long";
  }
  for (const way& w : ways) {
    if (w.ours) {
      page.server.device = device_text(w.about) + ": " + page.server.device;
    } else {
      page.native.device = device_text(w.about);
      page.native.source = "here, by " + clean_line(get(w.about, "library").get<std::string>()) +
                           (page.has_ours ? ", in turns with ours" : "");
    }
  }
}

int bench_native_only(const common_flags& common, const bench_flags& flags, const config& c) {
  if (const std::string why = why_no_native(c); !why.empty())
    return complain(exit_failed, "nothing native can be measured here: " + why);
  bench_page page = begin_page(flags);
  page.has_ours = false;
  std::vector<way> ways{native_way()};
  plan p;
  if (auto stopped = prepare(ways, flags.seconds, p)) return tell(*stopped);
  if (auto stopped = measure(ways, p, nullptr)) return tell(*stopped);
  finish_page(page, ways, p);
  // The line is between two.
  std::erase_if(page.rows, [](const bench::compared_row& r) { return r.what->name == bench::line_row; });
  page.doubts = bench::doubts(
      page.rows, std::vector<bench::machine_load>{{"This machine", page.here.load, page.here.cores}});
  return write_page(page, common, flags);
}

constexpr const char* how_to_compare =
    "; to compare, `outboard bench --native --json --output FILE` on the machine with the GPU, then "
    "`outboard bench --compare FILE` here";

int bench_server_against(const common_flags& common, const bench_flags& flags, const config& c,
                         const std::optional<earlier_native>& earlier) {
  if (const auto libraries = find_library_folder(common.library); !libraries.ok())
    return complain(exit_failed, libraries.error().message);
  const auto means = prepare_to_ask(c);
  if (!means.ok()) return complain(exit_configuration, means.error().message);
  bench_page page = begin_page(flags);
  std::vector<bench::machine_load> loads{{"This machine", page.here.load, page.here.cores}};
  std::optional<private_backend> backend;
  std::vector<std::string> servers = c.servers;
  if (servers.empty()) {
    auto started = private_backend::start(c.device, common.config_file);
    if (!started.ok()) return complain(exit_failed, started.error().message);
    backend.emplace(std::move(*started));
    servers = {backend->url()};
  } else if (const status place = find_place(*means, servers); !place.ok()) {
    return complain(status_of(place.error()), place.error().message);
  }
  auto server = describe_server(*means, c, servers, loads);
  if (!server.ok()) return complain(status_of(server.error()), server.error().message);
  page.server = std::move(*server);
  if (backend) page.server.url = "a private back-end of this command";
  std::vector<way> ways;
  if (!earlier) {
    page.native.why_absent = why_no_native(c);
    if (page.native.why_absent.empty())
      ways.push_back(native_way());
    else
      page.native.why_absent += how_to_compare;
  }
  ways.push_back(our_way(common, backend));
  plan p;
  if (auto stopped = prepare(ways, flags.seconds, p)) return tell(*stopped);
  if (earlier && earlier->bulk != 0 && earlier->bulk < p.bulk) p.bulk = earlier->bulk;
  line_meter line(*means, servers);
  if (auto stopped = measure(ways, p, &line)) return tell(*stopped);
  finish_page(page, ways, p);
  if (earlier) add_earlier(page, *earlier);
  page.doubts = bench::doubts(page.rows, loads);
  if (const std::string ours = device_text(ways.back().about);
      !page.native.device.empty() && page.native.device != ours) {
    page.doubts.push_back(
        fmt::format("Natively it was {}; through Outboard: {}. Their difference is in all ratios.",
                    page.native.device, ours));
  }
  return write_page(page, common, flags);
}

}  // namespace

int verb_bench(const common_flags& common, const bench_flags& flags) {
  if (common.json && flags.markdown)
    return complain(exit_usage, "--json and --markdown are two forms of one page; leave out one of them");
  if (flags.native && (common.given("server") || common.given("device") || !flags.compare.empty()))
    return complain(exit_usage,
                    "--native measures this machine's own driver alone: no --server, --device or --compare");
  const auto c = load_with_flags(common);
  if (!c.ok()) return complain_of_configuration(c.error());
  if (flags.native) return bench_native_only(common, flags, *c);
  std::optional<earlier_native> earlier;
  if (!flags.compare.empty()) {
    std::ifstream file(flags.compare);
    if (!file) return complain(exit_failed, "cannot read " + flags.compare);
    auto read = read_native({std::istreambuf_iterator<char>(file), {}});
    if (!read.ok()) return complain(exit_failed, flags.compare + ": " + read.error().message);
    earlier = std::move(*read);
  }
  return bench_server_against(common, flags, *c, earlier);
}

}  // namespace outboard::tool
