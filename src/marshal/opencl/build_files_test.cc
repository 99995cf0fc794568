#include "marshal/opencl/build_files.hh"

#include <gtest/gtest.h>

#include "marshal/body_testing.hh"

namespace outboard::marshal::opencl {
namespace {

using namespace std::string_literals;

build_files_body sample() {
  build_files_body body;
  body.here = "/home/u";
  body.folders = {"/inc"};
  body.files.push_back({"/inc/x.h", sha256({}), 0, file_bytes::kept});
  body.contents = {0, 0, true};
  return body;
}

TEST(build_files, arrive_as_they_were_sent_or_not_at_all) {
  marshal::testing::expect_body("build_files_body", sample());
}

TEST(build_files, plain_paths_lead_where_they_say) {
  for (const std::string& path : {"/"s, "/a"s, "/a b/c\\d/..x/.y"s, "/" + std::string(255, 'x'), "/a/...."s})
    EXPECT_TRUE(is_plain_path(path)) << path;
  std::string long_path;
  while (long_path.size() < 4096) long_path += "/x";
  for (const std::string& path :
       {""s, "a"s, "a/b"s, "//"s, "/a/"s, "/a//b"s, "/."s, "/.."s, "/a/../b"s, "/a/./b"s, "/a/.."s, "../a"s,
        "/a\0b"s, "/\0"s, "/" + std::string(256, 'x'), long_path})
    EXPECT_FALSE(is_plain_path(path)) << path;
}

TEST(build_files, the_worker_refuses_wrong_files) {
  EXPECT_TRUE(well_formed(sample()));
  const auto refused = [](auto&& change) {
    build_files_body body = sample();
    change(body);
    return !well_formed(body);
  };
  EXPECT_TRUE(refused([](auto& body) { body.here = "home"; }));
  EXPECT_TRUE(refused([](auto& body) { body.here = "/home/.."; }));
  EXPECT_TRUE(refused([](auto& body) { body.folders.push_back("/.."); }));
  EXPECT_TRUE(refused([](auto& body) { body.files[0].path = "/a/../../etc/x"; }));
  EXPECT_TRUE(refused([](auto& body) { body.files[0].path = "/"; }));
  EXPECT_TRUE(refused([](auto& body) { body.files[0].bytes = static_cast<file_bytes>(3); }));
  EXPECT_TRUE(refused([](auto& body) { body.files[0].size = most_build_file_bytes + 1; }));
  EXPECT_TRUE(refused([](auto& body) {
    body.files[0].size = most_build_file_bytes;
    body.files.push_back(body.files[0]);
    body.files[1].size = 1;
  }));
  EXPECT_TRUE(refused([](auto& body) { body.files.resize(most_build_files + 1, body.files[0]); }));
  EXPECT_TRUE(refused([](auto& body) { body.folders.resize(most_build_files + 1, "/a"); }));
}

TEST(build_files, a_set_is_named_by_its_contents) {
  const std::string name = name_of_set(sample());
  EXPECT_EQ(name.size(), 9u + 32u);
  EXPECT_TRUE(name.starts_with("outboard_"));
  EXPECT_EQ(name_of_set(sample()), name);
  const auto changed = [&](auto&& change) {
    build_files_body body = sample();
    change(body);
    return name_of_set(body) != name;
  };
  EXPECT_TRUE(changed([](auto& body) { body.files[0].digest[31] ^= std::byte{1}; }));
  EXPECT_TRUE(changed([](auto& body) { body.files[0].path = "/inc/y.h"; }));
  EXPECT_TRUE(changed([](auto& body) { body.here = "/"; }));
  EXPECT_TRUE(changed([](auto& body) { body.folders.clear(); }));
  EXPECT_FALSE(changed([](auto& body) { body.files[0].bytes = file_bytes::known; })) << "however they travel";
}

}  // namespace
}  // namespace outboard::marshal::opencl
