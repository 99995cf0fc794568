#include "shim/cuda/export_chapter.hh"

#include "api/cuda/logs.def"  // after the macros above
