// What a program does in the target frontend_session: an ordinary CUDA program, step by step. It calls what
// an application may call, with memory that is as large as it says; a code of failure is no reason to stop.
// One thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "api/cuda/headers.hh"

namespace outboard::fuzz {

class program {
 public:
  program() : bytes_(room), more_(room) {}
  void start();
  /// One of some hundred; `how` says which of its forms.
  void step(std::uint8_t which, std::uint8_t how);

 private:
  static constexpr std::size_t room = 3u << 20;

  void devices(unsigned which, unsigned how);
  void memory(unsigned which, unsigned how);
  void copies(unsigned which, unsigned how);
  void code(unsigned which, unsigned how);
  void links(unsigned which, unsigned how);
  void streams(unsigned which, unsigned how);
  void graphs(unsigned which, unsigned how);
  void graph_questions(unsigned which, unsigned how);
  void pools(unsigned which, unsigned how);
  void addresses(unsigned which, unsigned how);
  void arrays(unsigned which, unsigned how);
  void questions(unsigned which, unsigned how);

  std::size_t size(unsigned how) const { return std::size_t{1} << how % 22; }

  CUcontext context_ = nullptr;
  CUdeviceptr memory_ = 0, managed_ = 0, pooled_ = 0, reserved_ = 0, shown_ = 0;
  void* locked_ = nullptr;
  CUmodule module_ = nullptr;
  CUfunction function_ = nullptr;
  CUlibrary library_ = nullptr;
  CUkernel kernel_ = nullptr;
  CUlinkState link_ = nullptr;
  CUstream stream_ = nullptr;
  std::array<CUevent, 2> events_{};
  CUgraph graph_ = nullptr, clone_ = nullptr;
  CUgraphNode node_ = nullptr;
  CUgraphExec executable_ = nullptr;
  CUmemoryPool pool_ = nullptr;
  CUmemGenericAllocationHandle physical_ = 0;
  CUarray array_ = nullptr;
  CUtexObject texture_ = 0;
  std::vector<std::byte> bytes_, more_;  ///< the program's own memory
};

}  // namespace outboard::fuzz
