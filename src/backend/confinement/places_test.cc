#include "backend/confinement/places.hh"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>

#include "base/folder_testing.hh"

namespace outboard::backend {
namespace {

namespace fs = std::filesystem;

struct places_test : folder_test {
  places_test() : folder_test("places-test") {
    for (const char* name : {"vendors", "platform", "real"}) fs::create_directory(in(name));
    std::ofstream(in("real/lib.so.1.2")) << "";
    fs::create_symlink(in("real/lib.so.1.2"), in("platform/lib.so.1"));
    write("vendors/one.icd", in("platform/lib.so.1"));
    write("vendors/two.icd", "libfound_by_the_loader.so");
    write("vendors/notes.txt", "/root/lib.so");
  }

  void write(const std::string& name, const std::string& line) { std::ofstream(in(name)) << line << "\n"; }

  /// Which of the usual places is it not?
  std::vector<std::string> more(const std::map<std::string, std::string>& set) {
    const auto none = [](const char*) -> const char* { return nullptr; };
    std::vector<std::string> usual = paths(none);
    std::vector<std::string> found = paths([&](const char* name) -> const char* {
      const auto at = set.find(name);
      return at == set.end() ? nullptr : at->second.c_str();
    });
    std::erase_if(found,
                  [&](const std::string& path) { return std::ranges::find(usual, path) != usual.end(); });
    std::ranges::sort(found);
    return found;
  }
  static std::vector<std::string> paths(const std::function<const char*(const char*)>& variable) {
    std::vector<std::string> list;
    for (const place& each : places_of(executor::platforms, variable)) list.push_back(each.path);
    return list;
  }
  std::string in(const std::string& name) const { return base + "/" + name; }
};

using list = std::vector<std::string>;

TEST_F(places_test, are_where_the_operator_has_platforms) {
  const list all{in("platform"), in("real"), in("vendors"), in("vendors/one.icd"), in("vendors/two.icd")};
  EXPECT_EQ(more({{"OCL_ICD_VENDORS", in("vendors")}}), all);
  EXPECT_EQ(more({{"OCL_ICD_VENDORS", in("vendors/one.icd")}}),
            (list{in("platform"), in("real"), in("vendors/one.icd")}));
  EXPECT_EQ(more({{"OCL_ICD_VENDORS", in("platform/lib.so.1")}}), (list{in("platform"), in("real")}));
  EXPECT_EQ(more({{"OCL_ICD_FILENAMES", "libx.so:" + in("platform/lib.so.1")}}),
            (list{in("platform"), in("real")}));
  EXPECT_EQ(more({{"LD_LIBRARY_PATH", ":" + in("platform") + "::relative"}}), (list{in("platform")}));
}

TEST_F(places_test, are_never_everything) {
  EXPECT_EQ(more({{"LD_LIBRARY_PATH", "/:/../"}}), list{});
  EXPECT_EQ(more({{"OCL_ICD_FILENAMES", "/lib.so:/usr/../lib.so"}}), list{});
  write("vendors/one.icd", "/lib.so");
  EXPECT_EQ(more({{"OCL_ICD_VENDORS", in("vendors/one.icd")}}), (list{in("vendors/one.icd")}));
}

TEST_F(places_test, of_the_interpreter_are_no_devices_but_those_without_content) {
  const auto none = [](const char*) -> const char* { return nullptr; };
  std::vector<std::string> devices;
  for (const place& each : places_of(executor::interpreter, none)) {
    if (each.what != permission::read) devices.push_back(each.path);
  }
  EXPECT_EQ(devices, (list{"/dev/full", "/dev/null", "/dev/random", "/dev/urandom", "/dev/zero"}));
}

TEST_F(places_test, of_a_driver_include_what_mps_needs_where_it_is_used) {
  const auto paths = [](const char* folder) {
    std::vector<std::string> found;
    const auto variable = [&](const char* name) -> const char* {
      return std::string_view(name) == "CUDA_MPS_PIPE_DIRECTORY" ? folder : nullptr;
    };
    for (const place& each : places_of(executor::driver, variable)) {
      if (each.what == permission::change) found.push_back(each.path);
    }
    return found;
  };
  EXPECT_EQ(paths(nullptr), list{"/dev/shm"});
  EXPECT_EQ(paths("/"), list{"/dev/shm"});
  EXPECT_EQ(paths("relative"), list{"/dev/shm"});
  EXPECT_EQ(paths("/run/mps"), (list{"/dev/shm", "/run/mps"}));
}

TEST_F(places_test, are_written_only_where_they_are_devices) {
  for (const place& each :
       places_of(executor::platforms, [](const char*) -> const char* { return nullptr; })) {
    const bool threads = each.path == "/proc/self/task";  // the driver names its threads there
    EXPECT_EQ(each.what, threads                          ? permission::rewrite
                         : each.path.starts_with("/dev/") ? permission::device
                                                          : permission::read)
        << each.path;
  }
}

}  // namespace
}  // namespace outboard::backend
