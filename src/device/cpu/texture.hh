// The textures and surfaces that kernels of the cpu device may name: 64-bit values looked up without a lock.
// Making and destroying take one; an object dies only when no kernel of its context runs. Owned by the
// machine; any thread.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "api/cuda/headers.hh"
#include "device/cpu/context.hh"
#include "ptx/run/texture.hh"

namespace outboard::device::cpu {

struct texture_object {
  context_ptr owner;
  ptx::texture texture;
  bool surface = false;
  CUDA_RESOURCE_DESC resource{};
  CUDA_TEXTURE_DESC sampling{};
  CUDA_RESOURCE_VIEW_DESC view{};
  bool has_view = false;
};

class texture_table final : public ptx::texture_source {
 public:
  ~texture_table() override;
  const ptx::texture* find_texture(std::uint64_t handle) const override;
  const ptx::image* find_surface(std::uint64_t handle) const override;

  /// 0: as many as there can be are alive.
  std::uint64_t insert(std::unique_ptr<const texture_object> made);
  /// nullptr: no such object. Valid until somebody removes it.
  const texture_object* find(std::uint64_t handle) const;
  /// What it gives back must outlive the kernels that use it.
  std::unique_ptr<const texture_object> remove(std::uint64_t handle);
  void remove_owned(const context_ptr& owner);

 private:
  // A value: index + 1 in the low 32 bits, generation above; so neither 0 nor a small change of a value names
  // another object.
  struct slot {
    std::atomic<std::uint64_t> handle{0};
    std::unique_ptr<const texture_object> object;
    std::uint32_t generation = 0;
  };
  static constexpr std::size_t chunk_size = 1024, max_chunks = 1024;
  using chunk = std::array<slot, chunk_size>;

  slot* at(std::uint64_t handle) const;

  std::array<std::atomic<chunk*>, max_chunks> chunks_{};
  std::mutex mutex_;  // guards what follows, and changes
  std::vector<std::uint32_t> free_;
  std::uint32_t used_ = 0;
};

}  // namespace outboard::device::cpu
