#include "shim/cuda/export_chapter.hh"

#include "api/cuda/context.def"  // after the macros above
