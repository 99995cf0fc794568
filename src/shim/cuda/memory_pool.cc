#include "shim/cuda/export_chapter.hh"

#include "api/cuda/memory_pool.def"  // after the macros above
