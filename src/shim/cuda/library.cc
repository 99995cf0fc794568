#include "shim/cuda/export_chapter.hh"

#include "api/cuda/library.def"  // after the macros above
