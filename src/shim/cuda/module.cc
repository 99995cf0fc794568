#include "shim/cuda/export_chapter.hh"

#include "api/cuda/module.def"  // after the macros above
