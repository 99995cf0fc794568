#include "shim/cuda/export_chapter.hh"

#include "api/cuda/external.def"  // after the macros above
