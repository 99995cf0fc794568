#include "shim/cuda/export_chapter.hh"

#include "api/cuda/stream_memory.def"  // after the macros above
