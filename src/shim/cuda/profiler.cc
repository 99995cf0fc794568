#include "shim/cuda/export_chapter.hh"

#include "api/cuda/profiler.def"  // after the macros above
