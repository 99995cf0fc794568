#include "shim/cuda/export_chapter.hh"

#include "api/cuda/multicast.def"  // after the macros above
