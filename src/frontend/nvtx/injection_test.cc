#include "frontend/nvtx/injection.hh"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <thread>
#include <vector>

#include "frontend/annotations.hh"
#include "frontend/nvtx/headers.hh"
#include "frontend/nvtx/ranges.hh"
#include "frontend/nvtx/text.hh"

namespace outboard::frontend::nvtx {
namespace {

/// A copy of NVTX as a program has it: tables of places for functions.
constexpr unsigned functions = 16;
struct copy_of_nvtx {
  std::array<NvtxFunctionPointer, functions> core{}, core2{};
  std::array<NvtxFunctionPointer*, functions> core_table{}, core2_table{};
};
copy_of_nvtx& in_program() {
  static copy_of_nvtx one;
  return one;
}

int table_of(NvtxCallbackModule module, NvtxFunctionTable* table, unsigned* size) {
  copy_of_nvtx& nvtx = in_program();
  if (module != NVTX_CB_MODULE_CORE && module != NVTX_CB_MODULE_CORE2) return 0;
  const bool first = module == NVTX_CB_MODULE_CORE;
  auto& places = first ? nvtx.core : nvtx.core2;
  auto& pointers = first ? nvtx.core_table : nvtx.core2_table;
  for (unsigned i = 1; i < functions; ++i) pointers[i] = &places[i];
  *table = pointers.data();
  *size = functions;
  return 1;
}

const void* tables(std::uint32_t id) {
  static const NvtxExportTableCallbacks callbacks{sizeof callbacks, table_of};
  return id == NVTX_ETID_CALLBACKS ? &callbacks : nullptr;
}

template <class F>
F core(unsigned number) {
  return reinterpret_cast<F>(in_program().core[number]);
}
template <class F>
F core2(unsigned number) {
  return reinterpret_cast<F>(in_program().core2[number]);
}

class collector final : public annotation_observer {
 public:
  bool wants_annotations() const override { return wants; }
  bool wants_annotation_calls() const override { return wants; }
  void annotated_now(const annotated& about) override { begun.push_back(about); }
  void range_over(const annotated& about) override { over.push_back(about); }
  void named(const given_name& name) override { names.push_back(name); }
  void annotation_called(const annotation_call& call) override {
    calls.emplace_back(call.name);
    if (call.result) last_result = *static_cast<const int*>(call.result);
    last_parameter = *static_cast<const std::uint64_t*>(call.parameters);
  }

  bool wants = true;
  std::vector<annotated> begun, over;
  std::vector<given_name> names;
  std::vector<std::string> calls;
  int last_result = -100;
  std::uint64_t last_parameter = 0;
};

class nvtx_injection : public ::testing::Test {
 protected:
  void SetUp() override {
    in_program() = {};
    ASSERT_EQ(attach(tables), 1);
    annotation_tool = &told;
  }
  void TearDown() override { annotation_tool = nullptr; }
  collector told;
};

TEST_F(nvtx_injection, ranges_of_a_thread_lie_in_each_other_by_domain) {
  const auto push = core<nvtxRangePushA_impl_fntype>(NVTX_CBID_CORE_RangePushA);
  const auto pop = core<nvtxRangePop_impl_fntype>(NVTX_CBID_CORE_RangePop);
  const auto create = core2<nvtxDomainCreateA_impl_fntype>(NVTX_CBID_CORE2_DomainCreateA);
  const auto push_in = core2<nvtxDomainRangePushEx_impl_fntype>(NVTX_CBID_CORE2_DomainRangePushEx);
  const auto pop_in = core2<nvtxDomainRangePop_impl_fntype>(NVTX_CBID_CORE2_DomainRangePop);
  const nvtxDomainHandle_t domain = create("mine");
  EXPECT_EQ(push("outer"), 0);
  EXPECT_EQ(push("inner"), 1);
  EXPECT_EQ(told.calls.back(), "nvtxRangePushA");
  EXPECT_EQ(told.last_result, 1);
  EXPECT_STREQ(reinterpret_cast<const char*>(told.last_parameter), "inner");
  nvtxEventAttributes_t e{};
  e.version = NVTX_VERSION;
  e.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  e.messageType = NVTX_MESSAGE_TYPE_ASCII;
  e.message.ascii = "of the domain";
  EXPECT_EQ(push_in(domain, &e), 0);
  std::thread([&] { EXPECT_LT(pop(), 0); }).join();
  EXPECT_EQ(pop(), 1);
  EXPECT_EQ(pop_in(domain), 0);
  EXPECT_LT(pop_in(domain), 0);
  EXPECT_EQ(pop(), 0);
  EXPECT_LT(pop(), 0);
  ASSERT_EQ(told.over.size(), 3u);
  EXPECT_EQ(told.over[0].what.text, "inner");
  EXPECT_EQ(told.over[0].kind, annotation_kind::started);  // the domain's goes on behind it
  EXPECT_EQ(told.over[1].what.domain->name(), "mine");
  EXPECT_EQ(told.over[1].kind, annotation_kind::pushed);
  EXPECT_EQ(told.over[2].what.text, "outer");
  EXPECT_EQ(told.begun[0].id, told.over[2].id);
  EXPECT_LE(told.over[2].begin, told.over[0].begin);
  EXPECT_LE(told.over[0].end, told.over[2].end);
}

TEST_F(nvtx_injection, a_range_ends_on_any_thread_and_once) {
  const auto start = core<nvtxRangeStartW_impl_fntype>(NVTX_CBID_CORE_RangeStartW);
  const auto end = core<nvtxRangeEnd_impl_fntype>(NVTX_CBID_CORE_RangeEnd);
  const nvtxRangeId_t id = start(L"\u00e4 \U0001f600 \xd800");
  EXPECT_EQ(open_ranges().size(), 1u);
  EXPECT_TRUE(open_ranges()[0].open);
  std::thread([&] { end(id); }).join();
  end(id);
  end(id + 1000);
  ASSERT_EQ(told.over.size(), 1u);
  EXPECT_EQ(told.over[0].what.text, "\u00e4 \U0001f600 \ufffd");
  EXPECT_TRUE(open_ranges().empty());
}

TEST_F(nvtx_injection, what_began_unwatched_is_not_told_at_its_end) {
  const auto push = core<nvtxRangePushA_impl_fntype>(NVTX_CBID_CORE_RangePushA);
  const auto pop = core<nvtxRangePop_impl_fntype>(NVTX_CBID_CORE_RangePop);
  told.wants = false;
  EXPECT_EQ(push("unwatched"), 0);
  told.wants = true;
  EXPECT_EQ(push("watched"), 1);
  EXPECT_EQ(pop(), 1);
  EXPECT_EQ(pop(), 0);
  ASSERT_EQ(told.over.size(), 1u);
  EXPECT_EQ(told.over[0].what.text, "watched");
}

TEST_F(nvtx_injection, names_come_as_they_are_given) {
  const auto name = core<nvtxNameOsThreadW_impl_fntype>(NVTX_CBID_CORE_NameOsThreadW);
  const auto category = core<nvtxNameCategoryA_impl_fntype>(NVTX_CBID_CORE_NameCategoryA);
  name(42, L"worker");
  category(3, "first");
  category(3, "second");
  ASSERT_EQ(told.names.size(), 1u);
  EXPECT_EQ(told.names[0].handle, 42u);
  EXPECT_EQ(told.names[0].name, "worker");
  EXPECT_EQ(*annotation_domain::unnamed().category_name(3), "second");
  EXPECT_EQ(annotation_domain::unnamed().category_name(4), nullptr);
}

// A message of the type of plain text may name one, as NVIDIA's sample of CUPTI does.
TEST_F(nvtx_injection, a_registered_string_is_read_by_its_handle_and_as_text) {
  const auto create = core2<nvtxDomainRegisterStringW_impl_fntype>(NVTX_CBID_CORE2_DomainRegisterStringW);
  const nvtxStringHandle_t name = create(nullptr, L"registered \u00e4");
  EXPECT_EQ(message(NVTX_MESSAGE_TYPE_REGISTERED, name), "registered \u00e4");
  EXPECT_EQ(message(NVTX_MESSAGE_TYPE_ASCII, name), "registered \u00e4");
  EXPECT_EQ(message(NVTX_MESSAGE_TYPE_REGISTERED, nullptr), "");
}

TEST_F(nvtx_injection, is_refused_by_what_has_no_tables) {
  EXPECT_EQ(attach(nullptr), 0);
  EXPECT_EQ(attach([](std::uint32_t) -> const void* { return nullptr; }), 0);
}

TEST(nvtx_text, attributes_too_small_are_not_read) {
  nvtxEventAttributes_t e{};
  e.size = 8;
  e.messageType = NVTX_MESSAGE_TYPE_ASCII;
  e.message.ascii = "beyond";
  e.category = 5;
  const annotation a = read(&e, annotation_domain::unnamed());
  EXPECT_TRUE(a.text.empty());
  EXPECT_EQ(a.category, 0u);
  EXPECT_TRUE(read(nullptr, annotation_domain::unnamed()).text.empty());
  e.size = sizeof e;
  e.payloadType = NVTX_PAYLOAD_TYPE_FLOAT;
  e.payload.fValue = 0.5f;
  EXPECT_EQ(std::get<float>(read(&e, annotation_domain::unnamed()).payload), 0.5f);
}

}  // namespace
}  // namespace outboard::frontend::nvtx
