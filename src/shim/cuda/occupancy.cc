#include "shim/cuda/export_chapter.hh"

#include "api/cuda/occupancy.def"  // after the macros above
