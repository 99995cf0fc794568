#include "shim/cuda/export_chapter.hh"

#include "api/cuda/error.def"  // after the macros above
