#include "shim/cuda/export_chapter.hh"

#include "api/cuda/texture.def"  // after the macros above
