// The one mock device of the process as its entries see it. Internal to the mock. `current` is set by open()
// before any entry can be called and cleared when the device dies.
#pragma once

#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <set>
#include <vector>

#include "device/mock/control.hh"

namespace outboard::device::mock {

inline constexpr int attribute_count = 160;  ///< ids above CU_DEVICE_ATTRIBUTE_MAX stay invalid

struct physical {
  int fd = -1;
  std::uint64_t size = 0;
  int references = 1;
  CUmemAllocationProp prop{};
};

struct mapping {
  std::uint64_t size = 0;
  CUmemGenericAllocationHandle from = 0;
  bool accessible = false;
};

/// A multicast object.
struct team {
  std::uint64_t size = 0;
  unsigned wanted = 0;
  std::set<CUdevice> devices;
  std::map<std::uint64_t, std::uint64_t> bound;  // offset, size
};

struct state {
  control calls;
  std::atomic<std::uint64_t> next_handle{1};

  std::mutex mutex;  // guards all below
  std::array<int, attribute_count> attributes{};
  std::vector<parameter_layout> parameters{{0, 8}};
  std::uint64_t total_memory = 80ull << 30;
  std::uint64_t used_memory = 0;
  bool initialised = false;
  int primary_references = 0;
  std::map<std::uint64_t, std::uint64_t> allocations;   // cuMemAlloc: address, size
  std::map<std::uint64_t, std::uint64_t> host_blocks;   // cuMemHostAlloc: address, size
  std::map<std::uint64_t, std::uint64_t> registered;    // cuMemHostRegister: address, size; not ours
  std::map<std::uint64_t, std::uint64_t> reservations;  // address, size
  std::map<std::uint64_t, mapping> mappings;            // address
  std::map<CUmemGenericAllocationHandle, physical> physicals;
  std::map<CUmemGenericAllocationHandle, team> teams;
  std::map<std::pair<std::uint64_t, std::string>, std::uint64_t>
      globals;  // module or library and name: address

  ~state();
  /// Deterministic: 0x1000, 0x1010, ... in the order of creation, never 0, 1 or 2.
  std::uint64_t make_handle() { return 0xff0 + 0x10 * next_handle.fetch_add(1); }
};

extern std::atomic<state*> current;
inline state& here() { return *current.load(std::memory_order_acquire); }

/// True if the whole range is in mappings that may be read and written. Call it under the mutex.
bool is_mapped(const state& s, std::uint64_t address, std::uint64_t bytes);

/// True if the mock allocated this memory; other addresses must not be dereferenced.
bool is_given(CUdeviceptr address, std::uint64_t bytes);

/// Sets the functions that do something: those of the facts chapter (device, driver, attributes), the memory
/// chapter and so on. All others are expanded generically.
void set_fact_behaviours(api::driver_table& behaviours);
void set_context_behaviours(api::driver_table& behaviours);
void set_memory_behaviours(api::driver_table& behaviours);
void set_virtual_memory_behaviours(api::driver_table& behaviours);
void set_array_behaviours(api::driver_table& behaviours);
void set_multicast_behaviours(api::driver_table& behaviours);
void set_green_context_behaviours(api::driver_table& behaviours);
void set_default_attributes(state& s);

/// The behaviours of the process's mock, filled once; entries without one are generic.
const api::driver_table& behaviours();

/// Fills every entry of the table; each counts and logs around its behaviour or generic answer.
void fill_entries(api::driver_table& table);

}  // namespace outboard::device::mock
