// Loads of several threads at once: each lane has uploads of its own, and the driver loads beside what other
// lanes ask. The mock's driver waits inside a load until the test lets it go.
#include "loopback_session.hh"
#include "marshal/cuda/kernel_table.hh"

namespace outboard::tests {
namespace {

class parallel_loads : public loopback_session {
 protected:
  static std::vector<std::byte> image_of(std::string_view kernel) {
    const std::string ptx = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry " +
                            std::string(kernel) + "() { ret; }\n";
    std::vector<std::byte> text(ptx.size() + 1, std::byte{0});
    std::memcpy(text.data(), ptx.data(), ptx.size());
    const auto view = marshal::image_extent(std::span<const std::byte>(text));
    const auto image = marshal::module_image::select(*view, {9, 0, false, false});
    return image->encoded();
  }
  CUresult upload(std::uint32_t lane, std::span<const std::byte> bytes) {
    frontend::outgoing out{
        static_cast<std::uint32_t>(marshal::service::upload), lane, context_handle, {}, {}};
    out.bulk = bytes;
    return session_->post(out);
  }
  static std::uint64_t module_of(std::uint32_t lane) { return wire::handle::make(2, lane, 1).value; }
  CUresult load_uploaded(std::uint32_t lane, std::uint64_t size, std::vector<std::byte>* reply = nullptr) {
    return call(lane, opcode::cuModuleLoadData,
                encoded(marshal::load_body{module_of(lane), size, 9, 0, false, {}}), reply);
  }
  CUresult function_of(std::uint32_t lane, std::string_view kernel) {
    return call(lane, opcode::cuModuleGetFunction,
                encoded(marshal::derive_body{module_of(lane), wire::handle::make(3, lane, 1).value,
                                             std::string(kernel)}));
  }
  static constexpr auto entry = "cuModuleLoadDataEx";
};

TEST_F(parallel_loads, several_threads_are_inside_the_driver_at_once_and_others_ask_on) {
  start_client();
  ASSERT_EQ(synchronize(1), CUDA_SUCCESS);
  constexpr std::uint32_t loaders = 4;
  for (std::uint32_t lane = 2; lane < 2 + loaders; ++lane) ASSERT_EQ(synchronize(lane), CUDA_SUCCESS);
  mock_->block(entry);
  std::vector<std::thread> threads;
  for (std::uint32_t lane = 2; lane < 2 + loaders; ++lane) {
    threads.emplace_back([this, lane] {
      const auto image = image_of("k" + std::to_string(lane));
      EXPECT_EQ(upload(lane, image), CUDA_SUCCESS);
      std::vector<std::byte> reply;
      EXPECT_EQ(load_uploaded(lane, image.size(), &reply), CUDA_SUCCESS);
      wire::reader from(reply);
      const auto loaded = marshal::take_body<marshal::load_reply>(from);
      const auto table = marshal::decode_kernel_table(std::as_bytes(std::span(loaded.kernels)));
      ASSERT_TRUE(table.ok());
      ASSERT_EQ(table->kernels.size(), 1u);
      EXPECT_EQ(table->kernels.front().name, "k" + std::to_string(lane));  // its own upload, nobody else's
      EXPECT_EQ(function_of(lane, "k" + std::to_string(lane)), CUDA_SUCCESS);
    });
  }
  EXPECT_TRUE(mock_->wait_blocked(entry, loaders, 5s));
  for (std::uint32_t i = 0; i < 20; ++i) EXPECT_EQ(create_event(1, i), CUDA_SUCCESS);
  EXPECT_EQ(synchronize(1), CUDA_SUCCESS);
  mock_->release(entry);
  for (auto& t : threads) t.join();
}

TEST_F(parallel_loads, one_thread_finds_what_another_has_loaded) {
  start_client();
  ASSERT_EQ(synchronize(2), CUDA_SUCCESS);
  for (std::uint32_t round = 0; round < 50; ++round) {
    const std::uint32_t id = 10 + round;
    const auto image = image_of("k");
    std::thread([&] {
      ASSERT_EQ(upload(2, image), CUDA_SUCCESS);
      ASSERT_EQ(call(2, opcode::cuModuleLoadData,
                     encoded(marshal::load_body{module_of(id), image.size(), 9, 0, false, {}})),
                CUDA_SUCCESS);
    }).join();
    ASSERT_EQ(call(1, opcode::cuModuleGetFunction,
                   encoded(marshal::derive_body{module_of(id), wire::handle::make(3, id, 1).value, "k"})),
              CUDA_SUCCESS);
  }
}

TEST_F(parallel_loads, pieces_of_two_uploads_that_take_turns_do_not_mix) {
  start_client();
  const auto a = image_of("first"), b = image_of("second");
  const std::span<const std::byte> all_a(a), all_b(b);
  ASSERT_EQ(upload(1, all_a.first(40)), CUDA_SUCCESS);
  ASSERT_EQ(upload(2, all_b.first(30)), CUDA_SUCCESS);
  ASSERT_EQ(upload(1, all_a.subspan(40)), CUDA_SUCCESS);
  ASSERT_EQ(upload(2, all_b.subspan(30)), CUDA_SUCCESS);
  EXPECT_EQ(load_uploaded(1, a.size()), CUDA_SUCCESS);
  EXPECT_EQ(load_uploaded(2, b.size()), CUDA_SUCCESS);
}

TEST_F(parallel_loads, a_handle_that_is_in_use_ends_the_session) {
  start_client();
  ASSERT_EQ(synchronize(2), CUDA_SUCCESS);
  const auto image = image_of("k");
  ASSERT_EQ(upload(1, image), CUDA_SUCCESS);
  ASSERT_EQ(load_uploaded(1, image.size()), CUDA_SUCCESS);
  ASSERT_EQ(upload(1, image), CUDA_SUCCESS);
  (void)load_uploaded(1, image.size());
  EXPECT_NE(synchronize(2), CUDA_SUCCESS);
}

TEST_F(parallel_loads, a_load_that_fails_leaves_its_lane_ready_for_the_next) {
  start_client();
  ASSERT_EQ(synchronize(2), CUDA_SUCCESS);
  const auto image = image_of("k");
  mock_->fail(entry, CUDA_ERROR_INVALID_PTX, 1);
  ASSERT_EQ(upload(1, image), CUDA_SUCCESS);
  EXPECT_EQ(load_uploaded(1, image.size()), CUDA_ERROR_INVALID_PTX);
  ASSERT_EQ(upload(1, image), CUDA_SUCCESS);
  EXPECT_EQ(load_uploaded(1, image.size()), CUDA_SUCCESS);
  EXPECT_EQ(function_of(1, "k"), CUDA_SUCCESS);
}

}  // namespace
}  // namespace outboard::tests
