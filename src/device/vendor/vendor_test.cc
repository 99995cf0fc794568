#include "device/vendor/vendor.hh"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "base/sanitizers.hh"
#include "base/temporary_folder.hh"
#include "device/vendor/cupti.hh"
#include "device/vendor/elf_symbols.hh"
#include "device/vendor/library_search.hh"
#include "device/vendor/loader_cache.hh"
#include "device/vendor/reservations.hh"

namespace outboard::device::vendor {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

/// A folder with shared objects built for one test.
class vendor_test : public ::testing::Test {
 protected:
  vendor_test() { folder_ = make_temporary_folder("outboard-vendor").value(); }
  ~vendor_test() override { std::filesystem::remove_all(folder_); }

  std::string build(const std::string& name, const std::string& source) {
    const std::string path = folder_ + "/" + name;
    std::ofstream(path + ".c") << source;
    const std::string command =
        std::string(OUTBOARD_TEST_CC) + " -shared -fPIC -o " + path + " " + path + ".c";
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
    return path;
  }

  std::string folder_;
};

TEST_F(vendor_test, MissingLibraryIsNamed) {
  auto opened = open({.library = folder_ + "/libcuda.so.1"});
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().message, HasSubstr(folder_ + "/libcuda.so.1"));
}

TEST_F(vendor_test, FileThatIsNoLibraryIsRefused) {
  std::ofstream(folder_ + "/libcuda.so.1") << "not a library";
  auto opened = open({.library = folder_ + "/libcuda.so.1"});
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().message, HasSubstr("not an ELF library"));
}

TEST_F(vendor_test, OwnFrontEndIsRefusedBeforeItsConstructorRuns) {
  const std::string library =
      build("libcuda.so.1",
            "#include <stdlib.h>\n"
            "int outboard_frontend_marker = 1;\n"
            "int cuInit(unsigned f) { return 0; }\n"
            "__attribute__((constructor)) void run(void) { setenv(\"OB_RAN\", \"1\", 1); }\n");
  ::unsetenv("OB_RAN");
  auto opened = open({.library = library});
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().message, HasSubstr("front-end library"));
  EXPECT_EQ(::getenv("OB_RAN"), nullptr);
}

TEST_F(vendor_test, OwnFrontEndOnTheSearchPathIsPassedOver) {
  build("libcuda.so.1", "int outboard_frontend_marker = 1; int cuInit(unsigned f) { return 0; }\n");
  std::filesystem::create_directory(folder_ + "/real");
  build("real/libcuda.so.1", "int cuInit(unsigned f) { return 0; }\n");
  ::setenv("LD_LIBRARY_PATH", (folder_ + "::" + folder_ + "/real").c_str(), 1);
  EXPECT_THAT(candidates(), Contains(folder_ + "/libcuda.so.1"));
  auto opened = open();
  ::unsetenv("LD_LIBRARY_PATH");
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_THAT((*opened)->describe(), HasSubstr(folder_ + "/real/libcuda.so.1"));
}

TEST_F(vendor_test, LibraryWithoutDriverSymbolsIsRefused) {
  auto opened = open({.library = build("libcuda.so.1", "int other(void) { return 0; }\n")});
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().message, HasSubstr("cuInit"));
}

TEST_F(vendor_test, OldDriverIsReadSymbolBySymbol) {
  auto opened = open({.library = build("libcuda.so.1",
                                       "int cuInit(unsigned f) { return 0; }\n"
                                       "int cuDriverGetVersion(int* v) { *v = 10020; return 0; }\n"
                                       "int cuMemAlloc_v2(void* p, unsigned long n) { return 2; }\n"
                                       "int cuStreamQuery_ptsz(void* s) { return 600; }\n")});
  ASSERT_TRUE(opened) << opened.error().message;
  const api::driver_table& table = (*opened)->cuda();
  EXPECT_EQ((*opened)->kind(), "vendor");
  EXPECT_THAT((*opened)->describe(), HasSubstr("CUDA 10.2"));
  ASSERT_NE(table.cuMemAlloc_v2, nullptr);
  CUdeviceptr at = 0;
  EXPECT_EQ(table.cuMemAlloc_v2(&at, 8), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(table.cuStreamQuery_ptsz(nullptr), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(table.cuStreamQuery, nullptr);
  EXPECT_EQ(table.cuMemAlloc, nullptr) << "the 32-bit ABI must not be taken for the _v2 one";
  EXPECT_EQ(table.cuLibraryLoadData, nullptr);
}

TEST_F(vendor_test, WhatTheDriverReservesLiesWhereItWasTold) {
  if (under_asan || under_tsan) GTEST_SKIP() << "sanitizers have an mmap() of their own";
  constexpr std::uint64_t begin = 0x2d00'0000'0000, granule = 2u << 20;
  const std::string library =
      build("libcuda.so.1",
            "#define _GNU_SOURCE\n"
            "#include <sys/mman.h>\n"
            "void* rooms[4];\n"
            "static void* room(unsigned long n, int rights) {\n"
            "  return mmap(0, n, rights, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);\n"
            "}\n"
            "int cuInit(unsigned f) { return 0; }\n"
            "int cuDriverGetVersion(int* v) {\n"
            "  rooms[0] = room(5 << 20, PROT_NONE), rooms[1] = room(4096, PROT_NONE);\n"
            "  rooms[2] = room(4 << 20, PROT_READ), rooms[3] = room(4 << 20, PROT_NONE);\n"
            "  *v = 13000; return 0;\n"
            "}\n");
  reserve_from(begin);
  auto opened = open({.library = library});
  reserve_from(0);
  ASSERT_TRUE(opened) << opened.error().message;
  void* const again = ::dlopen(library.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  const auto* const rooms = static_cast<const std::uint64_t*>(::dlsym(again, "rooms"));
  ASSERT_NE(rooms, nullptr);
  EXPECT_EQ(rooms[0], begin);
  EXPECT_EQ(rooms[3], begin + 3 * granule);
  for (const std::uint64_t other : {rooms[1], rooms[2]})
    EXPECT_TRUE(other < begin || other > begin + 16 * granule) << other << " is no reservation";
  void* const ours = ::mmap(nullptr, 4u << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT_NE(reinterpret_cast<std::uint64_t>(ours), begin + 5 * granule) << "only the driver's are placed";
  ::munmap(ours, 4u << 20);
}

TEST_F(vendor_test, NewDriverIsAskedWithVersionAndStreamFlags) {
  // Gives each question a recognisable function: the result says version and flags.
  auto opened = open(
      {.library = build(
           "libcuda.so.1",
           "#include <string.h>\n"
           "int cuInit(unsigned f) { return 0; }\n"
           "static int sync_old(void) { return 200; }\n"
           "static int sync_new(void* c) { return 300; }\n"
           "static int legacy(void* s) { return 1; }\n"
           "static int per_thread(void* s) { return 2; }\n"
           "int cuGetProcAddress_v2(const char* n, void** f, int v, unsigned long flags,\n"
           "                        int* status) {\n"
           "  *f = 0; *status = 1;\n"
           "  if (!strcmp(n, \"cuCtxSynchronize\")) *f = v >= 13000 ? (void*)sync_new : (void*)sync_old;\n"
           "  if (!strcmp(n, \"cuStreamQuery\")) *f = flags == 2 ? (void*)per_thread : (void*)legacy;\n"
           "  if (*f) *status = 0;\n"
           "  return 0;\n"
           "}\n")});
  ASSERT_TRUE(opened) << opened.error().message;
  const api::driver_table& table = (*opened)->cuda();
  EXPECT_EQ(table.cuCtxSynchronize(), 200);
  EXPECT_EQ(table.cuCtxSynchronize_v2(nullptr), 300);
  EXPECT_EQ(table.cuStreamQuery(nullptr), 1);
  EXPECT_EQ(table.cuStreamQuery_ptsz(nullptr), 2);
  EXPECT_EQ(table.cuMemAlloc_v2, nullptr);
}

TEST_F(vendor_test, DamagedElfFilesAreErrorsNotCrashes) {
  const std::string library = build("lib.so", "int outboard_frontend_marker = 1;\n");
  std::ifstream file(library, std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(file), {}};
  const std::string cut = folder_ + "/cut.so";
  for (std::size_t size = 1; size < whole.size(); size += 61) {
    std::ofstream(cut, std::ios::binary) << whole.substr(0, size);
    auto answer = elf_exports(cut, frontend_marker);
    // The section table stands last: without its beginning there is nothing to find.
    if (answer && size < whole.size() / 2) {
      EXPECT_EQ(*answer, elf_answer::absent) << size;
    }
  }
  EXPECT_EQ(elf_exports(library, frontend_marker).value(), elf_answer::exports);
  EXPECT_EQ(elf_exports(library, "something_else").value(), elf_answer::absent);
}

/// The probe of every start of a server asks for it.
TEST_F(vendor_test, CuptiIsFoundWithoutItsConstructorAndLoadedAtTheStart) {
  const auto recorder = make_cupti_recorder();
  if (!recorder) GTEST_SKIP() << "compiled without CUPTI's headers";
  // The front-end's stands first where a server runs beside a client, one that is no library may stand there.
  for (const char* folder : {"/own", "/broken", "/real"}) std::filesystem::create_directory(folder_ + folder);
  build("own/libcupti.so.13", "int outboard_frontend_marker = 1;\n");
  std::ofstream(folder_ + "/broken/libcupti.so.13") << "not a library";
  const std::string real =
      build("real/libcupti.so.13",
            "#include <stdlib.h>\n"
            "__attribute__((constructor)) void run(void) { setenv(\"OB_RAN\", \"1\", 1); }\n");
  ::setenv("LD_LIBRARY_PATH", (folder_ + "/own:" + folder_ + "/broken:" + folder_ + "/real").c_str(), 1);
  ::unsetenv("OB_RAN");
  EXPECT_TRUE(recorder->look().ok());
  EXPECT_EQ(::getenv("OB_RAN"), nullptr);
  const status started = recorder->start();
  ::unsetenv("LD_LIBRARY_PATH");
  EXPECT_STREQ(::getenv("OB_RAN"), "1");
  ASSERT_FALSE(started.ok());
  EXPECT_THAT(started.error().message, HasSubstr("lacks functions"));
}

TEST_F(vendor_test, FoldersAreSearchedInOrderAndTheSameFileOnce) {
  for (const char* folder : {"/a", "/b"}) std::filesystem::create_directory(folder_ + folder);
  for (const char* file : {"/a/libx.so.1", "/b/libx.so.1"}) std::ofstream(folder_ + file) << "x";
  std::filesystem::create_directory_symlink(folder_ + "/a", folder_ + "/c");
  ::setenv("LD_LIBRARY_PATH", (folder_ + "/b:" + folder_ + "/nowhere").c_str(), 1);
  const std::string a = folder_ + "/a", c = folder_ + "/c";
  const std::array folders{c.c_str(), a.c_str()};
  const auto found = find_library("libx.so.1", folders);
  ::unsetenv("LD_LIBRARY_PATH");
  EXPECT_EQ(found, (std::vector<std::string>{folder_ + "/b/libx.so.1", folder_ + "/a/libx.so.1"}));
}

TEST_F(vendor_test, LoaderCacheKnowsLibc) {
  if (!std::filesystem::exists("/etc/ld.so.cache")) GTEST_SKIP() << "no loader cache here";
  const auto paths = loader_cache_paths("libc.so.6");
  ASSERT_FALSE(paths.empty());
  EXPECT_TRUE(std::filesystem::exists(paths.front())) << paths.front();
  EXPECT_TRUE(loader_cache_paths("libnothing-of-that-name.so.1").empty());
}

/// Where there is a driver: an entry must be the function of its own name, whatever way it was found.
TEST(real_driver_test, EntriesAreTheSymbolsOfTheirNames) {
  if (candidates().empty()) GTEST_SKIP() << "no driver here";
  auto opened = open();
  if (!opened) GTEST_SKIP() << opened.error().message;
  api::driver_table table = (*opened)->cuda();
  int filled = 0, missing = 0;
  api::for_each_entry(table, [&](std::string_view name, void** slot) {
    Dl_info about{};
    if (*slot == nullptr) {
      ++missing;
      std::cout << "missing: " << name << "\n";
      return;
    }
    ++filled;
    // Functions that are not exported have no name to compare.
    if (::dladdr(*slot, &about) == 0 || about.dli_sname == nullptr || about.dli_saddr != *slot) return;
    EXPECT_EQ(about.dli_sname, name);
  });
  std::cout << (*opened)->describe() << ": " << filled << " entries, " << missing << " missing\n";
  EXPECT_GT(filled, 300);
  EXPECT_EQ(table.cuInit(0), CUDA_SUCCESS);
}

}  // namespace
}  // namespace outboard::device::vendor
