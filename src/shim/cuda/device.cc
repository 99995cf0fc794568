#include "shim/cuda/export_chapter.hh"

#include "api/cuda/device.def"  // after the macros above
