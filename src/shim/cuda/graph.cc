#include "shim/cuda/export_chapter.hh"

#include "api/cuda/graph.def"  // after the macros above
