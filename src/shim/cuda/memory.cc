#include "shim/cuda/export_chapter.hh"

#include "api/cuda/memory.def"  // after the macros above
