#include "frontend/cuda/tables/export_tables.hh"

#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "frontend/cuda/tables/cls.hh"

namespace outboard::frontend::cuda {
namespace {

CUcontext current = nullptr;
std::vector<std::string> lines;
std::vector<std::string> complaints;  // of all tests: each is made once in a process
const void* loaded = nullptr;
CUresult functions_result = CUDA_SUCCESS;

CUcontext primary_of(CUdevice device) {
  return reinterpret_cast<CUcontext>(0x7000 + 16 * static_cast<long>(device));
}

device_identity identity_of(std::size_t n) {
  device_identity d;
  d.uuid.fill(static_cast<std::uint8_t>(n + 1));
  d.pci_bus = static_cast<std::int32_t>(0x10 + n);
  return d;
}

export_hooks test_hooks() {
  export_hooks hooks{};
  hooks.driver_version = [] { return 13000; };
  hooks.device_count = [] { return std::size_t{2}; };
  hooks.device = identity_of;
  hooks.primary_handle = [](CUdevice d) { return d < 2 ? primary_of(d) : nullptr; };
  hooks.current_context = [] { return current; };
  hooks.create_context = [](CUcontext* out, unsigned flags, CUdevice d) {
    *out = primary_of(d + static_cast<int>(flags));
    return CUDA_SUCCESS;
  };
  hooks.load_module = [](CUmodule* out, const void* image) {
    loaded = image;
    *out = reinterpret_cast<CUmodule>(0x9000);
    return CUDA_SUCCESS;
  };
  hooks.module_functions = [](CUmodule, void* opaque, void (*each)(void*, CUfunction)) {
    if (functions_result == CUDA_SUCCESS) {
      for (long n = 1; n <= 3; ++n) each(opaque, reinterpret_cast<CUfunction>(n * 16));
    }
    return functions_result;
  };
  hooks.board_layout = [](std::uint8_t** clusters, std::uint8_t** numbers) {
    *clusters = static_cast<std::uint8_t*>(std::malloc(1));
    *numbers = static_cast<std::uint8_t*>(std::malloc(1));
    **clusters = 3, **numbers = 4;
    return CUDA_SUCCESS;
  };
  hooks.log = [](const char* line) { lines.emplace_back(line); };
  hooks.complain = [](const char* line) { complaints.emplace_back(line); };
  return hooks;
}

/// "6bd5fb6c-5bf4-…" as in memory order.
CUuuid uuid_of(const std::string& text) {
  CUuuid id{};
  std::size_t at = 0;
  for (std::size_t n = 0; n + 1 < text.size() && at < 16;) {
    if (text[n] == '-') {
      ++n;
      continue;
    }
    id.bytes[at++] = static_cast<char>(std::stoi(text.substr(n, 2), nullptr, 16));
    n += 2;
  }
  return id;
}

const char* const cudart_id = "6bd5fb6c-5bf4-e74a-8987-d93912fd9df9";
const char* const callbacks_id = "a094798c-2e74-2e74-93f2-0800200c0a66";
const char* const tools_tls_id = "42d85a81-23f6-cb47-8298-f6e78a3aecdc";
const char* const storage_id = "c693336e-1121-df11-a8c3-68f355d89593";
const char* const checks_id = "263e8860-7cd2-6143-92f6-bbd5006dfa7e";
const char* const integrity_id = "d4082055-bde6-704b-8d34-ba123c66e1f2";
const char* const tools_id = "21318c60-9714-3248-8ca6-41ff7324c8f2";
const char* const functions_id = "6e163fbe-b958-444d-835c-e182aff1991e";
const char* const layout_id = "1734dc26-800d-4745-8726-c0f1e7dd8bca";
const char* const bypass_id = "0ca50b8c-1004-929a-89a7-d0df10e77286";

struct export_tables : testing::Test {
  void SetUp() override {
    set_export_hooks(test_hooks());
    cls_forked();
    current = nullptr, loaded = nullptr, functions_result = CUDA_SUCCESS;
    lines.clear();
  }

  static const void* const* table(const char* id) {
    const void* found = nullptr;
    const CUuuid uuid = uuid_of(id);
    EXPECT_EQ(get_export_table(&found, &uuid), CUDA_SUCCESS) << id;
    return static_cast<const void* const*>(found);
  }

  template <class Function>
  static Function* slot(const char* id, std::size_t n) {
    return reinterpret_cast<Function*>(const_cast<void*>(table(id)[n]));
  }
};

TEST_F(export_tables, have_the_sizes_and_holes_of_a_real_driver) {
  const std::pair<const char*, std::size_t> sized[] = {
      {cudart_id, 13}, {callbacks_id, 7},  {tools_tls_id, 3}, {checks_id, 15}, {integrity_id, 3},
      {tools_id, 93},  {functions_id, 99}, {bypass_id, 2},    {layout_id, 17}};
  for (const auto& [id, words] : sized) {
    const auto* t = table(id);
    EXPECT_EQ(reinterpret_cast<std::size_t>(t[0]), 8 * words) << id;
    for (std::size_t n = 1; n < words; ++n)
      EXPECT_EQ(t[n] == nullptr, id == cudart_id && n == 10) << id << " slot " << n;
  }
  EXPECT_NE(table(storage_id)[0], nullptr);
  EXPECT_EQ(table(storage_id)[3], nullptr);
}

TEST_F(export_tables, never_move) {
  for (const char* id : {cudart_id, storage_id, integrity_id}) {
    const void* const first = table(id);
    const void* second = nullptr;
    std::thread([&] { second = table(id); }).join();
    EXPECT_EQ(first, second);
  }
}

TEST_F(export_tables, refuse_what_is_unknown_with_an_error_and_null) {
  for (const char* id : {"f8cff951-2146-8b4e-b9e2-fb469e7c0dd9", "da9151d3-3ae6-cc41-a5c0-4f26d533e328",
                         "b10541e1-f7c7-c74a-9f64-f223be99f1e2", "195bcbf4-d67d-024a-acc5-1d29cea631ae",
                         "2c8e0ad8-0710-ab4e-90dd-54719fe5f74b", "00000000-0000-0000-0000-000000000000",
                         "6bd5fb6c-5bf4-e74a-8987-d93912fd9df8"}) {
    const void* found = &lines;
    const CUuuid uuid = uuid_of(id);
    EXPECT_EQ(get_export_table(&found, &uuid), CUDA_ERROR_INVALID_VALUE) << id;
    EXPECT_EQ(found, nullptr) << id;
  }
  EXPECT_EQ(get_export_table(nullptr, nullptr), CUDA_ERROR_INVALID_VALUE);
}

/// Only the first: a profiler asks for several.
TEST_F(export_tables, a_profiler_is_told_once_why_it_sees_nothing) {
  for (const char* id : {"2c8e0ad8-0710-ab4e-90dd-54719fe5f74b", "fc58ac1a-057c-444f-a977-72ee9aefdb89"}) {
    const void* found = nullptr;
    const CUuuid uuid = uuid_of(id);
    EXPECT_EQ(get_export_table(&found, &uuid), CUDA_ERROR_INVALID_VALUE);
  }
  ASSERT_EQ(complaints.size(), 1u);
  EXPECT_NE(complaints[0].find("will see no kernels"), std::string::npos);
}

TEST_F(export_tables, an_unknown_slot_says_so_once) {
  auto* const unknown = slot<CUresult()>(tools_id, 50);
  EXPECT_EQ(unknown(), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(unknown(), CUDA_ERROR_NOT_SUPPORTED);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NE(lines[0].find("slot 50"), std::string::npos);
  EXPECT_NE(lines[0].find("21318c60"), std::string::npos);
  EXPECT_EQ(slot<CUresult()>(functions_id, 50)(), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(lines.size(), 2u);
}

TEST_F(export_tables, runtime_interface_gives_primary_handles_and_loads) {
  CUcontext handle = nullptr;
  EXPECT_EQ(slot<CUresult(CUcontext*, CUdevice)>(cudart_id, 2)(&handle, 1), CUDA_SUCCESS);
  EXPECT_EQ(handle, primary_of(1));
  EXPECT_EQ(slot<CUresult(CUcontext*, CUdevice)>(cudart_id, 2)(&handle, 2), CUDA_ERROR_INVALID_DEVICE);
  EXPECT_EQ(handle, primary_of(1));
  CUmodule module = nullptr;
  EXPECT_EQ(slot<CUresult(CUmodule*, const void*)>(cudart_id, 1)(&module, "a"), CUDA_SUCCESS);
  EXPECT_STREQ(static_cast<const char*>(loaded), "a");
  using extra = CUresult(CUmodule*, const void*, void*, void*, std::uint32_t);
  EXPECT_EQ(slot<extra>(cudart_id, 6)(&module, "b", nullptr, nullptr, 0), CUDA_SUCCESS);
  EXPECT_STREQ(static_cast<const char*>(loaded), "b");
  EXPECT_EQ(slot<extra>(cudart_id, 6)(&module, "c", nullptr, nullptr, 1), CUDA_ERROR_NOT_SUPPORTED);
  using header = CUresult(const void*, CUmodule*, void*, void*, std::uint32_t);
  EXPECT_EQ(slot<header>(cudart_id, 8)("d", &module, &module, &module, 1), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_STREQ(static_cast<const char*>(loaded), "b");
  EXPECT_EQ(slot<header>(cudart_id, 8)("d", &module, nullptr, nullptr, 0), CUDA_SUCCESS);
  EXPECT_STREQ(static_cast<const char*>(loaded), "d");
  EXPECT_EQ(slot<CUresult()>(cudart_id, 12)(), CUDA_SUCCESS);
}

TEST_F(export_tables, callback_flags_are_zero_and_enough) {
  std::uint32_t* flags = nullptr;
  std::size_t count = 0;
  using array = CUresult(std::uint32_t**, std::size_t*);
  EXPECT_EQ(slot<array>(callbacks_id, 2)(&flags, &count), CUDA_SUCCESS);
  EXPECT_GE(count, 523u);
  for (std::size_t n = 0; n < count; ++n) ASSERT_EQ(flags[n], 0u);
  EXPECT_EQ(slot<array>(callbacks_id, 6)(&flags, &count), CUDA_SUCCESS);
  EXPECT_GE(count, 14u);
  for (std::size_t n = 0; n < count; ++n) ASSERT_EQ(flags[n], 0u);
}

TEST_F(export_tables, storage_takes_null_and_minus_one_as_the_current_context) {
  auto* put = slot<CUresult(CUcontext, void*, void*, cls_destructor)>(storage_id, 0);
  auto* remove = slot<CUresult(CUcontext, void*)>(storage_id, 1);
  auto* get = slot<CUresult(void**, CUcontext, void*)>(storage_id, 2);
  int key = 0, value = 0;
  void* found = nullptr;
  EXPECT_NE(put(nullptr, &key, &value, nullptr), CUDA_SUCCESS);
  EXPECT_NE(get(&found, nullptr, &key), CUDA_SUCCESS);
  current = primary_of(0);
  EXPECT_NE(get(&found, nullptr, &key), CUDA_SUCCESS);
  EXPECT_EQ(put(nullptr, &key, &value, nullptr), CUDA_SUCCESS);
  for (const CUcontext c : {CUcontext{}, reinterpret_cast<CUcontext>(~std::uintptr_t{0}), primary_of(0)}) {
    found = nullptr;
    EXPECT_EQ(get(&found, c, &key), CUDA_SUCCESS);
    EXPECT_EQ(found, &value);
  }
  current = primary_of(1);
  EXPECT_NE(get(&found, nullptr, &key), CUDA_SUCCESS);
  EXPECT_EQ(remove(primary_of(0), &key), CUDA_SUCCESS);
  EXPECT_NE(get(&found, primary_of(0), &key), CUDA_SUCCESS);
}

TEST_F(export_tables, answer_what_libraries_ask) {
  void* context = &lines;
  EXPECT_EQ(slot<CUresult(void**)>(tools_tls_id, 2)(&context), CUDA_SUCCESS);
  EXPECT_EQ(context, nullptr);
  current = primary_of(1);
  EXPECT_EQ(slot<CUresult(void**)>(tools_tls_id, 2)(&context), CUDA_SUCCESS);
  EXPECT_EQ(context, primary_of(1));
  std::uint32_t flag = 9;
  void* inner = nullptr;
  EXPECT_EQ(slot<CUresult(CUcontext, std::uint32_t*, void**)>(checks_id, 2)(current, &flag, &inner),
            CUDA_SUCCESS);
  EXPECT_EQ(flag, 0u);
  std::uint64_t number = 9;
  EXPECT_EQ(slot<CUresult(CUcontext, std::uint64_t*)>(tools_id, 4)(current, &number), CUDA_SUCCESS);
  EXPECT_EQ(number, 1u);
  EXPECT_EQ(slot<CUresult(CUcontext, CUstream, void**)>(tools_id, 51)(current, nullptr, &inner),
            CUDA_SUCCESS);
  EXPECT_EQ(slot<CUresult(CUcontext, void*, std::uint64_t*)>(tools_id, 39)(current, inner, &number),
            CUDA_SUCCESS);
  EXPECT_EQ(number, 0u);
  CUcontext made = nullptr;
  EXPECT_EQ(slot<CUresult(CUcontext*, unsigned, CUdevice)>(bypass_id, 1)(&made, 1, 0), CUDA_SUCCESS);
  EXPECT_EQ(made, primary_of(1));
}

TEST_F(export_tables, the_boards_layout_is_allocated_and_released) {
  std::uint8_t *clusters = nullptr, *numbers = nullptr;
  EXPECT_EQ(slot<CUresult(std::uint8_t**, std::uint8_t**)>(layout_id, 4)(&clusters, &numbers), CUDA_SUCCESS);
  ASSERT_NE(clusters, nullptr);
  EXPECT_EQ(*clusters, 3);
  EXPECT_EQ(*numbers, 4);
  EXPECT_EQ(slot<CUresult(std::uint8_t*, std::uint8_t*)>(layout_id, 13)(clusters, numbers), CUDA_SUCCESS);
  EXPECT_EQ(slot<CUresult(std::uint8_t**, std::uint8_t**)>(layout_id, 4)(nullptr, nullptr),
            CUDA_ERROR_INVALID_VALUE);
}

TEST_F(export_tables, iterator_visits_every_function) {
  using callback = void (*)(void*, CUfunction, std::uint64_t);
  using iterate = std::uint64_t(CUcontext, CUmodule, callback, void*, CUmodule);
  const auto module = reinterpret_cast<CUmodule>(0x9000);
  std::vector<CUfunction> seen;
  const callback note = [](void* opaque, CUfunction f, std::uint64_t) {
    static_cast<std::vector<CUfunction>*>(opaque)->push_back(f);
  };
  EXPECT_EQ(slot<iterate>(functions_id, 7)(nullptr, module, note, &seen, module), 3u);
  ASSERT_EQ(seen.size(), 3u);
  EXPECT_EQ(seen[2], reinterpret_cast<CUfunction>(48));
  functions_result = CUDA_ERROR_INVALID_HANDLE;
  EXPECT_EQ(slot<iterate>(functions_id, 7)(nullptr, module, note, &seen, module), 0u);
}

TEST_F(export_tables, integrity_covers_the_addresses_handed_out) {
  using check = CUresult(std::uint32_t, std::uint64_t, std::uint8_t*);
  md2_digest answer{};
  ASSERT_EQ(slot<check>(integrity_id, 1)(13002, 1234567890, answer.data()), CUDA_SUCCESS);
  integrity_facts facts;
  facts.driver_version = 13000;
  facts.version = 13002;
  facts.process = static_cast<std::uint32_t>(getpid());
  facts.thread = static_cast<std::uint32_t>(pthread_self());
  facts.runtime_table = reinterpret_cast<std::uintptr_t>(table(cudart_id));
  facts.check_table = reinterpret_cast<std::uintptr_t>(table(integrity_id));
  facts.check_function = reinterpret_cast<std::uintptr_t>(table(integrity_id)[1]);
  facts.unix_seconds = 1234567890;
  const std::vector<device_identity> devices{identity_of(0), identity_of(1)};
  EXPECT_EQ(answer, integrity_value(facts, devices));
  EXPECT_EQ(slot<check>(integrity_id, 1)(13000, 1, answer.data()), CUDA_SUCCESS);
  EXPECT_EQ(slot<check>(integrity_id, 1)(13000, 1, nullptr), CUDA_ERROR_INVALID_VALUE);
}

}  // namespace
}  // namespace outboard::frontend::cuda
