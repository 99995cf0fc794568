// Images as nvcc really makes them: every architecture style, every compression mode, relocatable device
// code. Skipped where there is no nvcc.
#include <elf.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "base/temporary_folder.hh"
#include "marshal/cuda/image_entries.hh"
#include "marshal/cuda/image_testing.hh"
#include "marshal/cuda/kernel_table.hh"

namespace outboard::marshal {
namespace {

using namespace testing;

const char* const program = R"(
struct s3 { char c[3]; };
struct s12 { int a, b, c; };
struct __align__(16) s16 { int a; };
struct nothing {};
__constant__ float table[64];
__device__ int counter[10];
__device__ double initialised = 3.0;
__managed__ int both[5];
extern "C" __global__ void odd(char a, double b, s3 c, float4 d, short e, int* f, s12 g, s16 h, bool i, nothing j,
                               int k, const __grid_constant__ s12 l) {
  __shared__ float sh[100];
  sh[threadIdx.x] = table[threadIdx.x & 63] + a + b + c.c[0] + d.x + e + g.a + h.a + i + k + l.b;
  __syncthreads();
  f[threadIdx.x] = sh[99 - threadIdx.x] + counter[a] + initialised + both[1];
}
extern "C" __global__ void __launch_bounds__(256, 2) bounded(float* p) { p[0] = 1; }
extern "C" __global__ void nothing_at_all() {}
struct large { char c[20000]; };
#ifdef LARGE
extern "C" __global__ void wide(int x, const __grid_constant__ large y, int* z) { z[0] = y.c[x]; }
#endif
)";

std::string find_nvcc() {
  for (const char* variable : {"OUTBOARD_TOOLKIT", "CUDA_HOME"}) {
    if (const char* const root = getenv(variable)) {
      const std::string path = std::string(root) + "/bin/nvcc";
      if (access(path.c_str(), X_OK) == 0) return path;
    }
  }
  const char* const usual = "/usr/local/cuda/bin/nvcc";
  return access(usual, X_OK) == 0 ? usual : "";
}

class compiled : public ::testing::Test {
 protected:
  void SetUp() override {
    nvcc_ = find_nvcc();
    if (nvcc_.empty()) GTEST_SKIP() << "no nvcc in OUTBOARD_TOOLKIT, CUDA_HOME or /usr/local/cuda";
    const auto made = make_temporary_folder("outboard_image");
    ASSERT_TRUE(made.ok());
    folder_ = *made;
    std::ofstream(folder_ / "odd.cu") << program;
  }
  void TearDown() override {
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }

  byte_vector compile(const std::string& flags) {
    const auto out = folder_ / "out";
    const std::string command = nvcc_ + " " + flags + " -o " + out.string() + " " +
                                (folder_ / "odd.cu").string() + " > " + (folder_ / "log").string() + " 2>&1";
    if (std::system(command.c_str()) != 0) {
      std::ifstream log(folder_ / "log");
      ADD_FAILURE() << command << "\n" << std::string(std::istreambuf_iterator<char>(log), {});
    }
    std::ifstream file(out, std::ios::binary);
    return bytes_of(std::string(std::istreambuf_iterator<char>(file), {}));
  }

  std::string nvcc_;
  std::filesystem::path folder_;
};

const std::vector<kernel_parameter> odd_layout = {{0, 1},   {8, 8},   {16, 3}, {32, 16}, {48, 2},  {56, 8},
                                                  {64, 12}, {80, 16}, {96, 1}, {97, 1},  {100, 4}, {104, 12}};

void expect_odd(const image_view& view, const image_target& target, kernel_source source) {
  const auto sent = module_image::select(view, target);
  ASSERT_TRUE(sent) << sent.error().message;
  const auto got = module_image::decode(sent->encoded());
  ASSERT_TRUE(got) << got.error().message;
  const auto table = parse_kernels(got->view(), target);
  ASSERT_TRUE(table) << table.error().message;
  EXPECT_EQ(table->source, source);
  const kernel_info* const odd = table->find_kernel("odd");
  ASSERT_NE(odd, nullptr);
  EXPECT_TRUE(odd->layout_known);
  EXPECT_EQ(odd->parameters, odd_layout);
  EXPECT_EQ(odd->parameter_bytes, 116u);
  EXPECT_TRUE(table->find_kernel("nothing_at_all")->layout_known);
  const auto check = [&](const char* name, variable_space space, std::uint64_t size) {
    const variable_info* const v = table->find_variable(name);
    ASSERT_NE(v, nullptr) << name;
    EXPECT_EQ(v->space, space) << name;
    EXPECT_EQ(v->size, size) << name;
  };
  check("table", variable_space::constant, 256);
  check("counter", variable_space::global, 40);
  check("initialised", variable_space::global, 8);
  check("both", variable_space::managed, 20);
  if (view.linked && source == kernel_source::ptx) return;  // linking decides about the rest
  EXPECT_EQ(table->find_kernel("bounded")->max_threads, 256);
  if (source != kernel_source::cubin) return;
  EXPECT_EQ(odd->static_shared, 400);
  EXPECT_EQ(odd->constant_bytes, 256);
  EXPECT_EQ(odd->binary_version, static_cast<int>(target.major * 10 + target.minor));
  EXPECT_GT(odd->registers, 0);
}

constexpr image_target turing{7, 5, false, false}, hopper{9, 0, false, false}, blackwell{10, 0, false, false},
    later{12, 1, false, false}, interpreter{7, 5, true, false};

TEST_F(compiled, every_architecture_gives_the_same_table) {
  const byte_vector fatbin = compile(
      "-fatbin -gencode arch=compute_75,code=[sm_75,compute_75] -gencode arch=compute_90a,code=sm_90a"
      " -gencode arch=compute_100f,code=sm_100f");
  const auto view = image_extent(std::span<const std::byte>(fatbin));
  ASSERT_TRUE(view) << view.error().message;
  expect_odd(*view, turing, kernel_source::cubin);
  expect_odd(*view, hopper, kernel_source::cubin);
  expect_odd(*view, blackwell, kernel_source::cubin);
  expect_odd(*view, later, kernel_source::ptx);
  expect_odd(*view, interpreter, kernel_source::ptx);
  const auto sent = module_image::select(*view, hopper);
  EXPECT_TRUE(sent->reduced());
  EXPECT_LT(sent->encoded().size(), fatbin.size() / 2);
}

TEST_F(compiled, every_compression_mode_is_read) {
  for (const char* mode : {"size", "speed", "balance", "none"}) {
    SCOPED_TRACE(mode);
    const byte_vector fatbin = compile(
        "-fatbin -gencode arch=compute_75,code=[sm_75,compute_75] -compress-mode=" + std::string(mode));
    const auto view = image_extent(std::span<const std::byte>(fatbin));
    ASSERT_TRUE(view) << view.error().message;
    expect_odd(*view, turing, kernel_source::cubin);
    expect_odd(*view, interpreter, kernel_source::ptx);
  }
}

TEST_F(compiled, what_prints_is_known) {
  for (const auto& [body, prints] :
       {std::pair("printf(\"%d\", x);", true), std::pair("if (x) __trap();", false)}) {
    SCOPED_TRACE(body);
    std::ofstream(folder_ / "odd.cu") << "#include <cstdio>\n__device__ __noinline__ void say(int x) { "
                                      << body << " }\n__global__ void kernel(int x) { say(x); }\n";
    for (const char* flags : {"", "-rdc=true "}) {
      const byte_vector fatbin =
          compile(flags + std::string("-fatbin -gencode arch=compute_75,code=[sm_75,compute_75]"));
      const auto view = image_extent(std::span<const std::byte>(fatbin));
      ASSERT_TRUE(view) << view.error().message;
      for (const image_target& target : {turing, interpreter}) {
        const auto table = parse_kernels(*view, target);
        ASSERT_TRUE(table) << table.error().message;
        EXPECT_EQ(table->prints, prints);
      }
    }
  }
}

TEST_F(compiled, parameters_above_4_kb_have_a_layout) {
  const byte_vector file = compile("-cubin -arch=sm_90 -DLARGE");
  const auto table = parse_cubin(file);
  ASSERT_TRUE(table) << table.error().message;
  EXPECT_EQ(table->find_kernel("wide")->parameters,
            (std::vector<kernel_parameter>{{0, 4}, {4, 20000}, {20008, 8}}));
}

/// The content of one section of an ELF file of the host.
std::span<const std::byte> host_section(const byte_vector& file, std::string_view name) {
  Elf64_Ehdr header;
  std::memcpy(&header, file.data(), sizeof header);
  const auto section = [&](std::size_t n) {
    Elf64_Shdr s;
    std::memcpy(&s, file.data() + header.e_shoff + n * sizeof s, sizeof s);
    return s;
  };
  const auto* const names = reinterpret_cast<const char*>(file.data()) + section(header.e_shstrndx).sh_offset;
  for (std::size_t n = 0; n < header.e_shnum; ++n) {
    const Elf64_Shdr s = section(n);
    if (names + s.sh_name == name) return std::span(file).subspan(s.sh_offset, s.sh_size);
  }
  return {};
}

TEST_F(compiled, relocatable_device_code_is_taken_linked_or_as_objects) {
  const byte_vector library =
      compile("-shared -Xcompiler -fPIC -rdc=true -gencode arch=compute_90,code=[sm_90,compute_90]");
  const auto linked = image_extent(host_section(library, ".nv_fatbin"));
  ASSERT_TRUE(linked) << linked.error().message;
  image_view view{image_kind::fatbin, true, {linked->parts[0]}};
  auto objects = host_section(library, "__nv_relfatbin");
  while (objects.size() >= 16) {
    const auto next = image_extent(objects);
    ASSERT_TRUE(next) << next.error().message;
    view.parts.push_back(next->parts[0]);
    objects = objects.subspan(std::min<std::size_t>(objects.size(), (next->size() + 7) / 8 * 8));
  }
  ASSERT_GE(view.parts.size(), 2u);
  expect_odd(view, hopper, kernel_source::cubin);
  expect_odd(view, later, kernel_source::ptx);
  expect_odd(view, interpreter, kernel_source::ptx);
  EXPECT_FALSE(module_image::select(view, hopper)->view().linked);
  EXPECT_TRUE(module_image::select(view, interpreter)->view().linked);
  EXPECT_EQ(module_image::select(view, turing).error().next, action::fall_back);
}

}  // namespace
}  // namespace outboard::marshal
