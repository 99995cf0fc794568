#include "transport/tcp/tcp.hh"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <thread>
#include <vector>

#include "transport/url.hh"

// What only tcp: has: names, ports, who may listen, and peers that vanish. The protocol suite tests the rest.
namespace outboard::transport {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;

deadline soon() { return clock::now() + 20s; }

std::string address_of(const listener& l) { return l.url().substr(4); }

struct ends {
  std::unique_ptr<connection> client, server;
};

ends make_ends(transport& t) {
  auto l = t.listen("127.0.0.1:0", {});
  EXPECT_TRUE(l) << l.error().message;
  auto up = t.connect(address_of(**l), soon());
  EXPECT_TRUE(up) << up.error().message;
  auto down = (*l)->accept(soon());
  EXPECT_TRUE(down) << down.error().message;
  return {std::move(*up), std::move(*down)};
}

std::string refusal(std::string_view address, bool foreign = false) {
  auto l = make_tcp()->listen(address, {.allow_foreign_hosts = foreign});
  return l ? "listens" : l.error().message;
}

std::string connect_refusal(std::string_view address, deadline until = soon()) {
  auto c = make_tcp()->connect(address, until);
  return c ? "connected" : c.error().message;
}

bool has_ipv6() { return make_tcp()->listen("[::1]:0", {}).ok(); }

TEST(tcp, listens_beyond_this_host_only_when_asked) {
  for (std::string_view open : {"0.0.0.0:0", "[::]:0", "[::ffff:0.0.0.0]:0"})
    EXPECT_THAT(refusal(open), AllOf(HasSubstr("other machines"), HasSubstr("--insecure"),
                                     HasSubstr("token file"), HasSubstr("127.0.0.1")))
        << open;
  EXPECT_EQ(refusal("0.0.0.0:0", true), "listens");
  std::vector<std::string_view> closed = {"127.0.0.1:0", "127.9.9.9:0", "localhost:0"};
  if (has_ipv6()) closed.insert(closed.end(), {"[::1]:0", "[::ffff:127.0.0.1]:0"});
  for (std::string_view at : closed) EXPECT_EQ(refusal(at), "listens") << at;
}

TEST(tcp, the_url_has_the_port_that_was_bound) {
  auto t = make_tcp();
  auto l = t->listen("127.0.0.1:0", {});
  ASSERT_TRUE(l);
  auto where = parse_host_port(address_of(**l));
  ASSERT_TRUE(where);
  EXPECT_EQ(where->host, "127.0.0.1");
  EXPECT_NE(where->port, 0);
  EXPECT_TRUE(t->connect("localhost:" + std::to_string(where->port), soon()));  // whatever else localhost is
}

TEST(tcp, a_port_is_free_again_at_once) {
  auto t = make_tcp();
  auto l = t->listen("127.0.0.1:0", {});
  ASSERT_TRUE(l);
  std::string address = address_of(**l);
  auto up = t->connect(address, soon());
  auto down = (*l)->accept(soon());
  ASSERT_TRUE(up && down);
  down->reset();  // the server closes first: its side stays in TIME_WAIT
  up->reset();
  l->reset();
  auto again = t->listen(address, {});
  EXPECT_TRUE(again) << again.error().message;
}

TEST(tcp, says_what_is_wrong_with_an_address) {
  EXPECT_THAT(connect_refusal("nowhere.invalid:1"),
              AnyOf(HasSubstr("unknown host 'nowhere.invalid'"), HasSubstr("no name server answered")));
  EXPECT_THAT(connect_refusal("127.0.0.1"), HasSubstr("the port is missing"));
  EXPECT_THAT(connect_refusal("127.0.0.1:0"), HasSubstr("port 0 is only for listening"));
  EXPECT_THAT(connect_refusal("::1:1"), HasSubstr("brackets"));
  EXPECT_THAT(connect_refusal(""), HasSubstr("the port is missing"));
  EXPECT_THAT(refusal("192.0.2.1:0", true), HasSubstr("does not have that address"));
  auto l = make_tcp()->listen("127.0.0.1:0", {});
  ASSERT_TRUE(l);
  EXPECT_THAT(refusal(address_of(**l)), HasSubstr("another program listens on that port"));
}

TEST(tcp, a_refused_connection_says_so_and_may_be_retried) {
  auto t = make_tcp();
  auto l = t->listen("127.0.0.1:0", {});
  ASSERT_TRUE(l);
  std::string address = address_of(**l);
  l->reset();
  auto c = t->connect(address, soon());
  ASSERT_FALSE(c);
  EXPECT_EQ(c.error().next, action::retry);
  EXPECT_THAT(c.error().message, AllOf(HasSubstr("connection refused"), HasSubstr(address)));
}

TEST(tcp, a_connect_gives_up_at_its_deadline) {
  // A listener whose queue is full lets further connects wait, as a firewall that drops packets does.
  auto t = make_tcp();
  auto l = t->listen("127.0.0.1:0", {.backlog = 0});
  ASSERT_TRUE(l);
  std::vector<std::unique_ptr<connection>> queue;
  for (int i = 0; i < 20; ++i) {
    auto start = clock::now();
    auto c = t->connect(address_of(**l), start + 100ms);
    if (c) {
      queue.push_back(std::move(*c));
      continue;
    }
    EXPECT_EQ(c.error().next, action::retry);
    EXPECT_THAT(c.error().message, HasSubstr("timed out"));
    EXPECT_GE(clock::now() - start, 99ms);
    EXPECT_LT(clock::now() - start, 10s);
    return;
  }
  FAIL() << "the queue never filled";
}

TEST(tcp, describes_its_peer) {
  auto t = make_tcp();
  auto [client, server] = make_ends(*t);
  EXPECT_THAT(client->describe(), HasSubstr("tcp:127.0.0.1:"));
  EXPECT_THAT(server->describe(), HasSubstr("tcp:127.0.0.1:"));
  EXPECT_NE(client->describe(), server->describe());
}

TEST(tcp, sockets_have_the_options) {
  auto t = make_tcp();
  auto [client, server] = make_ends(*t);
  for (connection* c : {client.get(), server.get()}) {
    auto fd = c->detach();
    ASSERT_TRUE(fd);
    auto option = [&](int level, int name) {
      int value = -1;
      socklen_t size = sizeof value;
      ::getsockopt(fd->get(), level, name, &value, &size);
      return value;
    };
    EXPECT_EQ(option(IPPROTO_TCP, TCP_NODELAY), 1);
    EXPECT_EQ(option(SOL_SOCKET, SO_KEEPALIVE), 1);
    // 30 s from the last sign of life to the verdict.
    EXPECT_EQ(option(IPPROTO_TCP, TCP_KEEPIDLE) +
                  option(IPPROTO_TCP, TCP_KEEPINTVL) * option(IPPROTO_TCP, TCP_KEEPCNT),
              30);
  }
}

/// Sends two short segments and, after the read of the last one, returns how much the sender's socket still
/// has unacknowledged.
unsigned unacknowledged_behind_two(connection& asks, connection& answers, int socket) {
  std::array<std::byte, 64> bytes{};
  iovec part{bytes.data(), bytes.size()};
  EXPECT_EQ(asks.send({&part, 1}).status, io::done);
  EXPECT_EQ(receive_whole(answers, bytes), io::done);
  EXPECT_EQ(asks.send({&part, 1}).status, io::done);
  EXPECT_EQ(receive_whole(answers, bytes), io::done);
  tcp_info info{};
  socklen_t size = sizeof info;
  EXPECT_EQ(::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size), 0);
  EXPECT_EQ(answers.send({&part, 1}).status, io::done);
  EXPECT_EQ(receive_whole(asks, bytes), io::done);
  return info.tcpi_unacked;
}

TEST(tcp, a_hurried_answer_carries_the_acknowledgement) {
  auto t = make_tcp();
  auto [client, server] = make_ends(*t);
  auto fd = client->detach();
  ASSERT_TRUE(fd);
  const int socket = fd->get();
  client = std::move(*t->attach(std::move(*fd)));
  for (const bool haste : {true, false}) {
    server->set_spin(haste ? 50us : 0us);
    int later = 0;  // the first segments of a connection are acknowledged at once, and timers may run out
    for (int i = 0; i < 60; ++i) later += unacknowledged_behind_two(*client, *server, socket) > 0;
    if (haste) {
      EXPECT_GT(later, 10);
    } else {
      EXPECT_LT(later, 10);
    }
  }
}

TEST(tcp, bytes_that_were_only_peeked_at_come_once) {
  auto t = make_tcp();
  auto [client, server] = make_ends(*t);
  server->set_spin(50us);
  std::vector<std::byte> sent(200'000);
  for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<std::byte>(i * 7 + i / 251);
  std::thread sender([&, &c = *client] {
    std::size_t at = 0;
    for (std::size_t n = 1; at < sent.size(); n = n % 9000 + 37) {
      iovec part{sent.data() + at, std::min(n, sent.size() - at)};
      ASSERT_EQ(c.send({&part, 1}).status, io::done);
      at += part.iov_len;
    }
  });
  std::vector<std::byte> got;
  std::array<std::byte, 6000> into;
  for (std::size_t n = 1; got.size() < sent.size() - 10; n = n % into.size() + 11) {
    const std::size_t most = std::min({n, into.size(), sent.size() - 10 - got.size()});
    const io_result r = server->receive(std::span(into).first(most));
    ASSERT_EQ(r.status, io::done);
    got.insert(got.end(), into.begin(), into.begin() + static_cast<std::ptrdiff_t>(r.bytes));
  }
  sender.join();
  // The next owner of the socket finds the rest, and then nothing.
  auto fd = server->detach();
  ASSERT_TRUE(fd);
  server = std::move(*t->attach(std::move(*fd)));
  server->set_spin(50us);
  EXPECT_EQ(receive_whole(*server, std::span(into).first(10)), io::done);
  got.insert(got.end(), into.begin(), into.begin() + 10);
  EXPECT_EQ(got, sent);
  EXPECT_EQ(server->wait_readable(deadline::min()), io::timed_out);
  client->shutdown();
  EXPECT_EQ(server->receive(into).status, io::closed);
}

TEST(tcp, adopts_a_listening_socket) {
  int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&a), sizeof a), 0);
  ASSERT_EQ(::listen(fd, 5), 0);
  auto t = make_tcp();
  auto l = t->adopt_listener(unique_fd(fd));
  ASSERT_TRUE(l) << l.error().message;
  auto up = t->connect(address_of(**l), soon());
  ASSERT_TRUE(up) << up.error().message;
  EXPECT_TRUE((*l)->accept(soon()));
}

// The kernel of a peer that merely does not read answers; such a peer is never given up.
TEST(tcp, a_peer_that_does_not_read_is_not_gone) {
  auto t = make_tcp({.silence = 600ms});
  auto [client, server] = make_ends(*t);
  std::vector<std::byte> block(1 << 20);
  iovec part{block.data(), block.size()};
  io_result r;
  std::size_t sent = 0;
  do sent += (r = client->send({&part, 1}, clock::now() + 100ms)).bytes;
  while (r.bytes > 0);
  ASSERT_EQ(r.status, io::timed_out);
  auto start = clock::now();
  EXPECT_EQ(client->send({&part, 1}, start + 2500ms).status, io::timed_out);
  EXPECT_GE(clock::now() - start, 2499ms);
  EXPECT_FALSE(client->peer_gone());
  for (std::size_t got = 0; got < sent; got += r.bytes) {
    r = server->receive(block, soon());
    ASSERT_EQ(r.status, io::done);
  }
}

// Runs `body` in a thread that has a network of its own, whose loopback can be taken down. Not every user may
// do that.
bool in_own_network(const std::function<void(std::function<void()> cut)>& body) {
  bool allowed = false;
  std::thread t([&] {
    if (::unshare(CLONE_NEWNET) != 0) return;
    unique_fd control(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    auto set_up = [&](bool up) {
      ifreq request{};
      std::string("lo").copy(request.ifr_name, IFNAMSIZ - 1);
      if (::ioctl(control.get(), SIOCGIFFLAGS, &request) != 0) return false;
      request.ifr_flags = static_cast<short>(up ? request.ifr_flags | IFF_UP : request.ifr_flags & ~IFF_UP);
      return ::ioctl(control.get(), SIOCSIFFLAGS, &request) == 0;
    };
    if (!set_up(true)) return;
    allowed = true;
    body([&] { EXPECT_TRUE(set_up(false)); });
  });
  t.join();
  return allowed;
}

TEST(tcp, a_vanished_peer_ends_every_wait) {
  bool ran = in_own_network([](const std::function<void()>& cut) {
    auto t = make_tcp({.silence = 3s});
    auto [idle, idle_peer] = make_ends(*t);
    auto [asking, asking_peer] = make_ends(*t);
    auto [sending, sending_peer] = make_ends(*t);
    ASSERT_TRUE(idle && asking && sending);
    cut();
    auto start = clock::now();
    std::byte b{1};
    iovec one{&b, 1};
    EXPECT_EQ(asking->send({&one, 1}, soon()).status, io::done);
    io idle_saw = io::done, asking_saw = io::done;
    std::thread first([&, c = idle.get()] {
      std::byte into;
      idle_saw = c->receive({&into, 1}, soon()).status;
    });
    std::thread second([&, c = asking.get()] {
      std::byte into;
      asking_saw = c->receive({&into, 1}, soon()).status;
    });
    std::vector<std::byte> block(16 << 20);
    iovec many{block.data(), block.size()};
    EXPECT_EQ(sending->send({&many, 1}, soon()).status, io::broken);
    first.join();
    second.join();
    EXPECT_EQ(idle_saw, io::broken);
    EXPECT_EQ(asking_saw, io::broken);
    EXPECT_GE(clock::now() - start, 2s);
    EXPECT_LT(clock::now() - start, 12s);
  });
  if (!ran) GTEST_SKIP() << "no right to a network of its own";
}

}  // namespace
}  // namespace outboard::transport
