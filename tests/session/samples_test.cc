// What sensors say, asked of a session: by a device that has sensors, and by one that has none.
#include <atomic>

#include "base/steady.hh"
#ifdef OUTBOARD_WITH_CUPTI
#include "frontend/cupti/board_feed.hh"
#endif
#include "loopback_session.hh"
#include "marshal/profile_bodies.hh"

namespace outboard::tests {
namespace {

/// Two samples for each question: of the device that the client has, and of one that is hidden from it.
class sensors final : public ::outboard::device::work_recorder {
 public:
  status start() override { return {}; }
  void stop() override {}
  ::outboard::device::recorded_work take(bool) override { return {}; }
  std::uint64_t now() override { return static_cast<std::uint64_t>(steady_nanoseconds()); }
  status sample(bool on) override { return on_ = on, status(); }
  ::outboard::device::sampled_boards take_samples() override {
    if (!on_) return {};
    return {{{api::sample_kind::power, 0, 5, {118000, 700000}}, {api::sample_kind::power, 1, 6, {1, 2}}}, 3};
  }
  std::atomic<bool> on_{false};
};

class device_with_sensors final : public ::outboard::device::device {
 public:
  explicit device_with_sensors(const ::outboard::device::device& inner) : inner_(inner) {}
  std::string_view kind() const override { return inner_.kind(); }
  std::string describe() const override { return inner_.describe(); }
  const api::driver_table& cuda() const override { return inner_.cuda(); }
  ::outboard::device::work_recorder* recorder() override { return &sensors_; }
  sensors sensors_;

 private:
  const ::outboard::device::device& inner_;
};

class samples : public loopback_session {
 protected:
  marshal::profile_samples_reply ask(bool on) {
    const auto payload = encoded(marshal::profile_samples_body{on});
    const frontend::outgoing question{
        static_cast<std::uint32_t>(marshal::service::profile_samples), 1, 0, payload, {}};
    std::vector<std::byte> bytes;
    EXPECT_EQ(session_->call(question, bytes), CUDA_SUCCESS);
    wire::reader from(bytes);
    auto reply = marshal::take_body<marshal::profile_samples_reply>(from);
    EXPECT_TRUE(from.finished());
    return reply;
  }
};

class samples_of_sensors : public samples {
 protected:
  ::outboard::device::device& used() override {
    if (!device_) device_ = std::make_unique<device_with_sensors>(*mock_);
    return *device_;
  }
  std::unique_ptr<device_with_sensors> device_;
};

TEST_F(samples_of_sensors, come_while_they_are_wanted_and_of_the_client_s_devices_alone) {
  start_client();
  const auto reply = ask(true);
  EXPECT_EQ(reply.refusal, "");
  EXPECT_EQ(reply.dropped, 3u);
  EXPECT_GE(reply.left, reply.came);
  EXPECT_GT(reply.came, 0u);
  ASSERT_EQ(reply.samples.size(), 1u);
  EXPECT_EQ(reply.samples[0].device, 0u);
  EXPECT_EQ(reply.samples[0].at, 5u);
  EXPECT_EQ(reply.samples[0].values[1], 700000u);
  EXPECT_TRUE(device_->sensors_.on_);
  EXPECT_TRUE(ask(false).samples.empty());
  EXPECT_FALSE(device_->sensors_.on_);
}

#ifdef OUTBOARD_WITH_CUPTI
TEST_F(samples_of_sensors, reach_the_program_s_profiler_with_their_time) {
  start_client();
  frontend::cupti::board_feed feed;
  EXPECT_TRUE(feed.fetch().empty());
  ASSERT_EQ(feed.start(*session_), "");
  EXPECT_TRUE(feed.on());
  const auto first = feed.fetch();
  ASSERT_EQ(first.size(), 1u);
  EXPECT_EQ(first[0].at, 5u);  // both ends have one clock
  EXPECT_EQ(first[0].values[0], 118000u);
  EXPECT_EQ(feed.take_dropped(), 3u);
  EXPECT_EQ(feed.take_dropped(), 0u);
  feed.stop();
  EXPECT_FALSE(feed.on());
  EXPECT_FALSE(device_->sensors_.on_);
  EXPECT_TRUE(feed.fetch().empty());
}

TEST_F(samples, are_not_begun_where_the_server_refuses_them) {
  start_client();
  frontend::cupti::board_feed feed;
  EXPECT_EQ(feed.start(*session_), "the server's device tells nothing of its work");
  EXPECT_FALSE(feed.on());
}
#endif

TEST_F(samples, are_refused_by_a_device_that_tells_nothing) {
  start_client();
  for (const bool on : {true, false}) {
    const auto reply = ask(on);
    EXPECT_EQ(reply.refusal, "the server's device tells nothing of its work");
    EXPECT_TRUE(reply.samples.empty());
  }
}

}  // namespace
}  // namespace outboard::tests
