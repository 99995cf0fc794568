// Compares our declarations with the vendor's header, where there is one, and tests what derives from them.
#include "api/nvml/layout.hh"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <fstream>
#include <iterator>
#include <memory>
#include <regex>
#include <set>
#include <string>
#include <utility>

#ifdef OUTBOARD_HAS_NVML_HEADER
// The header stands inside of a namespace in which all names exist already, so that a struct which this
// version of it does not have is found there, incomplete, and passed over.
namespace known_names {
#define STRUCT(name, fields) struct name;
#define VERSIONED(name, number, fields) struct name;
#define UNION(name, fields) struct name;
#include "api/nvml/structs.def"
#undef UNION
#undef VERSIONED
#undef STRUCT
namespace header {
#define NVML_NO_UNVERSIONED_FUNC_DEFS
#include <nvml.h>

#define STRUCT(name, fields) using vendor_##name = name;
#define VERSIONED(name, number, fields) using vendor_##name = name;
#define UNION(name, fields) using vendor_##name = name;
#include "api/nvml/structs.def"
#undef UNION
#undef VERSIONED
#undef STRUCT
}  // namespace header
}  // namespace known_names
#endif

namespace outboard::api::nvml {
namespace {

TEST(nvml_layout, padding_is_cleared_and_fields_are_kept) {
  std::array<std::byte, sizeof(nvmlProcessInfo_t)> raw;
  raw.fill(std::byte{0xff});
  clear_padding(*layout_of<nvmlProcessInfo_t>(), raw.data());
  for (std::size_t b = 0; b < raw.size(); ++b)
    EXPECT_EQ(raw[b], b >= 4 && b < 8 ? std::byte{0} : std::byte{0xff}) << b;
}

TEST(nvml_layout, nested_padding_is_cleared) {
  nvmlPSUInfo_t plain;
  EXPECT_EQ(sizeof plain, layout_of<nvmlPSUInfo_t>()->size);
  std::array<std::byte, sizeof(nvmlSample_t)> raw;
  raw.fill(std::byte{0xff});
  clear_padding(*layout_of<nvmlSample_t>(), raw.data());
  for (const std::byte b : raw) EXPECT_EQ(b, std::byte{0xff});
}

TEST(nvml_layout, handles_in_structs_are_found) {
  nvmlEventData_t data{};
  int seen = 0;
  for_each_handle(
      *layout_of<nvmlEventData_t>(), reinterpret_cast<std::byte*>(&data),
      [](void* context, handle_kind kind, void** handle) {
        EXPECT_EQ(kind, handle_kind::device);
        *handle = context;
        ++*static_cast<int*>(context);
      },
      &seen);
  EXPECT_EQ(seen, 1);
  EXPECT_EQ(static_cast<void*>(data.device), static_cast<void*>(&seen));
}

TEST(nvml_layout, lists_texts_and_tails_are_found) {
  nvmlNvlinkTelemetrySamples_v1_t flat{};
  const struct_layout& layout = *layout_of<nvmlNvlinkTelemetrySamples_v1_t>();
  int seen = 0;
  const auto count = [&](const field_layout& f, std::byte* holder) {
    EXPECT_EQ(f.kind, field_kind::list);
    EXPECT_EQ(said_count(f, holder), 7u);
    EXPECT_EQ(f.listed(), layout_of<nvmlNvlinkTelemetrySample_v1_t>());
    return ++seen, true;
  };
  flat.telemetryCount = 7;
  EXPECT_TRUE(for_each_pointer(layout, reinterpret_cast<std::byte*>(&flat), sizeof flat, count));
  EXPECT_EQ(seen, 1);
  // In an older, shorter version of a struct only the present fields are visited.
  EXPECT_TRUE(for_each_pointer(layout, reinterpret_cast<std::byte*>(&flat), 8, count));
  EXPECT_EQ(seen, 1);

  auto metrics = std::make_unique<nvmlGpmMetricsGet_t>();
  metrics->numMetrics = 3;
  const struct_layout& tailed = *layout_of<nvmlGpmMetricsGet_t>();
  ASSERT_NE(tail_of(tailed), nullptr);
  EXPECT_EQ(tail_of(layout), nullptr);
  int texts = 0;
  const auto take = [&](const field_layout& f, std::byte*) {
    EXPECT_EQ(f.kind, field_kind::text);
    return ++texts < 100;
  };
  auto* at = reinterpret_cast<std::byte*>(metrics.get());
  EXPECT_TRUE(for_each_pointer(tailed, at, sizeof *metrics, take));
  EXPECT_EQ(texts, 9);
  // A count that is too large for the memory is cut to it.
  metrics->numMetrics = ~0u;
  EXPECT_FALSE(for_each_pointer(tailed, at, sizeof *metrics, take));
  EXPECT_TRUE(for_each_pointer(tailed, at, offsetof(nvmlGpmMetricsGet_t, metrics), take));
  EXPECT_EQ(texts, 100);
}

TEST(nvml_layout, what_leads_elsewhere_is_known) {
  EXPECT_TRUE(leads_elsewhere(*layout_of<nvmlGpmMetricsGet_t>()));
  EXPECT_TRUE(leads_elsewhere(*layout_of<nvmlVgpuPlacementList_v2_t>()));
  EXPECT_FALSE(leads_elsewhere(*layout_of<nvmlPerfMetricsSamples_v1_t>()));
  EXPECT_FALSE(leads_elsewhere(*layout_of<nvmlEventData_t>()));
}

#ifdef OUTBOARD_HAS_NVML_HEADER
template <class T>
concept complete = requires {
  sizeof(T);
};

#define F(type, field)                                                                \
  EXPECT_EQ(offsetof(Vendor, field), offsetof(ours, field)) << what << "." << #field; \
  EXPECT_EQ(sizeof(Vendor::field), sizeof(ours::field)) << what << "." << #field;
#define A(type, field, count) F(type, field)
#define A2(type, field, rows, columns) F(type, field)
#define P(type, field, count) F(type, field)
// How long the array may be differs from header to header: only so many elements are touched as the program
// says.
#define T(type, field, capacity, count)                                                              \
  EXPECT_EQ(offsetof(Vendor, field), offsetof(ours, field)) << what << "." << #field;                \
  EXPECT_EQ(sizeof(std::declval<Vendor>().field[0]), sizeof(std::declval<ours>().field[0])) << what; \
  EXPECT_LE(sizeof(Vendor::field), sizeof(ours::field)) << what << ": a newer header has more";
#define S(field) F(char*, field)
#define STRUCT(name, fields)                             \
  template <class Vendor>                                \
  int compare_##name() {                                 \
    if constexpr (complete<Vendor>) {                    \
      using ours = api::nvml::name;                      \
      constexpr const char* what = #name;                \
      if (!tail_of(*layout_of<ours>())) {                \
        EXPECT_EQ(sizeof(Vendor), sizeof(ours)) << what; \
      }                                                  \
      fields return 1;                                   \
    }                                                    \
    return 0;                                            \
  }
#define VERSIONED(name, number, fields) STRUCT(name, fields)
#define UNION(name, fields) STRUCT(name, fields)
#include "api/nvml/structs.def"
#undef UNION
#undef VERSIONED
#undef STRUCT
#undef S
#undef T
#undef P
#undef A2
#undef A
#undef F

TEST(nvml_header, sizes_and_offsets_are_ours) {
  int compared = 0;
#define STRUCT(name, fields) compared += compare_##name<known_names::header::vendor_##name>();
#define VERSIONED(name, number, fields) STRUCT(name, fields)
#define UNION(name, fields) STRUCT(name, fields)
#include "api/nvml/structs.def"
#undef UNION
#undef VERSIONED
#undef STRUCT
  // The others are members without a name there, and layouts of old versions that it no longer has.
  EXPECT_GT(compared, 80);
  EXPECT_LT(compared, static_cast<int>(structs().size()));
}

std::string header() {
  std::ifstream file(OUTBOARD_NVML_HEADER);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Newer headers declare more functions; the test names those without a line.
TEST(nvml_header, every_function_has_a_line) {
  const std::string text = header();
  std::set<std::string> names;
  const std::regex declaration(R"(DECLDIR\s+(nvml\w+)\s*\()");
  for (std::sregex_iterator at(text.begin(), text.end(), declaration), end; at != end; ++at)
    names.insert((*at)[1]);
  EXPECT_GT(names.size(), 300u);
  for (const std::string& name : names) EXPECT_NE(find_function(name), nullptr) << name;
}
#else
TEST(nvml_header, is_compared) { GTEST_SKIP() << "no nvml.h on this machine"; }
#endif

}  // namespace
}  // namespace outboard::api::nvml
