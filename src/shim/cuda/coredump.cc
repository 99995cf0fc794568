#include "shim/cuda/export_chapter.hh"

#include "api/cuda/coredump.def"  // after the macros above
