#include "transport/shm/shm.hh"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <fstream>
#include <functional>
#include <random>
#include <thread>
#include <vector>

#include "transport/local_socket.hh"
#include "transport/shm/memory.hh"

// What only shm: has: going over to the rings, the memory, and peers that lie or die. The rest is in the
// protocol suite.
namespace outboard::transport::shm {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

deadline soon() { return clock::now() + 20s; }

io send_bytes(connection& c, std::span<const std::byte> bytes, deadline until = soon()) {
  iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
  return c.send({&part, 1}, until).status;
}
io send_byte(connection& c, int value, deadline until = soon()) {
  const std::byte b{static_cast<unsigned char>(value)};
  return send_bytes(c, {&b, 1}, until);
}
int receive_byte(connection& c) {
  std::byte b{};
  return c.receive({&b, 1}, soon()).status == io::done ? static_cast<int>(b) : -1;
}

class shm_connections : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = ::testing::TempDir() + "outboard-shm-" + std::to_string(::getpid());
    auto l = shm_->listen(path_, {});
    ASSERT_TRUE(l) << l.error().message;
    listener_ = std::move(*l);
  }

  struct ends {
    std::unique_ptr<connection> client, server;
  };
  ends make_ends() {
    auto up = shm_->connect(path_, soon());
    EXPECT_TRUE(up) << up.error().message;
    auto down = listener_->accept(soon());
    EXPECT_TRUE(down) << down.error().message;
    return {std::move(*up), std::move(*down)};
  }
  static void go_over(ends& e) {
    EXPECT_EQ(send_byte(*e.server, 1), io::done);
    EXPECT_EQ(receive_byte(*e.client), 1);
    EXPECT_EQ(send_byte(*e.client, 2), io::done);
    EXPECT_EQ(receive_byte(*e.server), 2);
    EXPECT_FALSE(e.client->what().detachable);
    EXPECT_FALSE(e.server->what().detachable);
  }

  std::unique_ptr<transport> shm_ = make_shm();
  std::unique_ptr<listener> listener_;
  std::string path_;
};

// The bytes of the socket and those of the ring are one stream, whatever each end does when.
TEST_F(shm_connections, goes_over_without_losing_a_byte) {
  for (int early = 0; early < 50; ++early) {
    ends e = make_ends();
    std::atomic<bool> begin{false};
    std::thread client([&] {
      for (int i = 0; i < 200; ++i) {
        if (i == early) begin = true;
        ASSERT_EQ(send_byte(*e.client, i), io::done);
      }
    });
    std::thread reader([&] {
      for (int i = 0; i < 200; ++i) ASSERT_EQ(receive_byte(*e.client), i);
    });
    std::thread server([&] {
      while (!begin) std::this_thread::yield();
      for (int i = 0; i < 200; ++i) ASSERT_EQ(send_byte(*e.server, i), io::done);
    });
    for (int i = 0; i < 200; ++i) ASSERT_EQ(receive_byte(*e.server), i);
    client.join();
    reader.join();
    server.join();
  }
}

TEST_F(shm_connections, cannot_be_detached_once_it_has_gone_over) {
  ends e = make_ends();
  go_over(e);
  auto fd = e.server->detach();
  ASSERT_FALSE(fd);
  EXPECT_THAT(fd.error().message, HasSubstr("shared memory"));
  EXPECT_EQ(send_byte(*e.server, 3), io::done);
  EXPECT_EQ(receive_byte(*e.client), 3);
}

// As a worker does for its successor: the first object is never used again, nor destroyed.
TEST_F(shm_connections, goes_on_from_another_object_with_what_nobody_has_read) {
  ends e = make_ends();
  go_over(e);
  EXPECT_FALSE(e.client->share()) << "a client's stays with it";
  std::vector<connection*> left;
  for (int turn = 0; turn < 20; ++turn) {
    ASSERT_EQ(send_byte(*e.client, 3), io::done);
    ASSERT_EQ(send_byte(*e.server, 4), io::done);
    auto stream = e.server->share();
    ASSERT_TRUE(stream) << stream.error().message;
    EXPECT_EQ(stream->scheme, "shm");
    auto next = shm_->attach(std::move(stream->descriptors.front()));
    ASSERT_TRUE(next) << next.error().message;
    const status on = (*next)->go_on(*stream);
    ASSERT_TRUE(on.ok()) << on.error().message;
    left.push_back(e.server.release());
    e.server = std::move(*next);
    EXPECT_EQ(receive_byte(*e.server), 3);
    EXPECT_EQ(receive_byte(*e.client), 4);
  }
  unique_fd event(::eventfd(0, EFD_CLOEXEC));
  ASSERT_TRUE(e.server->send_descriptor(event.get()).ok());
  EXPECT_TRUE(e.client->receive_descriptor(soon()));
  e.server->shutdown();
  EXPECT_EQ(receive_byte(*e.client), -1);
  for (connection* old : left) delete old;
}

TEST_F(shm_connections, do_not_go_on_where_they_cannot_have_been) {
  ends e = make_ends();
  go_over(e);
  auto stream = e.server->share();
  ASSERT_TRUE(stream);
  stream->positions[2] += 1u << 30;
  auto next = shm_->attach(std::move(stream->descriptors.front()));
  ASSERT_TRUE(next);
  EXPECT_FALSE((*next)->go_on(*stream).ok());
}

TEST_F(shm_connections, leave_nothing_behind) {
  const auto mappings = [] {
    std::ifstream maps("/proc/self/maps");
    int count = 0;
    for (std::string line; std::getline(maps, line);)
      count += line.find("outboard-rings") != std::string::npos;
    return count;
  };
  const auto descriptors = [] {
    int count = 0;
    for (int fd = 0; fd < 5000; ++fd) count += ::fcntl(fd, F_GETFD) >= 0;
    return count;
  };
  const int before = descriptors();
  {
    std::vector<ends> all;
    for (int i = 0; i < 50; ++i) go_over(all.emplace_back(make_ends()));
    EXPECT_EQ(mappings(), 100);
    EXPECT_EQ(descriptors(), before + 250);  // a socket and an event each, and the server's of the memory
  }
  EXPECT_EQ(mappings(), 0);
  EXPECT_EQ(descriptors(), before);
}

TEST_F(shm_connections, idle_waits_cost_no_time) {
  ends e = make_ends();
  go_over(e);
  e.server->set_spin(50us);
  rusage before{}, after{};
  std::thread waiting([&] {
    ::getrusage(RUSAGE_THREAD, &before);
    std::byte b;
    EXPECT_EQ(e.server->receive({&b, 1}, clock::now() + 1s).status, io::timed_out);
    ::getrusage(RUSAGE_THREAD, &after);
  });
  waiting.join();
  const auto spent = [](const rusage& r) {
    return (r.ru_utime.tv_sec + r.ru_stime.tv_sec) * 1000000 + r.ru_utime.tv_usec + r.ru_stime.tv_usec;
  };
  EXPECT_LT(spent(after) - spent(before), 1000 + 4000)
      << "microseconds of one second";  // a tick of the clock
  EXPECT_LT(after.ru_nvcsw - before.ru_nvcsw, 5);
}

// ---- The memory ----

unique_fd memory_file(std::size_t size, int seals) {
  unique_fd fd(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(::ftruncate(fd.get(), static_cast<off_t>(size)), 0);
  EXPECT_EQ(::fcntl(fd.get(), F_ADD_SEALS, seals), 0);
  return fd;
}

std::string refusal(int fd) {
  auto adopted = memory::adopt(fd);
  return adopted ? "taken" : adopted.error().message;
}

TEST(shm_memory, neither_end_can_take_pages_from_the_other) {
  auto made = memory::make(ring_sizes());
  ASSERT_TRUE(made);
  const int fd = made->second.get();
  EXPECT_EQ(refusal(fd), "taken");
  EXPECT_NE(::ftruncate(fd, 4096), 0);
  EXPECT_NE(::ftruncate(fd, 1 << 30), 0);
  EXPECT_NE(::fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), 0);
}

TEST(shm_memory, only_what_we_would_make_is_taken) {
  constexpr int seals = F_SEAL_SHRINK | F_SEAL_GROW;
  constexpr std::size_t whole = header_bytes + 4096 + 8192;
  EXPECT_THAT(refusal(memory_file(whole, 0).get()), HasSubstr("not sealed"));
  EXPECT_THAT(refusal(memory_file(whole, F_SEAL_GROW).get()), HasSubstr("not sealed"));
  EXPECT_THAT(refusal(memory_file(100, seals).get()), HasSubstr("100 bytes"));
  EXPECT_THAT(refusal(memory_file(std::size_t{1} << 40, seals).get()), HasSubstr("bytes"));
  EXPECT_THAT(refusal(memory_file(whole, seals).get()), HasSubstr("something else"));
  EXPECT_THAT(refusal(memory_file(whole, seals | F_SEAL_WRITE).get()), HasSubstr("no room"));
  EXPECT_THAT(refusal(unique_fd(::open("/dev/zero", O_RDWR | O_CLOEXEC)).get()), HasSubstr("unfit"));
  EXPECT_THAT(refusal(unique_fd(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC)).get()), HasSubstr("unfit"));
  EXPECT_THAT(refusal(-1), HasSubstr("unfit"));
  const auto with_header = [&](std::uint64_t up, std::uint64_t down) {
    unique_fd fd = memory_file(whole, seals);
    const std::array<std::uint64_t, 3> words{magic, up, down};
    EXPECT_EQ(::pwrite(fd.get(), words.data(), sizeof words, 0), static_cast<ssize_t>(sizeof words));
    return refusal(fd.get());
  };
  EXPECT_EQ(with_header(4096, 8192), "taken");
  EXPECT_EQ(with_header(8192, 4096), "taken");
  for (auto [up, down] :
       std::vector<std::pair<std::uint64_t, std::uint64_t>>{{4096, 4096},
                                                            {6144, 6144},
                                                            {8192, 8192},
                                                            {0, 12288},
                                                            {12288, 0},
                                                            {1ull << 63, 12288 + (1ull << 63)}})
    EXPECT_THAT(with_header(up, down), HasSubstr("rings of")) << up << " " << down;
}

// ---- Peers that lie ----

/// A client of our own making, which has the memory before it and may do anything with it.
struct liar {
  unique_fd socket;
  std::byte* memory = nullptr;
  std::size_t size = 0;
  ~liar() {
    if (memory) ::munmap(memory, size);
  }
};

std::unique_ptr<liar> make_liar(transport& t, const std::string& path, listener& at,
                                std::unique_ptr<connection>& server) {
  auto made = std::make_unique<liar>();
  auto up = t.connect(path, soon());
  auto down = at.accept(soon());
  EXPECT_TRUE(up && down);
  server = std::move(*down);
  made->socket = std::move((*up)->detach()).value();
  EXPECT_EQ(send_byte(*server, 1), io::done);
  std::array<std::byte, 16> bytes;
  unique_fd memory;
  EXPECT_EQ(receive_message(made->socket.get(), bytes, memory), 1);
  made->size = header_bytes + ring_sizes().up + ring_sizes().down;
  void* base = ::mmap(nullptr, made->size, PROT_READ | PROT_WRITE, MAP_SHARED, memory.get(), 0);
  EXPECT_NE(base, MAP_FAILED);
  made->memory = static_cast<std::byte*>(base);
  const std::byte over{0xa1};
  EXPECT_TRUE(send_message(made->socket.get(), {&over, 1}, memory.get()));
  return made;
}

shared_words& words_of(liar& l) { return *reinterpret_cast<shared_words*>(l.memory); }

TEST_F(shm_connections, a_client_that_scribbles_costs_itself_only) {
  ends honest = make_ends();
  go_over(honest);
  std::mt19937_64 random(11);
  for (int round = 0; round < 300; ++round) {
    std::unique_ptr<connection> server;
    auto l = make_liar(*shm_, path_, *listener_, server);
    std::vector<std::byte> block(100000);
    // Both directions once in order, as far as they go, then a flipped bit, a random word, or all of it.
    words_of(*l).up.tail.store(1000);
    (void)server->receive(block, deadline::min());
    ASSERT_EQ(send_bytes(*server, block, clock::now() + 5ms), io::done);
    if (round % 3 == 0) {
      const std::size_t bit = random() % (header_bytes * 8);
      l->memory[bit / 8] ^= static_cast<std::byte>(1u << (bit % 8));
    } else if (round % 3 == 1) {
      const std::uint64_t word = round % 2 ? random() : random() % (16u << 20);
      std::memcpy(l->memory + random() % (header_bytes / 8) * 8, &word, sizeof word);
    } else {
      for (std::size_t i = 0; i < header_bytes; ++i) l->memory[i] = static_cast<std::byte>(random());
    }
    for (int i = 0; i < 20; ++i) {
      const io_result got = server->receive(block, deadline::min());
      ASSERT_LE(got.bytes, block.size());
      (void)server->wait_readable(deadline::min());
      (void)server->receive_descriptor(deadline::min());
      if (send_bytes(*server, block, deadline::min()) == io::broken) break;
    }
  }
  EXPECT_EQ(send_byte(*honest.client, 3), io::done);
  EXPECT_EQ(receive_byte(*honest.server), 3);
}

TEST_F(shm_connections, a_client_that_scribbles_all_the_time_ends_its_session) {
  for (int round = 0; round < 5; ++round) {
    std::unique_ptr<connection> server;
    auto l = make_liar(*shm_, path_, *listener_, server);
    std::atomic<bool> stop{false};
    std::thread scribbler([&] {
      std::mt19937_64 random(round);
      while (!stop) {
        shared_words& w = words_of(*l);
        w.up.tail.store(random() % (32u << 20));
        w.down.head.store(random() % (4u << 20));
        w.up.descriptors_sent.store(random() % 3);
        w.down.reader_asleep.store(static_cast<std::uint32_t>(random()));
      }
    });
    std::vector<std::byte> block(4 << 20);
    io got = io::done;
    for (deadline end = clock::now() + 10s; got != io::broken && clock::now() < end;) {
      got = server->receive(std::span(block).first(4096), clock::now() + 1ms).status;
      (void)send_bytes(*server, std::span(block).first(1000), clock::now() + 1ms);
    }
    stop = true;
    scribbler.join();
    EXPECT_EQ(got, io::broken);
  }
}

/// A writer may look whether its reader sleeps before the reader can see what it wrote: then no bell comes.
TEST_F(shm_connections, a_reader_that_missed_the_bell_as_it_lay_down_looks_again) {
  std::unique_ptr<connection> server;
  auto l = make_liar(*shm_, path_, *listener_, server);
  words_of(*l).up.tail.store(1);
  EXPECT_GE(receive_byte(*server), 0);
  int in_time = 0;
  for (std::uint64_t tail = 2; tail <= 21; ++tail) {
    std::thread writer([&] {
      while (words_of(*l).up.reader_asleep.load() == 0) std::this_thread::yield();
      words_of(*l).up.tail.store(tail);
    });
    std::byte b;
    const deadline begun = clock::now();
    EXPECT_EQ(server->receive({&b, 1}, begun + 1s).status, io::done);
    in_time += clock::now() - begun < 500ms;
    writer.join();
  }
  EXPECT_GT(in_time, 0);  // all of them but where the machine had no time for the writer
}

TEST_F(shm_connections, a_mark_without_its_descriptor_ends_the_session) {
  std::unique_ptr<connection> server;
  auto l = make_liar(*shm_, path_, *listener_, server);
  words_of(*l).up.descriptor_at[0].store(2);
  words_of(*l).up.descriptors_sent.store(1);
  words_of(*l).up.tail.store(3);
  std::array<std::byte, 10> into;
  io_result got = server->receive(into, soon());
  EXPECT_EQ(got.status, io::done);
  EXPECT_EQ(got.bytes, 2u);
  auto none = server->receive_descriptor(soon());
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().next, action::reconnect);
}

TEST_F(shm_connections, more_descriptors_than_marks_end_the_session) {
  std::unique_ptr<connection> server;
  auto l = make_liar(*shm_, path_, *listener_, server);
  std::thread flood([fd = l->socket.get()] {
    const std::byte carrier{0xfd};
    for (int i = 0; i < 200; ++i) (void)send_message(fd, {&carrier, 1}, fd);
  });
  std::byte b;
  io got = io::timed_out;
  for (int i = 0; i < 1000 && got == io::timed_out; ++i)
    got = server->receive({&b, 1}, clock::now() + 10ms).status;
  flood.join();
  EXPECT_EQ(got, io::broken);
}

TEST_F(shm_connections, a_server_that_sends_no_rings_as_such_is_refused) {
  auto up = shm_->connect(path_, soon());
  ASSERT_TRUE(up);
  auto down = listener_->accept(soon());
  ASSERT_TRUE(down);
  unique_fd socket = std::move((*down)->detach()).value();
  const unique_fd wrong = memory_file(1 << 20, 0);
  const std::byte over{0xa0};
  ASSERT_TRUE(send_message(socket.get(), {&over, 1}, wrong.get()));
  std::byte b;
  EXPECT_EQ((*up)->receive({&b, 1}, soon()).status, io::broken);
}

// ---- Peers that die ----

/// Runs `client` on a connection in a process of its own, which is killed after a while.
void with_victim(transport& t, const std::string& path, listener& at, void (*client)(connection&),
                 const std::function<void(connection&)>& server) {
  const pid_t victim = ::fork();
  if (victim == 0) {
    auto up = t.connect(path, soon());
    if (up && receive_byte(**up) == 1) client(**up);
    ::_exit(1);
  }
  auto down = at.accept(soon());
  ASSERT_TRUE(down);
  ASSERT_EQ(send_byte(**down, 1), io::done);
  ASSERT_EQ(receive_byte(**down), 2);
  std::thread killer([&] {
    std::this_thread::sleep_for(100ms);
    ::kill(victim, SIGKILL);
  });
  server(**down);
  killer.join();
  ::waitpid(victim, nullptr, 0);
}

TEST_F(shm_connections, a_killed_peer_ends_a_sleeping_reader) {
  with_victim(
      *shm_, path_, *listener_,
      [](connection& c) {
        send_byte(c, 2);
        for (;;) ::pause();
      },
      [](connection& c) {
        std::byte b;
        EXPECT_EQ(c.receive({&b, 1}, soon()).status, io::closed);
      });
}

TEST_F(shm_connections, a_killed_peer_ends_a_stuck_writer) {
  with_victim(
      *shm_, path_, *listener_,
      [](connection& c) {
        send_byte(c, 2);
        for (;;) ::pause();
      },
      [](connection& c) {
        const std::vector<std::byte> block(ring_sizes().down * 2);
        const auto start = clock::now();
        EXPECT_EQ(send_bytes(c, block), io::broken);
        EXPECT_LT(clock::now() - start, 2s);
      });
}

TEST_F(shm_connections, a_peer_killed_in_the_middle_of_a_transfer_ends_the_reader) {
  with_victim(
      *shm_, path_, *listener_,
      [](connection& c) {
        send_byte(c, 2);
        const std::vector<std::byte> block(1 << 20);
        while (send_bytes(c, block) == io::done) {
        }
      },
      [](connection& c) {
        std::vector<std::byte> into(64 << 10);
        io_result got;
        std::size_t bytes = 0;
        while ((got = c.receive(into, soon())).status == io::done) bytes += got.bytes;
        EXPECT_EQ(got.status, io::closed);
        EXPECT_GT(bytes, 0u);
      });
}

TEST_F(shm_connections, a_killed_reader_is_noticed_by_a_writer_that_has_room) {
  with_victim(
      *shm_, path_, *listener_,
      [](connection& c) {
        send_byte(c, 2);
        std::vector<std::byte> into(64 << 10);
        while (c.receive(into).status == io::done) {
        }
      },
      [](connection& c) {
        io end = io::done;
        for (deadline until = soon(); end == io::done && clock::now() < until;) end = send_byte(c, 3);
        EXPECT_EQ(end, io::broken);
      });
}

}  // namespace
}  // namespace outboard::transport::shm
