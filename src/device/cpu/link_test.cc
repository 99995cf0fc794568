#include "device/cpu/fixture.hh"

namespace outboard::device::cpu {
namespace {

const std::string head = ".version 8.0\n.target sm_75\n.address_size 64\n";

class linking : public device_test {
 protected:
  void SetUp() override {
    device_test::SetUp();
    ASSERT_EQ(table_.cuLinkCreate_v2(0, nullptr, nullptr, &state_), CUDA_SUCCESS);
  }
  CUresult add(std::string text) {
    return table_.cuLinkAddData_v2(state_, CU_JIT_INPUT_PTX, text.data(), text.size() + 1, "part", 0, nullptr,
                                   nullptr);
  }
  CUlinkState state_ = nullptr;
};

TEST_F(linking, each_part_is_compiled_when_it_is_added) {
  EXPECT_EQ(add(head + ".visible .entry k() { frob; ret; }"), CUDA_ERROR_INVALID_PTX);
  // A symbol that another part will define is not an error in this part.
  EXPECT_EQ(
      add(head + ".extern .func other();\n.extern .global .u32 there;\n.visible .entry k() { .reg .b64 a;"
                 " mov.u64 a, there; call other; ret; }"),
      CUDA_SUCCESS);
  void* image = nullptr;
  std::size_t size = 0;
  EXPECT_EQ(table_.cuLinkComplete(state_, &image, &size), CUDA_ERROR_INVALID_SOURCE);
  EXPECT_EQ(add(head + ".visible .global .u32 there;\n.visible .func other() { ret; }"), CUDA_SUCCESS);
  EXPECT_EQ(table_.cuLinkComplete(state_, &image, &size), CUDA_SUCCESS);
}

TEST_F(linking, a_second_definition_is_refused_when_it_is_added) {
  ASSERT_EQ(add(head + ".visible .entry k() { ret; }"), CUDA_SUCCESS);
  EXPECT_EQ(add(head + ".visible .entry k() { ret; }"), CUDA_ERROR_INVALID_SOURCE);
  void* image = nullptr;
  ASSERT_EQ(table_.cuLinkComplete(state_, &image, nullptr), CUDA_SUCCESS);
  CUmodule module = nullptr;
  ASSERT_EQ(table_.cuModuleLoadData(&module, image), CUDA_SUCCESS);
  function(module, "k");
}

TEST_F(linking, linking_nothing_gives_an_empty_image) {
  void* image = nullptr;
  ASSERT_EQ(table_.cuLinkComplete(state_, &image, nullptr), CUDA_SUCCESS);
  CUmodule module = nullptr;
  ASSERT_EQ(table_.cuModuleLoadData(&module, image), CUDA_SUCCESS);
  unsigned count = 9;
  EXPECT_EQ(table_.cuModuleGetFunctionCount(&count, module), CUDA_SUCCESS);
  EXPECT_EQ(count, 0u);
}

TEST_F(linking, unknown_targets_are_refused) {
  CUmodule module = nullptr;
  const std::string text = head + ".visible .entry k() { ret; }";
  const auto load_for = [&](std::vector<CUjit_option> names, std::uintptr_t target) {
    std::vector<void*> values(names.size(), reinterpret_cast<void*>(target));
    return table_.cuModuleLoadDataEx(&module, text.c_str(), static_cast<unsigned>(names.size()), names.data(),
                                     values.data());
  };
  EXPECT_EQ(load_for({CU_JIT_TARGET}, CU_TARGET_COMPUTE_75), CUDA_SUCCESS);
  EXPECT_EQ(load_for({CU_JIT_TARGET}, 7), CUDA_ERROR_INVALID_IMAGE);
  EXPECT_EQ(load_for({CU_JIT_TARGET, CU_JIT_TARGET_FROM_CUCONTEXT}, CU_TARGET_COMPUTE_75),
            CUDA_ERROR_INVALID_SOURCE);
  EXPECT_EQ(table_.cuModuleLoadData(&module, ".version 8.0\n.target sm_999\n.address_size 64\n"),
            CUDA_ERROR_INVALID_PTX);
}

TEST_F(linking, a_library_that_does_not_compile_fails_at_its_first_kernel) {
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  const std::string text = head + ".visible .entry k() { frob; ret; }";
  ASSERT_EQ(table_.cuLibraryLoadData(&library, text.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0),
            CUDA_SUCCESS);
  EXPECT_EQ(table_.cuLibraryGetKernel(&kernel, library, "k"), CUDA_ERROR_INVALID_PTX);
}

}  // namespace
}  // namespace outboard::device::cpu
