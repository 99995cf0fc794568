#include "shim/cuda/export_chapter.hh"

#include "api/cuda/green_context.def"  // after the macros above
