// transport_measure: 64-byte ping-pong with and without spinning, and one big stream, for each transport, and
// for tcp: with TLS, too. The peer is a process of its own (a thread for loopback), as a worker is. Times are
// of the clock and, behind them, of the processors of both ends. Usage: transport_measure [ROUNDS [MEGABYTES
// [SCHEME]]]
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "base/schemes.hh"
#include "transport/list/list.hh"
#include "transport/loopback/loopback.hh"
#include "transport/tls/connection.hh"
#include "transport/tls/library.hh"

namespace outboard::transport {
namespace {

constexpr std::size_t message_size = 64;

bool receive_exactly(connection& c, std::span<std::byte> into) {
  while (!into.empty()) {
    io_result r = c.receive(into);
    if (r.status != io::done) return false;
    into = into.subspan(r.bytes);
  }
  return true;
}

bool send_exactly(connection& c, std::span<std::byte> from) {
  iovec part{from.data(), from.size()};
  return c.send({&part, 1}).status == io::done;
}

void echo(connection& c, std::chrono::microseconds spin) {
  c.set_spin(spin);
  std::vector<std::byte> message(message_size);
  while (receive_exactly(c, message) && send_exactly(c, message)) {
  }
}

// Takes `total` bytes, then answers with one.
void sink(connection& c, std::size_t total) {
  std::vector<std::byte> into(c.what().preferred_chunk);
  for (std::size_t have = 0; have < total;) {
    io_result r = c.receive(into);
    if (r.status != io::done) return;
    have += r.bytes;
  }
  send_exactly(c, std::span(into).first(1));
}

/// Of this process and of peers that have ended, in seconds.
double processor_time() {
  double sum = 0;
  for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage used{};
    ::getrusage(who, &used);
    for (const timeval& t : {used.ru_utime, used.ru_stime})
      sum += static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  }
  return sum;
}

void print_ping_pong(const std::string& name, connection& c, std::chrono::microseconds spin, int rounds) {
  c.set_spin(spin);
  std::vector<std::byte> message(message_size);
  std::vector<double> times;
  for (int i = 0; i < rounds; ++i) {
    auto start = clock::now();
    if (!send_exactly(c, message) || !receive_exactly(c, message)) return;
    times.push_back(std::chrono::duration<double, std::micro>(clock::now() - start).count());
  }
  std::sort(times.begin(), times.end());
  std::printf("%-9s 64 B round trip, spin %3ld us: median %6.1f us, p90 %6.1f us, p99 %6.1f us\n",
              name.c_str(), static_cast<long>(spin.count()), times[times.size() / 2],
              times[times.size() * 9 / 10], times[times.size() * 99 / 100]);
}

void print_stream(const std::string& name, connection& c, std::size_t total) {
  std::vector<std::byte> block(4 << 20, std::byte{1});
  auto start = clock::now();
  for (std::size_t sent = 0; sent < total; sent += block.size()) {
    iovec part{block.data(), std::min(block.size(), total - sent)};
    if (c.send({&part, 1}).status != io::done) return;
  }
  std::byte done;
  if (!receive_exactly(c, {&done, 1})) return;
  double seconds = std::chrono::duration<double>(clock::now() - start).count();
  std::printf("%-9s one stream of %zu MB: %.2f GB/s\n", name.c_str(), total >> 20,
              static_cast<double>(total) / seconds / 1e9);
}

/// One end of a connection, encrypted if there is something to do it.
std::unique_ptr<connection> one_end(std::unique_ptr<connection> raw, tls::library* encrypts,
                                    tls::tls_connection::side own) {
  if (!encrypts) return raw;
  const tls::secret key{};
  auto end =
      own == tls::tls_connection::side::client ? encrypts->start_client(key) : encrypts->start_server(key);
  return std::make_unique<tls::tls_connection>(std::move(raw), std::move(end), own);
}

/// Runs `serve` beside us on the other end of a fresh connection, and `use` on ours.
template <class Serve, class Use>
bool with_peer(transport& t, tls::library* encrypts, const std::string& address, bool own_process,
               Serve serve, Use use) {
  auto l = t.listen(address, {});
  if (!l) return std::fprintf(stderr, "%s\n", l.error().message.c_str()), false;
  std::string where = (*l)->url().substr(t.scheme().size() + 1);
  auto run = [&] {
    auto raw = (*l)->accept(no_deadline);
    if (!raw) return;
    const auto c = one_end(std::move(*raw), encrypts, tls::tls_connection::side::server);
    std::byte greeting{1};  // the server speaks first, as ours does
    if (send_exactly(*c, {&greeting, 1})) serve(*c);
  };
  std::fflush(stdout);
  pid_t child = own_process ? ::fork() : -1;
  if (child == 0) {
    run();
    ::_exit(0);
  }
  std::thread beside;
  if (!own_process) beside = std::thread(run);
  {
    auto raw = t.connect(where, no_deadline);
    if (!raw) return std::fprintf(stderr, "%s\n", raw.error().message.c_str()), false;
    const auto c = one_end(std::move(*raw), encrypts, tls::tls_connection::side::client);
    std::byte greeting;
    if (receive_exactly(*c, {&greeting, 1})) use(*c);
  }
  if (own_process) ::waitpid(child, nullptr, 0);
  if (beside.joinable()) beside.join();
  return true;
}

bool measure(transport& t, tls::library* encrypts, const std::string& address, bool own_process, int rounds,
             std::size_t bytes) {
  const std::string name = std::string(t.scheme()) + (encrypts ? "+TLS" : "");
  for (auto spin : {std::chrono::microseconds(0), std::chrono::microseconds(50)}) {
    const double before = processor_time();
    if (!with_peer(
            t, encrypts, address, own_process, [&](connection& c) { echo(c, spin); },
            [&](connection& c) { print_ping_pong(name, c, spin, rounds); }))
      return false;
    std::printf("%-9s   processors: %.1f us a round trip\n", name.c_str(),
                (processor_time() - before) / rounds * 1e6);
  }
  const double before = processor_time();
  if (!with_peer(
          t, encrypts, address, own_process, [&](connection& c) { sink(c, bytes); },
          [&](connection& c) { print_stream(name, c, bytes); }))
    return false;
  std::printf("%-9s   processors: %.3f s for a GB\n", name.c_str(),
              (processor_time() - before) / static_cast<double>(bytes) * 1e9);
  return true;
}

int run(int rounds, std::size_t bytes, const std::string& only) {
  const std::string path = "/tmp/outboard-measure-" + std::to_string(::getpid());
  registry all;
  bool ok = add_all(all, {}).ok();
  if (only.empty()) ok = ok && measure(*make_loopback(), nullptr, "measure", false, rounds, bytes);
  for (const scheme_traits& each : schemes()) {
    if (!only.empty() && each.name != only) continue;
    const std::string address = each.has_socket_file ? path : "127.0.0.1:0";
    ok = ok && measure(*all.find(each.name), nullptr, address, true, rounds, bytes);
    if (!each.leaves_host) continue;
    const auto encrypts = tls::load();
    if (encrypts.ok())
      ok = ok && measure(*all.find(each.name), *encrypts, address, true, rounds, bytes);
    else
      std::fprintf(stderr, "%s\n", encrypts.error().message.c_str());
  }
  return ok ? 0 : 1;
}

}  // namespace
}  // namespace outboard::transport

int main(int argc, char** argv) {
  int rounds = argc > 1 ? std::atoi(argv[1]) : 20000;
  int megabytes = argc > 2 ? std::atoi(argv[2]) : 2048;
  if (rounds < 1 || megabytes < 1) {
    std::fprintf(stderr, "usage: transport_measure [ROUNDS [MEGABYTES [SCHEME]]]\n");
    return 2;
  }
  return outboard::transport::run(rounds, static_cast<std::size_t>(megabytes) << 20, argc > 3 ? argv[3] : "");
}
