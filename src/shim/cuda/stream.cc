#include "shim/cuda/export_chapter.hh"

#include "api/cuda/stream.def"  // after the macros above
