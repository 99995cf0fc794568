#include "frontend/opencl/shown.hh"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "api/opencl/extensions.hh"
#include "api/opencl/info.hh"
#include "api/opencl/own_library.hh"
#include "marshal/opencl/widths.hh"

namespace outboard::frontend::opencl {
namespace {

using marshal::opencl::info_value;

/// Extensions that are about what kernels may do, or about questions that are answered from the snapshot:
/// they need nothing of us. Those with handles of the client's machine are not here; those with functions of
/// their own are in extensions.def.
constexpr std::string_view passed_on[] = {
    "cl_khr_3d_image_writes",
    "cl_khr_byte_addressable_store",
    "cl_khr_depth_images",
    "cl_khr_device_uuid",
    "cl_khr_expect_assume",
    "cl_khr_extended_bit_ops",
    "cl_khr_extended_versioning",
    "cl_khr_fp16",
    "cl_khr_fp64",
    "cl_khr_global_int32_base_atomics",
    "cl_khr_global_int32_extended_atomics",
    "cl_khr_icd",
    "cl_khr_int64_base_atomics",
    "cl_khr_int64_extended_atomics",
    "cl_khr_integer_dot_product",
    "cl_khr_local_int32_base_atomics",
    "cl_khr_local_int32_extended_atomics",
    "cl_khr_pci_bus_info",
    "cl_khr_spirv_linkonce_odr",
    "cl_khr_spirv_no_integer_wrap_decoration",
    "cl_khr_subgroup_ballot",
    "cl_khr_subgroup_clustered_reduce",
    "cl_khr_subgroup_extended_types",
    "cl_khr_subgroup_non_uniform_arithmetic",
    "cl_khr_subgroup_non_uniform_vote",
    "cl_khr_subgroup_rotate",
    "cl_khr_subgroup_shuffle",
    "cl_khr_subgroup_shuffle_relative",
    "cl_nv_compiler_options",
    "cl_nv_copy_opts",
    "cl_nv_device_attribute_query",
    "cl_nv_kernel_attribute",
    "cl_nv_pragma_unroll",
};

/// Properties of queues that are made with the properties of OpenCL 2.0.
constexpr std::string_view with_later_core[] = {"cl_khr_priority_hints", "cl_khr_throttle_hints"};

info_value* find_in(values& info, std::uint32_t name) {
  const auto found = std::ranges::find(info, name, &info_value::name);
  return found == info.end() ? nullptr : &*found;
}

void add_to_text(values& info, std::uint32_t name, const std::string& more) {
  info_value* const text = find_in(info, name);
  if (!text) return;
  std::vector<std::uint8_t>& bytes = text->value;
  if (!bytes.empty() && bytes.back() == 0) bytes.pop_back();
  bytes.insert(bytes.end(), more.begin(), more.end());
  bytes.push_back(0);
}

void set_text(values& info, std::uint32_t name, std::string_view text) {
  info_value* at = find_in(info, name);
  if (!at) at = &info.emplace_back(info_value{name, {}});
  at->value.assign(text.begin(), text.end());
  at->value.push_back(0);
}

/// What decides which extensions are shown.
struct abilities {
  bool later_core = false;                   ///< OpenCL 2.1: the core has the functions that were promoted
  std::span<const std::uint32_t> functions;  ///< of extensions, by opcode
};

bool has_all_functions(std::string_view extension, std::span<const std::uint32_t> there) {
  bool any = false;
  for (const api::opencl::extension_function& each : api::opencl::extension_functions()) {
    if (each.extension != extension) continue;
    any = true;
    if (!std::ranges::count(there, static_cast<std::uint32_t>(each.code))) return false;
  }
  return any;
}

bool passes(std::string_view extension, const abilities& able) {
  const auto promoted = api::opencl::promoted_functions();
  if (std::ranges::count(passed_on, extension)) return true;
  if (able.later_core &&
      (std::ranges::count(with_later_core, extension) ||
       std::ranges::count(promoted, extension, &api::opencl::promoted_function::extension)))
    return true;
  return has_all_functions(extension, able.functions);
}

/// "OpenCL 2.1 ..." or more.
bool has_later_core(values& info, std::uint32_t version_name) {
  const info_value* const version = find_in(info, version_name);
  constexpr std::string_view prefix = "OpenCL ", first = "OpenCL 2.1";
  if (!version || version->value.size() < first.size()) return false;
  const std::string_view text(reinterpret_cast<const char*>(version->value.data()), first.size());
  return text.starts_with(prefix) && text >= first;
}

void keep_extensions(values& info, std::uint32_t name, const abilities& able) {
  const info_value* const text = find_in(info, name);
  if (!text) return;
  std::string_view rest(reinterpret_cast<const char*>(text->value.data()), text->value.size());
  rest = rest.substr(0, rest.find('\0'));
  std::string kept;
  while (!rest.empty()) {
    // With the blanks before it: what is passed on whole looks as it does there.
    const std::size_t begin = std::min(rest.find_first_not_of(' '), rest.size());
    const std::string_view one = rest.substr(begin, rest.find(' ', begin) - begin);
    if (passes(one, able))
      kept.append(rest.substr(kept.empty() ? begin : 0, one.size() + (kept.empty() ? 0 : begin)));
    rest.remove_prefix(begin + one.size());
  }
  set_text(info, name, kept);
}

void keep_versions(values& info, std::uint32_t name, const abilities& able) {
  info_value* const list = find_in(info, name);
  if (!list) return;
  std::vector<std::uint8_t> kept;
  cl_name_version one;
  for (std::size_t at = 0; at + sizeof one <= list->value.size(); at += sizeof one) {
    std::memcpy(&one, list->value.data() + at, sizeof one);
    if (!passes({one.name, ::strnlen(one.name, sizeof one.name)}, able)) continue;
    const auto* first = list->value.data() + at;
    kept.insert(kept.end(), first, first + sizeof one);
  }
  list->value = std::move(kept);
}

/// Programs read a text up to its end, which a server may have left out.
void end_texts(values& info, std::span<const std::uint32_t> names) {
  for (info_value& one : info) {
    if (!one.value.empty() && std::ranges::count(names, one.name)) one.value.back() = 0;
  }
}

constexpr std::uint32_t platform_texts[] = {CL_PLATFORM_PROFILE,    CL_PLATFORM_VERSION,
                                            CL_PLATFORM_NAME,       CL_PLATFORM_VENDOR,
                                            CL_PLATFORM_EXTENSIONS, CL_PLATFORM_ICD_SUFFIX_KHR};
constexpr std::uint32_t device_texts[] = {CL_DEVICE_NAME,       CL_DEVICE_VENDOR,
                                          CL_DRIVER_VERSION,    CL_DEVICE_PROFILE,
                                          CL_DEVICE_VERSION,    CL_DEVICE_OPENCL_C_VERSION,
                                          CL_DEVICE_EXTENSIONS, CL_DEVICE_BUILT_IN_KERNELS,
                                          CL_DEVICE_IL_VERSION, CL_DEVICE_LATEST_CONFORMANCE_VERSION_PASSED};

template <class T>
void set_number(values& info, std::uint32_t name, T value) {
  info_value* const at = find_in(info, name);
  if (!at || at->value.size() != sizeof value) return;
  std::memcpy(at->value.data(), &value, sizeof value);
}

}  // namespace

std::uint64_t take_memory_limit(values& info) {
  const auto found = std::ranges::find(info, api::opencl::session_memory_limit, &info_value::name);
  std::uint64_t limit = 0;
  if (found == info.end()) return limit;
  if (found->value.size() == sizeof limit) std::memcpy(&limit, found->value.data(), sizeof limit);
  info.erase(found);
  return limit;
}

std::vector<std::uint32_t> take_extension_functions(values& info) {
  const auto found = std::ranges::find(info, api::opencl::extension_functions_there, &info_value::name);
  if (found == info.end()) return {};
  std::vector<std::uint32_t> codes(found->value.size() / sizeof(std::uint32_t));
  if (!codes.empty()) std::memcpy(codes.data(), found->value.data(), codes.size() * sizeof codes[0]);
  info.erase(found);
  return codes;
}

values shown_of_platform(values info, const std::string& host, std::span<const std::uint32_t> functions) {
  add_to_text(info, CL_PLATFORM_NAME, " (outboard " + host + ")");
  set_text(info, CL_PLATFORM_ICD_SUFFIX_KHR, api::opencl::platform_suffix);
  const abilities able{has_later_core(info, CL_PLATFORM_VERSION), functions};
  keep_extensions(info, CL_PLATFORM_EXTENSIONS, able);
  keep_versions(info, CL_PLATFORM_EXTENSIONS_WITH_VERSION, able);
  end_texts(info, platform_texts);
  return info;
}

values shown_of_device(values info, const std::string& host, std::span<const std::uint32_t> functions,
                       bool shares_memory) {
  for (const cl_device_info name : api::opencl::device_infos_of_sizes) {
    if (info_value* const sizes = find_in(info, name))
      sizes->value = marshal::opencl::narrowed(std::move(sizes->value));
  }
  add_to_text(info, CL_DEVICE_NAME, " (outboard " + host + ")");
  const abilities able{has_later_core(info, CL_DEVICE_VERSION), functions};
  keep_extensions(info, CL_DEVICE_EXTENSIONS, able);
  keep_versions(info, CL_DEVICE_EXTENSIONS_WITH_VERSION, able);
  end_texts(info, device_texts);
  // A function of the program cannot run on the device's host.
  set_number<cl_device_exec_capabilities>(info, CL_DEVICE_EXECUTION_CAPABILITIES, CL_EXEC_KERNEL);
  // Else bytes of the program's memory travel when it maps and unmaps them, not while a kernel runs; and a
  // pointer of the device must be one here. What the program has beside shared memory no device can reach.
  if (info_value* ways = find_in(info, CL_DEVICE_SVM_CAPABILITIES)) {
    cl_device_svm_capabilities kinds = 0;
    if (ways->value.size() == sizeof kinds) std::memcpy(&kinds, ways->value.data(), sizeof kinds);
    constexpr cl_device_svm_capabilities of_shared_pages =
        CL_DEVICE_SVM_COARSE_GRAIN_BUFFER | CL_DEVICE_SVM_FINE_GRAIN_BUFFER | CL_DEVICE_SVM_ATOMICS;
    kinds &= sizeof(void*) != 8 ? 0 : shares_memory ? of_shared_pages : CL_DEVICE_SVM_COARSE_GRAIN_BUFFER;
    set_number(info, CL_DEVICE_SVM_CAPABILITIES, kinds);
  }
  return info;
}

}  // namespace outboard::frontend::opencl
