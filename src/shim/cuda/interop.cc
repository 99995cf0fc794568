#include "shim/cuda/export_chapter.hh"

#include "api/cuda/interop.def"  // after the macros above
