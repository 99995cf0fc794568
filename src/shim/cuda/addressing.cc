#include "shim/cuda/export_chapter.hh"

#include "api/cuda/addressing.def"  // after the macros above
