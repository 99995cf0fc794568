#include "shim/cuda/export_chapter.hh"

#include "api/cuda/tensor_map.def"  // after the macros above
