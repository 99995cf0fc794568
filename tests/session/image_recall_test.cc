// A module image that was loaded before, in the place of an upload: asked for by name and proof, beside what
// else a lane has uploaded.
#include <filesystem>

#include "backend/disk/image_cache.hh"
#include "base/temporary_folder.hh"
#include "loopback_session.hh"
#include "marshal/cuda/image_bodies.hh"
#include "marshal/cuda/image_name.hh"
#include "wire/features.hh"

namespace outboard::tests {
namespace {

namespace fs = std::filesystem;

class image_recall : public loopback_session {
 protected:
  void SetUp() override {
    folder_ = make_temporary_folder("image_recall_test").value();
    auto opened = backend::image_cache::open(folder_.string(), 64u << 20);
    ASSERT_TRUE(opened.ok());
    cache_.emplace(std::move(*opened));
    terms_.challenge.fill(std::byte{7});
    loopback_session::SetUp();
  }
  void TearDown() override {
    loopback_session::TearDown();
    fs::remove_all(folder_);
  }
  void adjust(backend::session_request& request, backend::cuda_terms& cuda) override {
    request.hello.features = wire::feature_image_recall | wire::feature_lane_uploads;
    cuda.images = &*cache_;
    cuda.image_access = terms_;
  }

  static std::vector<std::byte> image_of(std::string_view kernel, std::size_t size = 0) {
    const std::string ptx = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry " +
                            std::string(kernel) + "() { ret; }\n" + std::string(size, ' ');
    std::vector<std::byte> text(ptx.size() + 1, std::byte{0});
    std::memcpy(text.data(), ptx.data(), ptx.size());
    const auto view = marshal::image_extent(std::span<const std::byte>(text));
    return marshal::module_image::select(*view, {9, 0, false, false})->encoded();
  }
  marshal::recall_body question(const std::vector<std::byte>& image) const {
    const auto key = marshal::key_of(image);
    return {marshal::name_of(key), marshal::proof_of(key, terms_.challenge), image.size()};
  }
  bool ask(std::uint32_t lane, const marshal::recall_body& body) {
    std::vector<std::byte> reply;
    EXPECT_EQ(call(lane, static_cast<opcode>(marshal::service::image_recall), encoded(body), &reply),
              CUDA_SUCCESS);
    wire::reader from(reply);
    const auto answer = marshal::take_body<marshal::recall_reply>(from);
    EXPECT_TRUE(from.finished());
    return answer.found;
  }
  void upload(std::uint32_t lane, std::span<const std::byte> bytes) {
    frontend::outgoing out{
        static_cast<std::uint32_t>(marshal::service::upload), lane, context_handle, {}, {}};
    out.bulk = bytes;
    ASSERT_EQ(session_->post(out), CUDA_SUCCESS);
  }
  CUresult load(std::uint32_t lane, std::uint64_t size) {
    const std::uint64_t handle = wire::handle::make(2, ++modules_, 1).value;
    return call(lane, opcode::cuModuleLoadData, encoded(marshal::load_body{handle, size, 9, 0, false, {}}));
  }
  void keep(const std::vector<std::byte>& image) {
    const std::atomic<bool> go_on{false};
    cache_->store(terms_.scope, image, go_on);
  }
  bool is_kept(const std::vector<std::byte>& image) const {
    const fs::path file =
        folder_ / backend::image_file(terms_.scope, marshal::name_of(marshal::key_of(image)));
    for (int tries = 0; tries < 100 && !fs::exists(file); ++tries) std::this_thread::sleep_for(10ms);
    return fs::exists(file);
  }
  std::size_t files() const {
    std::size_t count = 0;
    for (const auto& entry : fs::directory_iterator(folder_)) count += entry.path().filename() != ".lock";
    return count;
  }

  fs::path folder_;
  std::optional<backend::image_cache> cache_;
  backend::image_terms terms_;
  std::uint32_t modules_ = 0;
};

TEST_F(image_recall, what_was_asked_for_in_vain_is_kept_and_then_found) {
  start_client();
  const auto image = image_of("k");
  EXPECT_FALSE(ask(1, question(image)));
  upload(1, image);
  EXPECT_EQ(load(1, image.size()), CUDA_SUCCESS);
  ASSERT_TRUE(is_kept(image));
  EXPECT_TRUE(ask(2, question(image)));
  EXPECT_EQ(load(2, image.size()), CUDA_SUCCESS);
  EXPECT_TRUE(ask(1, question(image)));
  EXPECT_EQ(load(1, image.size()), CUDA_SUCCESS);
  EXPECT_EQ(mock_->calls("cuModuleLoadDataEx"), 3u);
}

TEST_F(image_recall, what_nobody_asked_for_or_did_not_load_is_not_kept) {
  start_client();
  const auto image = image_of("k"), other = image_of("other");
  upload(1, image);
  EXPECT_EQ(load(1, image.size()), CUDA_SUCCESS);
  EXPECT_FALSE(ask(1, question(other)));
  upload(1, other);
  mock_->fail("cuModuleLoadDataEx", CUDA_ERROR_INVALID_PTX, 1);
  EXPECT_EQ(load(1, other.size()), CUDA_ERROR_INVALID_PTX);
  EXPECT_FALSE(ask(1, marshal::recall_body{}));  // only to be answered
  upload(1, image);
  EXPECT_EQ(load(1, image.size()), CUDA_SUCCESS);
  session_->goodbye();
  serving_.join();
  serving_ = std::thread([] {});
  EXPECT_EQ(files(), 0u);
}

TEST_F(image_recall, it_takes_the_place_of_what_was_uploaded_and_only_if_it_is_found) {
  keep(image_of("kept"));
  start_client();
  const auto kept = image_of("kept"), other = image_of("other");
  upload(1, std::span(kept).first(50));
  EXPECT_TRUE(ask(1, question(kept)));
  EXPECT_EQ(load(1, kept.size()), CUDA_SUCCESS);
  upload(1, std::span(other).first(50));
  EXPECT_FALSE(ask(1, question(other)));
  upload(1, std::span(other).subspan(50));
  EXPECT_EQ(load(1, other.size()), CUDA_SUCCESS);
}

TEST_F(image_recall, without_proof_or_under_another_size_there_is_none) {
  keep(image_of("kept"));
  start_client();
  const marshal::recall_body right = question(image_of("kept"));
  marshal::recall_body wrong = right;
  for (std::size_t bit = 0; bit < 256; ++bit) {
    wrong.proof[bit / 8] = static_cast<std::uint8_t>(right.proof[bit / 8] ^ 1u << (bit % 8));
    EXPECT_FALSE(ask(1, wrong)) << bit;
    wrong = right;
  }
  for (const std::uint64_t size : {right.size - 1, right.size + 1, std::uint64_t{1}, ~std::uint64_t{0}}) {
    wrong.size = size;
    EXPECT_FALSE(ask(1, wrong)) << size;
  }
  EXPECT_TRUE(ask(1, right));
}

TEST_F(image_recall, several_threads_ask_at_once) {
  for (int i = 0; i < 4; ++i) keep(image_of("k" + std::to_string(i), 300'000));
  start_client();
  std::vector<std::thread> threads;
  std::atomic<std::uint32_t> handle{100};
  for (std::uint32_t lane = 1; lane <= 4; ++lane) {
    threads.emplace_back([&, lane] {
      for (int round = 0; round < 20; ++round) {
        const auto image =
            image_of("k" + std::to_string((lane + static_cast<std::uint32_t>(round)) % 4), 300'000);
        ASSERT_TRUE(ask(lane, question(image)));
        const std::uint64_t made = wire::handle::make(2, handle++, 1).value;
        EXPECT_EQ(call(lane, opcode::cuModuleLoadData,
                       encoded(marshal::load_body{made, image.size(), 9, 0, false, {}})),
                  CUDA_SUCCESS);
      }
    });
  }
  for (auto& t : threads) t.join();
}

}  // namespace
}  // namespace outboard::tests
