#include "shim/cuda/export_chapter.hh"

#include "api/cuda/event.def"  // after the macros above
