#include "transport/tls/connection.hh"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>

#include "transport/tls/handed_over.hh"
#include "transport/tls/library.hh"
#include "transport/unix/unix.hh"

// The way of one connection from a stranger's first byte to a worker, with both ends in this process. What
// every transport must do is in the protocol suite.
namespace outboard::transport::tls {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

deadline soon() { return clock::now() + 20s; }

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

io send_text(connection& to, std::string_view text) {
  const iovec part{const_cast<char*>(text.data()), text.size()};
  return to.send({&part, 1}, soon()).status;
}
std::string receive_text(connection& from, std::size_t size) {
  std::vector<std::byte> into(size);
  const io got = receive_whole(from, into, soon());
  return got == io::done ? text_of(into) : "status " + std::to_string(static_cast<int>(got));
}

/// What a gate does, over a connection that blocks.
class outer_server {
 public:
  outer_server(connection& raw, std::unique_ptr<engine> by) : raw_(raw), by_(std::move(by)) {}

  bool greet(std::string_view greeting) {
    step made = step::wants_bytes;
    while ((made = by_->shake_until_answer()) == step::wants_bytes)
      if (!take()) return false;
    if (made != step::done || !by_->write_with_answer(bytes_of(greeting))) return send(), false;
    send();
    while ((made = by_->shake()) == step::wants_bytes)
      if (!take()) return false;
    send();
    return made == step::done;
  }
  std::string read() {
    std::array<std::byte, 1000> into;
    std::ptrdiff_t got = 0;
    while ((got = by_->read(into)) == 0)
      if (!take()) return "ended";
    return got < 0 ? by_->problem() : text_of(std::span(into).first(static_cast<std::size_t>(got)));
  }
  void write(std::string_view text) {
    EXPECT_TRUE(by_->write(bytes_of(text)));
    send();
  }
  engine& by() { return *by_; }

 private:
  bool take() {
    record_.resize(5);
    if (receive_whole(raw_, record_, soon()) != io::done) return false;
    const auto size =
        std::to_integer<std::size_t>(record_[3]) << 8 | std::to_integer<std::size_t>(record_[4]);
    record_.resize(5 + size);
    if (receive_whole(raw_, std::span(record_).subspan(5), soon()) != io::done) return false;
    by_->offer(record_);
    return true;
  }
  void send() {
    output said;
    by_->take_output(said);
    if (said.used > 0) {
      EXPECT_EQ(send_text(raw_, text_of(said.bytes())), io::done);
    }
  }

  connection& raw_;
  std::unique_ptr<engine> by_;
  std::vector<std::byte> record_;
};

/// A connection that takes a few bytes of each send and then lets it time out, as one whose buffers are full.
class narrow_connection final : public connection {
 public:
  explicit narrow_connection(std::unique_ptr<connection> raw, std::size_t width)
      : raw_(std::move(raw)), width_(width) {}

  const capabilities& what() const override { return raw_->what(); }
  io_result send(std::span<const iovec> parts, deadline until) override {
    EXPECT_EQ(parts.size(), 1u);
    waits_for_ever = waits_for_ever || until == no_deadline;
    const iovec part{parts[0].iov_base, std::min(parts[0].iov_len, width_)};
    const io_result sent = raw_->send({&part, 1}, until);
    if (sent.status != io::done) return sent;
    return {part.iov_len < parts[0].iov_len ? io::timed_out : io::done, part.iov_len};
  }
  io_result receive(std::span<std::byte> into, deadline until) override { return raw_->receive(into, until); }
  io wait_readable(deadline until) override { return raw_->wait_readable(until); }
  void interrupt() override { raw_->interrupt(); }
  void shutdown() override { raw_->shutdown(); }
  std::string describe() const override { return raw_->describe(); }

  bool waits_for_ever = false;

 private:
  std::unique_ptr<connection> raw_;
  std::size_t width_;
};

server_terms terms_of(const std::string& certificate, const std::string& key,
                      const std::string& authorities = {}) {
  return {certificate, key, authorities, false};
}

class tls_way : public ::testing::Test {
 protected:
  void SetUp() override {
    auto loaded = load();
    if (!loaded.ok()) GTEST_SKIP() << loaded.error().message;
    library_ = *loaded;
    auto pem = library_->make_certificate("gpubox");
    ASSERT_TRUE(pem.ok());
    pem_ = *pem;
    make_contexts(terms_of(pem_, pem_), {});
    const std::string path = ::testing::TempDir() + "tls-" + std::to_string(::getpid());
    transport_ = make_unix();
    auto listening = transport_->listen(path, {});
    ASSERT_TRUE(listening.ok());
    auto up = transport_->connect(path, soon());
    auto down = (*listening)->accept(soon());
    ASSERT_TRUE(up.ok() && down.ok());
    client_ = std::move(*up);
    server_ = std::move(*down);
  }

  void make_contexts(const server_terms& server, const client_terms& client) {
    auto s = library_->make_server(server);
    auto c = library_->make_client(client);
    ASSERT_TRUE(s.ok()) << s.error().message;
    ASSERT_TRUE(c.ok()) << c.error().message;
    server_context_ = *s;
    client_context_ = *c;
  }

  result<std::unique_ptr<tls_connection>> open(const std::string& host = "gpubox") {
    return tls_connection::open_outer(std::move(client_), client_context_->start(host), soon());
  }

  library* library_ = nullptr;
  std::string pem_;
  std::shared_ptr<context> server_context_, client_context_;
  std::unique_ptr<transport> transport_;
  std::unique_ptr<connection> client_, server_;
};

TEST_F(tls_way, the_inner_end_answers_behind_the_outer_one) {
  std::thread gate([&] {
    outer_server outer(*server_, server_context_->start(""));
    ASSERT_TRUE(outer.greet("greeting")) << outer.by().problem();
    EXPECT_EQ(outer.read(), "hello");
    // A worker continues the same socket, and knows nothing but the key.
    tls_connection worker(std::move(server_), library_->start_server(outer.by().inner_key()),
                          tls_connection::side::server);
    // In several records, all of them with the answer.
    EXPECT_EQ(send_text(worker, std::string(40'000, 'w')), io::done);
    EXPECT_EQ(receive_text(worker, 3), "one");
    EXPECT_EQ(send_text(worker, "two"), io::done);
    std::byte more{};
    EXPECT_EQ(worker.receive({&more, 1}, soon()).status, io::closed);
  });
  auto made = open();
  ASSERT_TRUE(made.ok()) << made.error().message;
  tls_connection& c = **made;
  EXPECT_EQ(c.outer()->certificate().fingerprint, server_context_->fingerprint());
  EXPECT_EQ(receive_text(c, 8), "greeting");
  EXPECT_EQ(send_text(c, "hello"), io::done);
  ASSERT_TRUE(c.begin_inner(library_->start_client(c.outer()->inner_key()), soon()).ok());
  EXPECT_EQ(receive_text(c, 40'000), std::string(40'000, 'w'));
  EXPECT_EQ(send_text(c, "one"), io::done);
  EXPECT_EQ(receive_text(c, 3), "two");
  c.shutdown();
  gate.join();
}

TEST_F(tls_way, what_a_server_sends_early_goes_on_where_it_timed_out) {
  constexpr std::size_t size = 3 << 20;
  tls_connection worker(std::move(server_), library_->start_server({}), tls_connection::side::server);
  tls_connection c(std::move(client_), library_->start_client({}), tls_connection::side::client);
  std::string text(size, 'a');
  for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>((i * 2654435761u) >> 13);
  int timed_out = 0;
  std::thread other([&] {
    for (std::size_t at = 0; at < size;) {
      const iovec part{text.data() + at, size - at};
      const io_result sent = worker.send({&part, 1}, clock::now() + 5ms);
      ASSERT_TRUE(sent.status == io::done || sent.status == io::timed_out);
      if (sent.status == io::timed_out) ++timed_out;
      at += sent.bytes;
      // What the client says meanwhile ends the handshake.
      if (sent.status == io::timed_out && timed_out % 4 == 0) (void)worker.wait_readable(deadline::min());
    }
  });
  // The client's first words, and then it reads nothing for a while.
  EXPECT_EQ(c.wait_readable(soon()), io::done);
  std::this_thread::sleep_for(100ms);
  EXPECT_EQ(receive_text(c, size), text);
  other.join();
  EXPECT_GT(timed_out, 3);
}

TEST_F(tls_way, words_of_a_handshake_that_were_cut_are_continued) {
  auto narrow_client = std::make_unique<narrow_connection>(std::move(client_), 7);
  auto narrow_server = std::make_unique<narrow_connection>(std::move(server_), 7);
  narrow_connection &up = *narrow_client, &down = *narrow_server;
  tls_connection c(std::move(narrow_client), library_->start_client({}), tls_connection::side::client);
  tls_connection worker(std::move(narrow_server), library_->start_server({}), tls_connection::side::server);
  const auto give_up = soon();
  io client_done = io::timed_out, worker_done = io::timed_out;
  while ((client_done != io::done || worker_done != io::done) && clock::now() < give_up) {
    if (client_done != io::done) client_done = c.shake(deadline::min());
    if (worker_done != io::done) worker_done = worker.shake(deadline::min());
    ASSERT_TRUE(client_done == io::done || client_done == io::timed_out) << c.problem();
    ASSERT_TRUE(worker_done == io::done || worker_done == io::timed_out) << worker.problem();
  }
  EXPECT_EQ(client_done, io::done);
  EXPECT_EQ(worker_done, io::done);
  // Nobody who polls was made to wait for a peer that takes nothing.
  EXPECT_FALSE(up.waits_for_ever);
  EXPECT_FALSE(down.waits_for_ever);
}

TEST_F(tls_way, what_the_outer_end_says_late_is_whole_for_a_receiver_beside_a_sender) {
  // Both threads take records of the handshake; the receiver looks all the time. TSan looks at this, too.
  constexpr int pieces = 300;
  std::string whole;
  for (int i = 0; i < pieces; ++i) whole += std::to_string(i) + std::string(static_cast<std::size_t>(i), '.');
  std::thread gate([&] {
    outer_server outer(*server_, server_context_->start(""));
    ASSERT_TRUE(outer.greet("greeting"));
    EXPECT_EQ(outer.read(), "hello");
    for (int i = 0; i < pieces; ++i)
      outer.write(std::to_string(i) + std::string(static_cast<std::size_t>(i), '.'));
    tls_connection worker(std::move(server_), library_->start_server(outer.by().inner_key()),
                          tls_connection::side::server);
    EXPECT_EQ(send_text(worker, "end"), io::done);
    EXPECT_EQ(receive_text(worker, 4), "news");
  });
  auto made = open();
  ASSERT_TRUE(made.ok());
  tls_connection& c = **made;
  EXPECT_EQ(receive_text(c, 8), "greeting");
  EXPECT_EQ(send_text(c, "hello"), io::done);
  ASSERT_TRUE(c.begin_inner(library_->start_client(c.outer()->inner_key()), soon()).ok());
  std::thread sender([&] { EXPECT_EQ(send_text(c, "news"), io::done); });
  std::string got;
  while (got.size() < whole.size() + 3) {
    std::array<std::byte, 64> part;
    const io_result one = c.receive(part, clock::now() + 1ms);
    if (one.status == io::timed_out) continue;
    ASSERT_EQ(one.status, io::done);
    got += text_of(std::span(part).first(one.bytes));
  }
  EXPECT_EQ(got, whole + "end");
  sender.join();
  gate.join();
}

TEST_F(tls_way, a_sender_without_patience_does_not_wait_for_a_silent_handshake) {
  // As a link that swallows everything: the worker never answers, and a thread receives all the time.
  tls_connection c(std::move(client_), library_->start_client({}), tls_connection::side::client);
  std::thread receiver([&] {
    std::byte one{};
    EXPECT_NE(c.receive({&one, 1}, no_deadline).status, io::done);
  });
  std::this_thread::sleep_for(20ms);
  const auto before = clock::now();
  const iovec part = {const_cast<char*>("news"), 4};
  EXPECT_EQ(c.send({&part, 1}, deadline::min()).status, io::timed_out);
  EXPECT_LT(clock::now() - before, 5s);
  c.shutdown();
  receiver.join();
}

TEST_F(tls_way, an_answer_of_the_outer_end_arrives_when_the_inner_connection_was_begun) {
  std::thread gate([&] {
    outer_server outer(*server_, server_context_->start(""));
    ASSERT_TRUE(outer.greet("greeting"));
    EXPECT_EQ(outer.read(), "hello");
    outer.write("refused");
  });
  auto made = open();
  ASSERT_TRUE(made.ok());
  tls_connection& c = **made;
  EXPECT_EQ(receive_text(c, 8), "greeting");
  EXPECT_EQ(send_text(c, "hello"), io::done);
  ASSERT_TRUE(c.begin_inner(library_->start_client(c.outer()->inner_key()), soon()).ok());
  EXPECT_EQ(receive_text(c, 7), "refused");
  gate.join();
}

TEST_F(tls_way, an_inner_end_with_another_key_is_refused) {
  std::thread gate([&] {
    outer_server outer(*server_, server_context_->start(""));
    ASSERT_TRUE(outer.greet("greeting"));
    EXPECT_EQ(outer.read(), "hello");
    secret other = outer.by().inner_key();
    other[7] ^= std::byte{1};
    tls_connection worker(std::move(server_), library_->start_server(other), tls_connection::side::server);
    EXPECT_NE(send_text(worker, "welcome"), io::done);
  });
  auto made = open();
  ASSERT_TRUE(made.ok());
  tls_connection& c = **made;
  EXPECT_EQ(receive_text(c, 8), "greeting");
  EXPECT_EQ(send_text(c, "hello"), io::done);
  ASSERT_TRUE(c.begin_inner(library_->start_client(c.outer()->inner_key()), soon()).ok());
  EXPECT_THAT(receive_text(c, 7), HasSubstr("status"));
  gate.join();
}

TEST_F(tls_way, an_inner_end_that_shows_a_certificate_and_no_key_is_refused) {
  std::thread gate([&] {
    outer_server outer(*server_, server_context_->start(""));
    ASSERT_TRUE(outer.greet("greeting"));
    EXPECT_EQ(outer.read(), "hello");
    tls_connection other(std::move(server_), server_context_->start(""), tls_connection::side::server);
    (void)send_text(other, "welcome");
  });
  auto made = open();
  ASSERT_TRUE(made.ok());
  tls_connection& c = **made;
  EXPECT_EQ(receive_text(c, 8), "greeting");
  EXPECT_EQ(send_text(c, "hello"), io::done);
  ASSERT_TRUE(c.begin_inner(library_->start_client(c.outer()->inner_key()), soon()).ok());
  EXPECT_THAT(receive_text(c, 7), HasSubstr("status"));
  gate.join();
}

TEST_F(tls_way, both_ends_and_nobody_else_make_the_same_secrets) {
  secret binding{}, key{};
  std::thread gate([&] {
    outer_server outer(*server_, server_context_->start(""));
    ASSERT_TRUE(outer.greet("greeting"));
    binding = outer.by().binding();
    key = outer.by().inner_key();
  });
  auto made = open();
  gate.join();
  ASSERT_TRUE(made.ok());
  EXPECT_EQ((*made)->outer()->binding(), binding);
  EXPECT_EQ((*made)->outer()->inner_key(), key);
  EXPECT_NE(binding, key);
}

TEST_F(tls_way, a_ticket_resumes_one_later_connection_with_the_same_host) {
  const auto connect_again = [&] {
    const std::string path = ::testing::TempDir() + "tls-again-" + std::to_string(::getpid());
    auto listening = transport_->listen(path, {});
    ASSERT_TRUE(listening.ok());
    auto up = transport_->connect(path, soon());
    auto down = (*listening)->accept(soon());
    ASSERT_TRUE(up.ok() && down.ok());
    client_ = std::move(*up);
    server_ = std::move(*down);
  };
  // Whether a connection was resumed, which both ends must say alike. The first word brings the ticket.
  const auto resumes = [&](const std::string& host) {
    bool by_server = false;
    std::thread gate([&] {
      outer_server outer(*server_, server_context_->start(""));
      ASSERT_TRUE(outer.greet("greeting")) << outer.by().problem();
      by_server = outer.by().resumed();
      outer.write("word");
    });
    auto made = open(host);
    if (made.ok()) {
      EXPECT_EQ(receive_text(**made, 12), "greetingword");
    }
    gate.join();
    EXPECT_TRUE(made.ok()) << made.error().message;
    const bool by_client = made.ok() && (*made)->outer()->resumed();
    EXPECT_EQ(by_client, by_server);
    connect_again();
    return by_client;
  };
  EXPECT_FALSE(resumes("gpubox")) << "there is no ticket yet";
  EXPECT_TRUE(resumes("gpubox"));
  EXPECT_TRUE(resumes("gpubox")) << "each connection brings a ticket for the next one";
  EXPECT_FALSE(resumes("other")) << "a ticket is for the host that gave it";
  EXPECT_TRUE(resumes("other"));
  // A gate that was started anew knows nothing of the tickets of the one before.
  auto anew = library_->make_server(terms_of(pem_, pem_));
  ASSERT_TRUE(anew.ok());
  server_context_ = *anew;
  EXPECT_FALSE(resumes("other"));
}

TEST_F(tls_way, an_authority_that_did_not_sign_is_named_as_the_problem) {
  auto other = library_->make_certificate("other");
  ASSERT_TRUE(other.ok());
  make_contexts(terms_of(pem_, pem_), {.authorities = *other, .certificate = {}, .key = {}});
  std::thread gate(
      [&] { EXPECT_FALSE(outer_server(*server_, server_context_->start("")).greet("greeting")); });
  auto made = open();
  ASSERT_FALSE(made.ok());
  EXPECT_THAT(made.error().message, HasSubstr("not signed by the authority"));
  client_.reset();
  gate.join();
}

TEST_F(tls_way, a_server_that_speaks_first_does_not_speak_tls) {
  std::string greeting("\x50\0\0\0\1\0\0\0", 8);
  greeting.resize(40);
  ASSERT_EQ(send_text(*server_, greeting), io::done);
  auto made = open();
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().message, "it does not speak TLS");
}

TEST_F(tls_way, unfit_certificates_are_named) {
  const auto refusal = [&](const server_terms& terms) {
    auto made = library_->make_server(terms);
    return made.ok() ? "taken" : made.error().message;
  };
  const std::string half = pem_.substr(0, pem_.size() / 2);
  auto other = library_->make_certificate("gpubox");
  ASSERT_TRUE(other.ok());
  EXPECT_THAT(refusal(terms_of(half, half)), HasSubstr("holds no certificate (or half of one)"));
  EXPECT_THAT(refusal(terms_of(pem_, *other)), HasSubstr("does not belong to"));
  EXPECT_THAT(refusal(terms_of(pem_, "nothing")), HasSubstr("no private key"));
  EXPECT_THAT(refusal(terms_of(pem_, pem_, "nothing")), HasSubstr("authority"));
}

TEST(tls_handed_over, a_text_that_is_not_from_us_is_refused) {
  registry transports;
  transports.add(make_unix());
  for (const char* text : {"unix xyz", "unix ", "tcp", "unix 00", ""})
    EXPECT_FALSE(attach(transports, text, unique_fd()).ok()) << text;
}

}  // namespace
}  // namespace outboard::transport::tls
