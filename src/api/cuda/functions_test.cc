#include "api/cuda/functions.hh"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <tuple>

#include "api/cuda/driver_table.hh"
#include "api/cuda/handles.hh"
#include "api/cuda/work_calls.hh"
#include "base/testing/places.hh"

namespace outboard::api {
namespace {

TEST(functions, are_in_opcode_order_and_once_each) {
  std::set<std::string_view> names;
  std::uint32_t last = 0;
  for (const function_info& f : functions()) {
    EXPECT_GT(static_cast<std::uint32_t>(f.code), last) << f.name;
    last = static_cast<std::uint32_t>(f.code);
    EXPECT_TRUE(names.insert(f.name).second) << f.name;
    EXPECT_EQ(f.name.data()[f.name.size()], '\0');
    EXPECT_EQ(f.chapter, chapter_name(f.code));
    EXPECT_EQ(f.about.error, parse_error::none) << f.name;
  }
}

TEST(functions, are_found_by_code_and_by_name) {
  for (const function_info& f : functions()) {
    EXPECT_EQ(find_function(static_cast<std::uint32_t>(f.code)), &f);
    EXPECT_EQ(find_function(f.name), &f);
  }
  for (std::uint32_t code : {0u, 1u, 999u, 1999u, 8999u, 31000u, ~0u})
    EXPECT_EQ(find_function(code), nullptr) << code;
  for (std::string_view name : {"", "cu", "cuMemAlloc_v", "cuMemAlloc_v22", "zz", "CUMEMALLOC"}) {
    EXPECT_EQ(find_function(name), nullptr) << name;
  }
}

TEST(functions, the_kind_comes_from_the_line) {
  EXPECT_EQ(find_function("cuGetErrorName")->about.how, kind::local);
  EXPECT_EQ(find_function("cuMemAlloc_v2")->about.how, kind::custom);
  EXPECT_EQ(find_function("cuMemcpy2D_v2")->about.how, kind::via);
  EXPECT_EQ(find_function("cuStreamSynchronize")->about.how, kind::call);
  EXPECT_EQ(find_function("cuEventRecord")->about.how, kind::post);
  EXPECT_EQ(find_function("cuMemAlloc")->about.how, kind::local);
  EXPECT_EQ(find_function("cuGLInit")->about.how, kind::refused);
}

TEST(functions, those_without_a_request_of_their_own_say_how_they_travel) {
  EXPECT_EQ(find_function("cuMemcpy2D_v2")->about.via, "cuMemcpy3D_v2");
  EXPECT_EQ(find_function("cuCheckpointProcessGetState")->about.travels, travel::aside);
  EXPECT_EQ(find_function("cuMemcpyAsync")->about.travels, travel::handled);
  int under_others = 0, aside = 0;
  for (const function_info& f : functions()) {
    EXPECT_EQ(has_handler(f.about), f.about.how == kind::custom) << f.name;
    EXPECT_TRUE(f.about.via.empty() || f.about.how == kind::custom || f.about.how == kind::via) << f.name;
    under_others += !f.about.via.empty();
    aside += f.about.travels == travel::aside;
    std::string_view names = f.about.via;
    while (!names.empty()) {
      const std::string_view name = detail::next_item(names, ' ');
      EXPECT_NE(name, f.name) << "it has a handler: CUSTOM says so";
      const function_info* const other = find_function(name);
      ASSERT_NE(other, nullptr) << f.name << " via " << name;
      EXPECT_TRUE(is_served(other->about)) << f.name << " via " << name;
    }
  }
  EXPECT_GT(under_others, 190);
  EXPECT_EQ(aside, 6);
}

// The wire carries opcodes. A line may be appended to its chapter; then append it here too. Nothing else may
// change.
TEST(functions, opcodes_never_change) {
  const std::string path = in_checkout("src/api/cuda/opcodes.golden");
  std::ifstream golden(path);
  ASSERT_TRUE(golden) << path;
  std::set<std::string_view> listed;
  std::string line;
  while (std::getline(golden, line)) {
    if (line.empty() || line.front() == '#') continue;
    std::istringstream in(line);
    std::uint32_t code = 0;
    std::string name;
    ASSERT_TRUE(in >> code >> name) << line;
    const function_info* f = find_function(code);
    ASSERT_NE(f, nullptr) << "opcode " << code << " of " << name << " is gone";
    EXPECT_EQ(f->name, name) << "opcode " << code << " changed its meaning";
    listed.insert(f->name);
  }
  for (const function_info& f : functions()) {
    EXPECT_TRUE(listed.contains(f.name))
        << "not in opcodes.golden, where outboard_coverage opcodes appends it: "
        << static_cast<std::uint32_t>(f.code) << ' ' << f.name;
  }
}

// A generated line that makes or ends something must name a handle of a known type.
TEST(functions, what_is_born_or_dies_is_named_sensibly) {
  for (const function_info& f : functions()) {
    const description& d = f.about;
    if (d.creates != no_parameter) {
      EXPECT_EQ(d.parameters[d.creates].dir, direction::out) << f.name;
    }
    if (d.destroys != no_parameter) {
      EXPECT_EQ(d.parameters[d.destroys].dir, direction::in) << f.name;
    }
    EXPECT_FALSE(d.preinit && !d.noctx) << f.name;
    if (d.how == kind::post) {
      EXPECT_FALSE(d.waits) << f.name << ": nobody waits for a post";
    }
  }
}

// Profilers tie records of the device's work to the calls that these leave it with.
TEST(functions, what_leaves_work_says_so_in_each_version) {
  for (const char* name :
       {"cuLaunchKernel", "cuLaunchKernelEx_ptsz", "cuLaunchCooperativeKernel", "cuGraphLaunch_ptsz",
        "cuMemcpy", "cuMemcpyHtoD_v2", "cuMemcpyBatchAsync", "cuMemsetD2D32Async_ptsz"})
    EXPECT_TRUE(leaves_work(name)) << name;
  for (const char* name :
       {"cuEventRecord", "cuGraphUpload", "cuMemAlloc_v2", "cuMemPrefetchAsync", "nobody's", ""})
    EXPECT_FALSE(leaves_work(name)) << name;
}

// A deferred error may not be carried by a call with out-handles nor by one that frees (design: errors).
// A word where nobody asks for it would be a promise that nothing keeps.
TEST(functions, words_stand_where_they_have_an_effect) {
  for (const function_info& f : functions()) {
    const description& d = f.about;
    const bool generated = d.how == kind::call || d.how == kind::post;
    EXPECT_TRUE(d.over == over::nothing || d.deferred || d.waits) << f.name << ": over";
    EXPECT_TRUE(d.doubts == doubt::none || d.how == kind::post) << f.name << ": doubts";
    EXPECT_TRUE((!d.settles && !d.of_object) || generated) << f.name << ": settles, of_object";
    EXPECT_TRUE((!d.light && !d.followed && !d.overtakes) || is_served(d)) << f.name << ": light and others";
  }
}

TEST(functions, births_and_deaths_carry_no_deferred_error) {
  for (const function_info& f : functions()) {
    const description& d = f.about;
    EXPECT_FALSE(d.deferred && (d.creates != no_parameter || d.destroys != no_parameter)) << f.name;
  }
}

// The per-thread-default-stream entry of a function differs in its default stream and so, at most, in what a
// capture elsewhere forbids.
TEST(functions, per_thread_entries_match_their_legacy_line) {
  for (const function_info& f : functions()) {
    if (!f.name.ends_with("_ptds") && !f.name.ends_with("_ptsz")) continue;
    const function_info* legacy = find_function(f.name.substr(0, f.name.size() - 5));
    if (legacy == nullptr) continue;
    const bool goes_under_it = legacy->about.how == kind::custom && f.about.how == kind::via;
    EXPECT_TRUE(legacy->about.how == f.about.how || goes_under_it) << f.name;
    const description &a = legacy->about, &b = f.about;
    ASSERT_EQ(a.arity, b.arity) << f.name;
    for (std::size_t i = 0; i < a.arity; ++i) {
      EXPECT_EQ(a.parameters[i].name, b.parameters[i].name) << f.name;
      EXPECT_EQ(a.parameters[i].dir, b.parameters[i].dir) << f.name;
    }
    EXPECT_EQ(std::tie(a.creates, a.destroys, a.preinit, a.noctx, a.fence, a.waits, a.deferred, a.work,
                       a.graph, a.pool, a.adds, a.leaves, a.over, a.doubts, a.settles, a.itself, a.asks,
                       a.of_object, a.workless, a.batch, a.object),
              std::tie(b.creates, b.destroys, b.preinit, b.noctx, b.fence, b.waits, b.deferred, b.work,
                       b.graph, b.pool, b.adds, b.leaves, b.over, b.doubts, b.settles, b.itself, b.asks,
                       b.of_object, b.workless, b.batch, b.object))
        << f.name;
    EXPECT_FALSE(b.unsafe && !a.unsafe) << f.name;
  }
}

// The checks behind the static_asserts of functions.hh, on prototypes that do not fit their line.
struct opaque;
template <class F>
using shape = detail::signature<F>;

constexpr description line(std::string_view text) { return parse(kind::call, text); }

TEST(describe_checks, directions) {
  static_assert(shape<CUresult(int*)>::directions(line("out p")));
  static_assert(!shape<CUresult(int)>::directions(line("out p")), "out on a value");
  static_assert(!shape<CUresult(const int*)>::directions(line("inout p")), "inout on a const pointer");
  static_assert(shape<CUresult(CUdeviceptr)>::directions(line("at p")));
  static_assert(!shape<CUresult(int)>::directions(line("at p")), "at on no address");
  static_assert(!shape<CUresult(int, int*)>::directions(line("in a, at p")), "at on a pointer");
}

TEST(describe_checks, counts) {
  static_assert(shape<CUresult(void*, int)>::counts(line("in p[n], in n")));
  static_assert(!shape<CUresult(const void*, int)>::counts(line("in p, in n")), "void without a count");
  static_assert(!shape<CUresult(int, int)>::counts(line("in p[n], in n")), "count on a value");
  static_assert(shape<CUresult(char*, std::size_t*)>::counters(line("out p[n], inout n")));
  static_assert(!shape<CUresult(char*, float)>::counters(line("out p[n], in n")), "count is no integer");
}

TEST(describe_checks, handles) {
  static_assert(shape<CUresult(CUstream, CUevent*, const CUgraphNode**)>::opaques());
  static_assert(!shape<CUresult(opaque*)>::opaques(), "unknown handle type");
  static_assert(!shape<CUresult(int, opaque**)>::opaques(), "unknown handle type behind a pointer");
  static_assert(shape<CUresult(CUevent*, int)>::lives(line("out p, in n; creates p")));
  static_assert(!shape<CUresult(CUevent*, int)>::lives(line("out p, in n; destroys n")),
                "an int does not die");
}

TEST(driver_table, has_an_entry_for_all_but_the_refused) {
  std::set<std::string_view> visited;
  driver_table table;
  for_each_entry(table, [&](std::string_view name, void** slot) {
    EXPECT_EQ(*slot, nullptr);
    visited.insert(name);
    *slot = const_cast<char*>(name.data());
  });
  for (const function_info& f : functions()) {
    const bool wanted = f.about.how != kind::refused;
    EXPECT_EQ(visited.contains(f.name), wanted) << f.name;
    void* entry = table.entry(f.code);
    EXPECT_EQ(entry != nullptr, wanted) << f.name;
    if (entry != nullptr) {
      EXPECT_STREQ(static_cast<char*>(entry), f.name.data());
    }
  }
  EXPECT_EQ(table.entry(opcode::none), nullptr);
  EXPECT_EQ(table.entry(opcode::chapter_memory), nullptr);
}

CUresult an_answer(int* version) { return *version = 42, CUDA_SUCCESS; }

TEST(driver_table, entries_are_callable_by_their_type) {
  driver_table table;
  for_each_entry(table, [](std::string_view name, void** slot) {
    if (name == "cuDriverGetVersion") *slot = reinterpret_cast<void*>(&an_answer);
  });
  int version = 0;
  ASSERT_NE(table.cuDriverGetVersion, nullptr);
  EXPECT_EQ(table.cuDriverGetVersion(&version), CUDA_SUCCESS);
  EXPECT_EQ(version, 42);
  EXPECT_EQ(table.cuInit, nullptr);
}

}  // namespace
}  // namespace outboard::api
