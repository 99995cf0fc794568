#include "shim/cuda/export_chapter.hh"

#include "api/cuda/initialization.def"  // after the macros above
