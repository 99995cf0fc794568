#include "shim/cuda/export_chapter.hh"

#include "api/cuda/checkpoint.def"  // after the macros above
