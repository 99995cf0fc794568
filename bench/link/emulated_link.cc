// emulated_link: emulates a link that this machine does not have (link.hh), and measures it.
// usage: emulated_link relay HOST:PORT ROUND_TRIP_US GIGABITS   prints the address at which it listens; ends
//          with its standard input. 0 µs, 0 Gb/s: nothing added, as fast as it goes.
//        emulated_link measure ROUND_TRIP_US GIGABITS [MEGABYTES]   prints rows (name, value, unit): what 64
//          bytes there and back and a stream take without the relay and through it.
#include <errno.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "link.hh"

namespace {

using namespace bench;

constexpr std::size_t message_size = 64;

bool whole(int socket, char* data, std::size_t size, bool receive) {
  while (size > 0) {
    const ssize_t n = receive ? ::recv(socket, data, size, 0) : ::send(socket, data, size, MSG_NOSIGNAL);
    if (n <= 0) return false;
    data += n, size -= static_cast<std::size_t>(n);
  }
  return true;
}

/// Answers each 64 bytes. After a message that begins with 's' it reads what follows, and answers its end.
void answer(int socket) {
  char message[message_size];
  std::vector<char> into(1 << 20);
  while (whole(socket, message, sizeof message, true)) {
    if (message[0] == 's') {
      while (::recv(socket, into.data(), into.size(), 0) > 0) {
      }
    }
    if (!whole(socket, message, sizeof message, false) || message[0] == 's') break;
  }
  ::close(socket);
}

void answer_all(int listener) {
  for (int client; (client = ::accept(listener, nullptr, nullptr)) >= 0;)
    std::thread(answer, client).detach();
}

/// The median microseconds that 64 bytes take there and back.
double round_trip(const std::string& address, int rounds) {
  const int socket = connect_to(address);
  char message[message_size] = "p";
  std::vector<double> times;
  for (int i = 0; i < rounds; ++i) {
    const nanoseconds began = now();
    if (!whole(socket, message, sizeof message, false)) break;
    // Waits without sleeping, as a front-end does.
    while (::recv(socket, message, sizeof message, MSG_DONTWAIT | MSG_PEEK) < 0 && errno == EAGAIN) {
      if (now() - began > 200'000) break;
    }
    if (!whole(socket, message, sizeof message, true)) break;
    times.push_back(static_cast<double>(now() - began) / 1e3);
  }
  ::close(socket);
  if (times.empty()) return -1;
  std::nth_element(times.begin(), times.begin() + static_cast<long>(times.size() / 2), times.end());
  return times[times.size() / 2];
}

/// The rate in GB/s of that many bytes over several connections, until the receiver has all.
double stream(const std::string& address, std::size_t bytes, int connections) {
  std::vector<std::thread> senders;
  const nanoseconds began = now();
  for (int n = 0; n < connections; ++n) {
    senders.emplace_back([&] {
      const int socket = connect_to(address);
      std::vector<char> block(1 << 20, 's');
      const std::size_t share = bytes / static_cast<std::size_t>(connections);
      for (std::size_t sent = 0; sent < share; sent += block.size())
        whole(socket, block.data(), std::min(block.size(), share - sent), false);
      ::shutdown(socket, SHUT_WR);
      whole(socket, block.data(), message_size, true);
      ::close(socket);
    });
  }
  for (auto& each : senders) each.join();
  return static_cast<double>(bytes) / static_cast<double>(now() - began);
}

void row(const char* name, double value, const char* unit) {
  std::printf("%s\t%.4g\t%s\n", name, value, unit);
  std::fflush(stdout);
}

int measure(const link_shape& shape, std::size_t bytes) {
  const int server = listen_at("127.0.0.1:0"), relay = listen_at("127.0.0.1:0");
  const std::string direct = address_of(server), through = address_of(relay);
  const pid_t answering = ::fork();
  if (answering == 0) answer_all(server), ::_exit(0);
  const pid_t relaying = ::fork();
  if (relaying == 0) serve(relay, direct, shape);
  const int rounds = std::clamp(static_cast<int>(200'000'000 / (shape.one_way * 2 + 20'000)), 50, 5000);
  row("bare_round_trip", round_trip(direct, rounds), "us");
  row("round_trip", round_trip(through, rounds), "us");
  for (int connections : {1, 4}) {
    const std::string suffix = "_stream_" + std::to_string(connections);
    row(("bare" + suffix).c_str(), stream(direct, bytes, connections), "GB/s");
    row(("link" + suffix).c_str(), stream(through, bytes, connections), "GB/s");
  }
  for (pid_t child : {relaying, answering}) ::kill(child, SIGKILL), ::waitpid(child, nullptr, 0);
  return 0;
}

int relay(const std::string& server, const link_shape& shape) {
  const int listener = listen_at("127.0.0.1:0");
  std::printf("tcp:%s\n", address_of(listener).c_str());
  std::fflush(stdout);
  std::thread([=] { serve(listener, server, shape); }).detach();
  for (char ignored; ::read(STDIN_FILENO, &ignored, 1) > 0;) {
  }
  std::_Exit(0);  // open connections end with the process
}

link_shape parsed(const char* round_trip_us, const char* gigabits) {
  return {static_cast<nanoseconds>(std::atof(round_trip_us) * 500), std::atof(gigabits) / 8};
}

}  // namespace

int main(int count, char** values) {
  const std::string verb = count > 1 ? values[1] : "";
  if (verb == "relay" && count == 5) return relay(values[2], parsed(values[3], values[4]));
  if (verb == "measure" && count >= 4)
    return measure(parsed(values[2], values[3]),
                   (count > 4 ? static_cast<std::size_t>(std::atoi(values[4])) : 512) << 20);
  std::fprintf(stderr,
               "usage: emulated_link relay HOST:PORT ROUND_TRIP_US GIGABITS |\n"
               "       emulated_link measure ROUND_TRIP_US GIGABITS [MEGABYTES]\n");
  return 2;
}
