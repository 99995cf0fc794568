#include "shim/cuda/export_chapter.hh"

#include "api/cuda/execution.def"  // after the macros above
