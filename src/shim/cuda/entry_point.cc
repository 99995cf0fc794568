#include "shim/cuda/export_chapter.hh"

#include "api/cuda/entry_point.def"  // after the macros above
