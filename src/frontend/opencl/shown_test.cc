#include "frontend/opencl/shown.hh"

#include <gtest/gtest.h>

#include "api/opencl/extensions.hh"
#include "api/opencl/info.hh"

namespace outboard::frontend::opencl {
namespace {

using marshal::opencl::info_value;

info_value text_of(std::uint32_t name, std::string_view text) {
  info_value value{name, {text.begin(), text.end()}};
  value.value.push_back(0);
  return value;
}

std::string extensions_shown(std::string_view version, std::string_view extensions,
                             std::span<const std::uint32_t> functions) {
  const values shown =
      shown_of_platform({text_of(CL_PLATFORM_VERSION, version), text_of(CL_PLATFORM_EXTENSIONS, extensions)},
                        "host", functions);
  const auto* const found = marshal::opencl::find(shown, CL_PLATFORM_EXTENSIONS);
  return found ? std::string(reinterpret_cast<const char*>(found->value.data())) : "none";
}

TEST(opencl_shown, an_extension_with_functions_is_shown_where_they_all_are) {
  for (const api::opencl::extension_function& each : api::opencl::extension_functions()) {
    std::vector<std::uint32_t> there;
    for (const auto& other : api::opencl::extension_functions()) {
      if (other.extension == each.extension) there.push_back(static_cast<std::uint32_t>(other.code));
    }
    const std::string text = "cl_khr_icd " + std::string(each.extension);
    EXPECT_EQ(extensions_shown("OpenCL 3.0 x", text, there), text);
    std::erase(there, static_cast<std::uint32_t>(each.code));
    EXPECT_EQ(extensions_shown("OpenCL 3.0 x", text, there), "cl_khr_icd") << each.name;
  }
}

TEST(opencl_shown, a_promoted_extension_is_shown_where_the_core_has_its_functions) {
  const std::string text = "cl_khr_il_program cl_khr_subgroups";
  EXPECT_EQ(extensions_shown("OpenCL 2.1 x", text, {}), text);
  EXPECT_EQ(extensions_shown("OpenCL 2.0 x", text, {}), "");
}

TEST(opencl_shown, an_unknown_extension_is_not_shown) {
  EXPECT_EQ(extensions_shown("OpenCL 3.0 x", "cl_khr_icd cl_khr_gl_sharing cl_khr_fp64", {}),
            "cl_khr_icd cl_khr_fp64");
}

TEST(opencl_shown, programs_do_not_see_the_list_of_functions) {
  values info{{api::opencl::extension_functions_there, {1, 0, 0, 0, 2, 1, 0, 0}}};
  EXPECT_EQ(take_extension_functions(info), (std::vector<std::uint32_t>{1, 258}));
  EXPECT_TRUE(info.empty());
  EXPECT_TRUE(take_extension_functions(info).empty());
}

TEST(opencl_shown, a_text_without_an_end_gets_one) {
  const values platform = shown_of_platform({{CL_PLATFORM_VENDOR, {'a', 'b', 'c'}}}, "host", {});
  EXPECT_EQ(marshal::opencl::find(platform, CL_PLATFORM_VENDOR)->value,
            (std::vector<std::uint8_t>{'a', 'b', 0}));
  const values device = shown_of_device({{CL_DRIVER_VERSION, {'1', '2'}}}, "host", {}, false);
  EXPECT_EQ(marshal::opencl::find(device, CL_DRIVER_VERSION)->value, (std::vector<std::uint8_t>{'1', 0}));
}

}  // namespace
}  // namespace outboard::frontend::opencl
