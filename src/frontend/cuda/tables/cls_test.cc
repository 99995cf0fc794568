#include "frontend/cuda/tables/cls.hh"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <set>
#include <thread>
#include <tuple>
#include <vector>

namespace outboard::frontend::cuda {
namespace {

void* pointer(std::uintptr_t value) { return reinterpret_cast<void*>(value); }
CUcontext context(std::uintptr_t n) { return reinterpret_cast<CUcontext>(0x10000 + n * 16); }

std::set<std::tuple<CUcontext, void*, void*>> destroyed;
void note(CUcontext c, void* key, void* value) { destroyed.emplace(c, key, value); }

void* get(CUcontext c, void* key) {
  void* value = nullptr;
  return cls_get(&value, c, key) == CUDA_SUCCESS ? value : nullptr;
}

struct cls : testing::Test {
  void SetUp() override { cls_forked(), destroyed.clear(); }
};

TEST_F(cls, keeps_a_value_per_context_and_key) {
  EXPECT_EQ(cls_put(context(1), pointer(100), pointer(1), note), CUDA_SUCCESS);
  EXPECT_EQ(cls_put(context(1), pointer(200), pointer(2), note), CUDA_SUCCESS);
  EXPECT_EQ(cls_put(context(2), pointer(100), pointer(3), note), CUDA_SUCCESS);
  EXPECT_EQ(get(context(1), pointer(100)), pointer(1));
  EXPECT_EQ(get(context(1), pointer(200)), pointer(2));
  EXPECT_EQ(get(context(2), pointer(100)), pointer(3));
}

TEST_F(cls, an_unknown_key_leaves_the_value_alone) {
  void* value = pointer(42);
  EXPECT_EQ(cls_get(&value, context(1), pointer(100)), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cls_put(context(1), pointer(100), pointer(1), note), CUDA_SUCCESS);
  EXPECT_EQ(cls_get(&value, context(1), pointer(101)), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cls_get(&value, context(2), pointer(100)), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(value, pointer(42));
}

TEST_F(cls, putting_again_replaces_without_destroying) {
  EXPECT_EQ(cls_put(context(1), pointer(100), pointer(1), note), CUDA_SUCCESS);
  EXPECT_EQ(cls_put(context(1), pointer(100), pointer(2), note), CUDA_SUCCESS);
  EXPECT_EQ(get(context(1), pointer(100)), pointer(2));
  EXPECT_EQ(cls_context_died(context(1)), 1u);
  EXPECT_EQ(destroyed.size(), 1u);
  EXPECT_TRUE(destroyed.count({context(1), pointer(100), pointer(2)}));
}

TEST_F(cls, delete_forgets_without_destroying) {
  EXPECT_EQ(cls_put(context(1), pointer(100), pointer(1), note), CUDA_SUCCESS);
  EXPECT_EQ(cls_delete(context(1), pointer(100)), CUDA_SUCCESS);
  EXPECT_EQ(cls_delete(context(1), pointer(100)), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(get(context(1), pointer(100)), nullptr);
  EXPECT_EQ(cls_context_died(context(1)), 0u);
  EXPECT_TRUE(destroyed.empty());
}

TEST_F(cls, death_of_a_context_destroys_its_entries_and_no_others) {
  for (std::uintptr_t key = 1; key <= 10; ++key) {
    EXPECT_EQ(cls_put(context(1), pointer(key * 8), pointer(key), key % 2 ? note : nullptr), CUDA_SUCCESS);
    EXPECT_EQ(cls_put(context(2), pointer(key * 8), pointer(key), note), CUDA_SUCCESS);
  }
  EXPECT_EQ(cls_context_died(context(1)), 10u);
  EXPECT_EQ(destroyed.size(), 5u);
  for (std::uintptr_t key = 1; key <= 10; ++key) {
    EXPECT_EQ(get(context(1), pointer(key * 8)), nullptr);
    EXPECT_EQ(get(context(2), pointer(key * 8)), pointer(key));
    EXPECT_EQ(destroyed.count({context(1), pointer(key * 8), pointer(key)}), key % 2);
  }
  EXPECT_EQ(cls_context_died(context(1)), 0u);
  // A reset context comes back under the same handle.
  EXPECT_EQ(cls_put(context(1), pointer(8), pointer(9), note), CUDA_SUCCESS);
  EXPECT_EQ(get(context(1), pointer(8)), pointer(9));
}

void put_again(CUcontext c, void* key, void* value) { cls_put(c, key, value, put_again); }
void delete_all(CUcontext c, void* key, void* value) {
  note(c, key, value);
  for (std::uintptr_t n = 1; n <= 5; ++n) cls_delete(c, pointer(n * 8));
}

TEST_F(cls, destructors_may_call_back) {
  EXPECT_EQ(cls_put(context(1), pointer(8), pointer(1), put_again), CUDA_SUCCESS);
  EXPECT_GE(cls_context_died(context(1)), 1u);  // and returns
  for (std::uintptr_t n = 1; n <= 5; ++n)
    EXPECT_EQ(cls_put(context(2), pointer(n * 8), pointer(n), delete_all), CUDA_SUCCESS);
  EXPECT_EQ(cls_context_died(context(2)), 1u);
  EXPECT_EQ(destroyed.size(), 1u) << "an entry that was deleted meanwhile must not be destroyed as well";
}

TEST_F(cls, survives_growth_and_many_resets) {
  for (std::uintptr_t n = 0; n < 1000; ++n)
    ASSERT_EQ(cls_put(context(n), pointer(8), pointer(n + 1), nullptr), CUDA_SUCCESS);
  for (std::uintptr_t n = 0; n < 20000; ++n) {
    ASSERT_EQ(cls_put(context(5000 + n % 7), pointer(16), pointer(n + 1), nullptr), CUDA_SUCCESS);
    ASSERT_EQ(cls_context_died(context(5000 + n % 7)), 1u);
  }
  for (std::uintptr_t n = 0; n < 1000; ++n) ASSERT_EQ(get(context(n), pointer(8)), pointer(n + 1));
}

// Values name their key and context, so a reader can tell that what it got belongs together.
TEST_F(cls, readers_never_see_a_foreign_value) {
  std::atomic<bool> stop{false};
  std::atomic<long> wrong{0}, found{0};
  const auto value_of = [](std::uintptr_t c, std::uintptr_t key) { return pointer(c * 1000 + key); };
  cls_put(context(999), pointer(8), value_of(999, 8), nullptr);
  std::vector<std::thread> readers;
  for (int n = 0; n < 3; ++n) {
    readers.emplace_back([&] {
      while (!stop) {
        if (get(context(999), pointer(8)) != value_of(999, 8)) ++wrong;  // never touched: always there
        for (std::uintptr_t c = 1; c <= 40; ++c) {
          for (std::uintptr_t key = 8; key <= 24; key += 8) {
            void* const got = get(context(c), pointer(key));
            if (got) ++found;
            if (got && got != value_of(c, key)) ++wrong;
          }
        }
      }
    });
  }
  for (int round = 0; round < 100 || (found == 0 && round < 100000); ++round) {
    for (std::uintptr_t c = 1; c <= 40; ++c)
      for (std::uintptr_t key = 8; key <= 24; key += 8)
        cls_put(context(c), pointer(key), value_of(c, key), nullptr);
    for (std::uintptr_t c = 1; c <= 40; ++c) {
      cls_delete(context(c), pointer(16));
      cls_context_died(context(c));
    }
    std::this_thread::yield();
  }
  stop = true;
  for (auto& reader : readers) reader.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(found, 0);
}

TEST_F(cls, a_forked_child_starts_empty_and_can_go_on) {
  cls_put(context(1), pointer(8), pointer(1), note);
  const pid_t child = fork();
  if (child == 0) {
    cls_forked();
    const bool empty = get(context(1), pointer(8)) == nullptr;
    const bool works = cls_put(context(1), pointer(8), pointer(2), nullptr) == CUDA_SUCCESS &&
                       get(context(1), pointer(8)) == pointer(2);
    _exit(empty && works && destroyed.empty() ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(get(context(1), pointer(8)), pointer(1));
}

}  // namespace
}  // namespace outboard::frontend::cuda
