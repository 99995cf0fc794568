// Memory pools of the cpu device (cuMemPool*, cuMemAllocAsync): chunks of whole granules taken from device
// memory, blocks cut out of them, and the accounts that programs ask for. What is freed stays with its pool
// up to the release threshold. Any thread; the set is owned by the machine, a pool lives while its handle or
// one of its blocks does.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <mutex>

#include "device/cpu/memory/memory.hh"
#include "device/cpu/memory/shared_file.hh"

namespace outboard::device::cpu {

/// At the beginning of the file of a shared pool, where no block lies.
struct pool_file_head {
  std::array<std::uint8_t, 16> key{};  ///< pointers of another pool are refused
};

class pool {
 public:
  pool(memory& store, std::uint64_t id, const CUmemPoolProps& properties)
      : store_(store), id_(id), properties_(properties) {}
  ~pool();
  pool(const pool&) = delete;
  pool& operator=(const pool&) = delete;

  /// Memory that other processes may have too: a file of its own. False: there is none to be had.
  bool share();
  /// Another process's pool, by the descriptor that export_to() gave there. False: it is none.
  bool import(int fd);
  CUresult export_to(unique_fd& out) const;
  CUresult export_pointer(std::uint64_t address, CUmemPoolPtrExportData& out) const;
  CUresult import_pointer(const CUmemPoolPtrExportData& from, std::uint64_t owner, std::uint64_t& out);

  CUresult allocate(std::uint64_t size, std::uint64_t owner, std::uint64_t& out);
  /// False: the block that had this id is gone already.
  bool release(std::uint64_t address, std::uint64_t block_id);
  /// Gives wholly free chunks back while more than `keep` bytes are held.
  void trim(std::uint64_t keep);
  void release_all();
  bool empty() const;

  CUresult set(CUmemPool_attribute which, const void* value);
  CUresult get(CUmemPool_attribute which, void* value) const;

 private:
  void trim_locked(std::uint64_t keep);
  void release_locked(std::uint64_t address, std::uint64_t size);
  CUresult take_chunk(std::uint64_t size, std::uint64_t& out);
  void give_back_chunk(std::uint64_t address, std::uint64_t size);
  bool displace(std::uint64_t address, std::uint64_t block_id);
  pool_file_head& head() const { return *reinterpret_cast<pool_file_head*>(mapping_.begin()); }

  memory& store_;
  const std::uint64_t id_;
  const CUmemPoolProps properties_;
  mutable std::mutex mutex_;
  range_allocator free_;
  std::map<std::uint64_t, std::uint64_t> chunks_;  // begin -> size
  std::map<std::uint64_t, std::uint64_t> blocks_;  // begin -> bytes taken
  std::uint64_t threshold_ = 0;
  std::uint64_t reserved_ = 0, reserved_high_ = 0, used_ = 0, used_high_ = 0;
  int reuse_[3] = {1, 1, 1};  // what the driver's pools start with
  unique_fd file_;            // of a pool that can be shared
  shared_mapping mapping_;
  range_allocator room_;  // in mapping_, for chunks
  bool imported_ = false;
};
using pool_ptr = std::shared_ptr<pool>;

class pool_set {
 public:
  explicit pool_set(memory& store);

  /// 0: a pool that can be shared is not to be had.
  std::uint64_t create(const CUmemPoolProps& properties);
  /// 0: the descriptor is no pool's.
  std::uint64_t import(int fd);
  /// The blocks of a destroyed pool live on until they are freed. False: no such pool, or the default one.
  bool destroy(std::uint64_t handle);
  pool_ptr find(std::uint64_t handle) const;     ///< nullptr: destroyed or never made
  pool_ptr owner_of(const region& block) const;  ///< destroyed pools too
  /// A block has been freed: a destroyed pool may now be gone.
  void settle(const region& block);
  /// Everything that pools hold beyond what is in use.
  void trim_all();
  void release_all();

  std::uint64_t standard() const { return standard_; }
  std::uint64_t current() const;
  CUresult make_current(std::uint64_t handle);

 private:
  struct entry {
    pool_ptr made;
    bool destroyed = false;
  };
  std::uint64_t insert(const CUmemPoolProps& properties, bool (*prepare)(pool&, int), int fd);

  memory& store_;
  mutable std::mutex mutex_;
  std::map<std::uint64_t, entry> pools_;
  std::uint64_t last_ = 0, standard_ = 0, current_ = 0;
};

}  // namespace outboard::device::cpu
