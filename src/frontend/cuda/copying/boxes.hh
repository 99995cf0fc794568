// Copies of two and three dimensions, for every function that asks for them: one description of the copy, one
// way to carry it out. Host rows travel packed. Any thread.
#pragma once

#include <cstddef>
#include <vector>

#include "api/cuda/headers.hh"
#include "marshal/cuda/array_bodies.hh"

namespace outboard::frontend::cuda {

/// One side as the program gave it; of array, host and device only what `type` says counts.
struct box_end {
  CUmemorytype type = CU_MEMORYTYPE_HOST;
  void* host = nullptr;
  CUdeviceptr device = 0;
  CUarray array = nullptr;
  std::uint64_t x = 0, y = 0, z = 0;  ///< x in bytes
  unsigned level = 0;
  std::uint64_t pitch = 0, rows = 0;  ///< 0: as narrow and low as the copy allows
  CUcontext context = nullptr;
};

struct box {
  box_end to, from;
  std::uint64_t width = 0, height = 0, depth = 1;
  bool peer = false;
};

CUresult copy_box(box copy, CUstream stream, marshal::flavour how);

/// Reads a source in page-locked memory now: the copy's source is then `bytes`, without gaps. False: the
/// source is not all in one such block, and nothing has changed. The sides' types are known, their pitches
/// not yet.
bool read_source(box& copy, std::vector<std::byte>& bytes);

/// Bytes of an element of the array; 0: a format of which we know nothing (compressed, planar).
std::uint64_t element_bytes(const CUDA_ARRAY3D_DESCRIPTOR& about);

}  // namespace outboard::frontend::cuda
