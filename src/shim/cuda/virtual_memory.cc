#include "shim/cuda/export_chapter.hh"

#include "api/cuda/virtual_memory.def"  // after the macros above
