// Core dumps of the device across a session: the driver writes to a path that the worker chooses, whatever
// the client sends, and the client has the bytes before it gets the error of the fault.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loopback_session.hh"
#include "wire/output.hh"

namespace outboard::tests {
namespace {

using any_device = ::outboard::device::device;

/// A driver that fails on request and, a moment after it has reported the error, writes a dump to the
/// configured file.
class failing_driver {
 public:
  CUresult set(CUcoredumpSettings attribute, void* value, std::size_t* size) {
    const std::lock_guard lock(mutex_);
    attributes_[attribute].assign(static_cast<const char*>(value), *size);
    return CUDA_SUCCESS;
  }
  std::string attribute(CUcoredumpSettings which) {
    const std::lock_guard lock(mutex_);
    return attributes_[which];
  }
  std::string file() { return attribute(CU_COREDUMP_FILE).c_str(); }
  int flags() {
    int flags = 0;
    std::memcpy(&flags, attribute(CU_COREDUMP_GENERATION_FLAGS).data(), sizeof flags);
    return flags;
  }

  CUresult synchronize() {
    if (!fails.exchange(false)) return CUDA_SUCCESS;
    if (attribute(CU_COREDUMP_ENABLE_ON_EXCEPTION) == std::string(1, '\1')) {
      writing_.emplace_back([this, name = file()] {
        std::this_thread::sleep_for(20ms);
        const unique_fd out(::open(name.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
        for (std::size_t at = 0; out && at < dump.size();) {
          const ssize_t put =
              ::write(out.get(), dump.data() + at, std::min<std::size_t>(dump.size() - at, 100000));
          if (put <= 0) return;
          at += static_cast<std::size_t>(put);
        }
      });
    }
    return CUDA_ERROR_ILLEGAL_ADDRESS;
  }
  void begin() {
    attributes_.clear();
    fails = false;
    created_flags = 0;
  }
  void join() {
    for (std::thread& t : writing_) t.join();
    writing_.clear();
  }

  std::string dump;
  std::atomic<bool> fails{false};
  std::atomic<unsigned> created_flags{0};

 private:
  std::mutex mutex_;
  std::map<int, std::string> attributes_;
  std::vector<std::thread> writing_;
};

failing_driver& driver() {
  static failing_driver one;
  return one;
}

class failing_device : public any_device {
 public:
  explicit failing_device(const any_device& inner) : inner_(inner), table_(inner.cuda()) {
    table_.cuCoredumpSetAttributeGlobal = [](CUcoredumpSettings a, void* value, std::size_t* size) {
      return driver().set(a, value, size);
    };
    table_.cuCtxSynchronize = [] { return driver().synchronize(); };
    create_ = table_.cuCtxCreate_v2;
    table_.cuCtxCreate_v2 = [](CUcontext* made, unsigned flags, CUdevice ordinal) {
      driver().created_flags = flags;
      return create_(made, flags, ordinal);
    };
  }
  std::string_view kind() const override { return inner_.kind(); }
  std::string describe() const override { return inner_.describe(); }
  const api::driver_table& cuda() const override { return table_; }

 private:
  static inline decltype(api::driver_table::cuCtxCreate_v2) create_;
  const any_device& inner_;
  api::driver_table table_;
};

class core_dumps : public loopback_session {
 protected:
  any_device& used() override {
    if (!failing_) failing_ = std::make_unique<failing_device>(*mock_);
    return *failing_;
  }
  void SetUp() override {
    driver().begin();
    driver().dump = "a core of the device";
    loopback_session::SetUp();
  }
  void TearDown() override {
    loopback_session::TearDown();
    driver().join();
  }
  void start() {
    frontend::session_events events;
    events.sticky_error = [this](std::uint64_t, std::int32_t code) {
      sticky_ = code;
      heard_at_ = dumps_.size();
    };
    events.output = [this](int what, std::string_view piece) {
      if (what != wire::output_core_dump) return;
      if (piece.empty()) {
        dumps_.push_back(std::exchange(coming_, {}));
      } else {
        coming_.append(piece);
      }
    };
    events.lost = [](const std::string&) {};
    session_ = std::make_unique<frontend::session>(std::move(client_end_), std::move(events));
    ASSERT_EQ(post(1, opcode::cuDevicePrimaryCtxRetain, marshal::context_body{context_handle, 0, 0}, 0),
              CUDA_SUCCESS);
  }
  CUresult wish(bool on, int flags) {
    std::vector<std::byte> reply;
    const auto payload = encoded(marshal::limit_body{flags, on});
    return session_->call(request(1, opcode::cuCoredumpSetAttributeGlobal, payload, 0), reply);
  }
  CUresult fault() {
    driver().fails = true;
    return synchronize(1);
  }

  std::unique_ptr<failing_device> failing_;
  std::string coming_;
  std::vector<std::string> dumps_;
  std::size_t heard_at_ = 99;
};

TEST_F(core_dumps, arrive_before_the_fault_is_reported) {
  start();
  ASSERT_EQ(wish(true, CU_COREDUMP_SKIP_LOCAL_MEMORY), CUDA_SUCCESS);
  EXPECT_EQ(driver().flags(), CU_COREDUMP_SKIP_LOCAL_MEMORY | CU_COREDUMP_SKIP_ABORT)
      << "the driver must not end the worker";
  EXPECT_EQ(fault(), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(sticky_.load(), CUDA_ERROR_ILLEGAL_ADDRESS);
  ASSERT_EQ(dumps_.size(), 1u);
  EXPECT_EQ(heard_at_, 1u);
  EXPECT_EQ(dumps_[0], driver().dump);
}

TEST_F(core_dumps, are_written_to_a_place_without_a_name) {
  start();
  ASSERT_EQ(wish(true, 0), CUDA_SUCCESS);
  struct stat about {};
  const std::string file = driver().file();
  ASSERT_EQ(::stat(file.c_str(), &about), 0) << file;
  EXPECT_TRUE(S_ISFIFO(about.st_mode));
  EXPECT_EQ(about.st_mode & 0777, 0600u);
  EXPECT_EQ(about.st_nlink, 0u);
  ASSERT_EQ(wish(false, 0), CUDA_SUCCESS);
  EXPECT_EQ(driver().file(), file) << "made once";
}

TEST_F(core_dumps, may_be_many_megabytes_and_come_once_for_each_fault) {
  start();
  ASSERT_EQ(wish(true, 0), CUDA_SUCCESS);
  std::string& dump = driver().dump;
  dump.assign(20u << 20, 'x');
  for (std::size_t i = 0; i < dump.size(); i += 4096) dump[i] = static_cast<char>(i >> 12);
  EXPECT_EQ(fault(), CUDA_ERROR_ILLEGAL_ADDRESS);
  ASSERT_EQ(dumps_.size(), 1u);
  EXPECT_TRUE(dumps_[0] == dump);
  driver().join();
  // The context was reset; its next fault dumps again.
  ASSERT_EQ(call(1, opcode::cuDevicePrimaryCtxReset_v2, encoded(marshal::context_body{context_handle, 0, 0})),
            CUDA_SUCCESS);
  ASSERT_EQ(post(1, opcode::cuDevicePrimaryCtxRetain, marshal::context_body{context_handle, 0, 0}, 0),
            CUDA_SUCCESS);
  dump = "the second";
  EXPECT_EQ(fault(), CUDA_ERROR_ILLEGAL_ADDRESS);
  ASSERT_EQ(dumps_.size(), 2u);
  EXPECT_EQ(dumps_[1], dump);
}

TEST_F(core_dumps, are_waited_for_only_if_requested) {
  start();
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(fault(), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 1s);
  EXPECT_TRUE(dumps_.empty());
  EXPECT_TRUE(driver().file().empty());
}

// With the flags alone a driver would choose the place to write to, or watch a pipe there.
TEST_F(core_dumps, flags_of_contexts_reach_the_driver_with_a_place_to_write) {
  start();
  const auto create = [&](unsigned flags, std::uint32_t number) {
    const std::uint64_t handle = wire::handle::make(1, number, 1).value;
    EXPECT_EQ(call(1, opcode::cuCtxCreate_v2, encoded(marshal::context_body{handle, 0, flags})),
              CUDA_SUCCESS);
    return driver().created_flags.load();
  };
  constexpr unsigned both = CU_CTX_COREDUMP_ENABLE | CU_CTX_USER_COREDUMP_ENABLE;
  EXPECT_EQ(create(both | CU_CTX_SCHED_YIELD, 1), static_cast<unsigned>(CU_CTX_SCHED_YIELD));
  ASSERT_EQ(wish(false, 0), CUDA_SUCCESS);
  EXPECT_EQ(create(both | CU_CTX_SCHED_YIELD, 2),
            static_cast<unsigned>(CU_CTX_SCHED_YIELD | CU_CTX_COREDUMP_ENABLE));
}

}  // namespace
}  // namespace outboard::tests
