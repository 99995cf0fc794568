// transport_measure: a ping-pong of 64 bytes with and without spinning, and one large stream, for each
// transport. The peer is a process of its own (a thread for loopback), as a worker is. Usage:
// transport_measure [ROUNDS [MEGABYTES]]
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "transport/loopback/loopback.hh"
#include "transport/shm/shm.hh"
#include "transport/tcp/tcp.hh"
#include "transport/tls/keyed_testing.hh"
#include "transport/transport.hh"
#include "transport/unix/unix.hh"

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

// Receives `total` bytes, then answers with one.
void sink(connection& c, std::size_t total) {
  std::vector<std::byte> into(c.what().preferred_chunk);
  for (std::size_t have = 0; have < total;) {
    io_result r = c.receive(into);
    if (r.status != io::done) return;
    have += r.bytes;
  }
  send_exactly(c, std::span(into).first(1));
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

/// Runs `serve` on the other end of a fresh connection, and `use` on ours at the same time.
template <class Serve, class Use>
bool with_peer(transport& t, const std::string& address, bool own_process, Serve serve, Use use) {
  auto l = t.listen(address, {});
  if (!l) return std::fprintf(stderr, "%s\n", l.error().message.c_str()), false;
  std::string where = (*l)->url().substr(t.scheme().size() + 1);
  auto run = [&] {
    auto c = (*l)->accept(no_deadline);
    std::byte greeting{1};  // the server speaks first, as in our protocol
    if (c && send_exactly(**c, {&greeting, 1})) serve(**c);
  };
  std::fflush(stdout);
  pid_t child = own_process ? ::fork() : -1;
  if (child == 0) {
    run();
    ::_exit(0);
  }
  std::thread peer;
  if (!own_process) peer = std::thread(run);
  {
    auto c = t.connect(where, no_deadline);
    if (!c) return std::fprintf(stderr, "%s\n", c.error().message.c_str()), false;
    std::byte greeting;
    if (receive_exactly(**c, {&greeting, 1})) use(**c);
  }
  if (own_process) ::waitpid(child, nullptr, 0);
  if (peer.joinable()) peer.join();
  return true;
}

bool measure(transport& t, const std::string& address, bool own_process, int rounds, std::size_t bytes,
             std::string name = {}) {
  if (name.empty()) name = t.scheme();
  for (auto spin : {std::chrono::microseconds(0), std::chrono::microseconds(50)})
    if (!with_peer(
            t, address, own_process, [&](connection& c) { echo(c, spin); },
            [&](connection& c) { print_ping_pong(name, c, spin, rounds); }))
      return false;
  return with_peer(
      t, address, own_process, [&](connection& c) { sink(c, bytes); },
      [&](connection& c) { print_stream(name, c, bytes); });
}

/// Moves what one end has to say to the other, and returns the microseconds that this one then works.
double give(tls::engine& from, tls::engine& to, std::vector<std::byte>& room) {
  tls::output said;
  from.take_output(said);
  room.assign(said.bytes().begin(), said.bytes().end());
  to.offer(room);
  const auto start = clock::now();
  if (to.shake() == tls::step::done) {
    std::byte nothing{};
    (void)to.read({&nothing, 1});  // takes tickets
  }
  return std::chrono::duration<double, std::micro>(clock::now() - start).count();
}

double server_time(tls::engine& up, tls::engine& down) {
  std::vector<std::byte> room;
  (void)up.shake();
  double time = give(up, down, room);
  give(down, up, room);
  time += give(up, down, room);
  give(down, up, room);
  return time;
}

/// What the beginning of an encrypted connection costs a server's gate, and then its worker. Both ends of
/// each handshake are in this thread, so the times are processor time.
void print_handshakes() {
  tls::library& by = **tls::load();
  const auto pem = by.make_certificate("measure");
  const auto server = by.make_server({*pem, *pem, {}, false});
  const auto client = by.make_client({});
  constexpr int rounds = 200;
  for (const auto* what : {"full", "resumed", "inner"}) {
    const bool inner = std::string_view(what) == "inner", resumed = std::string_view(what) == "resumed";
    std::vector<double> times;
    for (int i = 0; i < rounds; ++i) {
      const auto fresh = resumed ? client : by.make_client({});
      auto up = inner ? by.start_client({}) : (*fresh)->start("measure");
      auto down = inner ? by.start_server({}) : (*server)->start("");
      times.push_back(server_time(*up, *down));
    }
    std::sort(times.begin(), times.end());
    std::printf("tls       %-7s handshake, server's side: median %5.0f us, p90 %5.0f us\n", what,
                times[rounds / 2], times[rounds * 9 / 10]);
  }
}

int run(int rounds, std::size_t bytes) {
  std::string path = "/tmp/outboard-measure-" + std::to_string(::getpid());
  auto loopback = make_loopback();
  auto unix_sockets = make_unix();
  auto shm = make_shm();
  auto tcp = make_tcp();
  bool ok = measure(*loopback, "measure", false, rounds, bytes) &&
            measure(*unix_sockets, path, true, rounds, bytes) && measure(*shm, path, true, rounds, bytes) &&
            measure(*tcp, "127.0.0.1:0", true, rounds, bytes);
  // Not every build has TLS.
  if (ok && tls::load().ok()) {
    auto encrypted = tls::make_keyed(make_tcp());
    ok = measure(*encrypted, "127.0.0.1:0", true, rounds, bytes, "tls");
    print_handshakes();
  }
  return ok ? 0 : 1;
}

}  // namespace
}  // namespace outboard::transport

int main(int argc, char** argv) {
  int rounds = argc > 1 ? std::atoi(argv[1]) : 20000;
  int megabytes = argc > 2 ? std::atoi(argv[2]) : 2048;
  if (rounds < 1 || megabytes < 1) {
    std::fprintf(stderr, "usage: transport_measure [ROUNDS [MEGABYTES]]\n");
    return 2;
  }
  return outboard::transport::run(rounds, static_cast<std::size_t>(megabytes) << 20);
}
