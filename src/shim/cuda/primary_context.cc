#include "shim/cuda/export_chapter.hh"

#include "api/cuda/primary_context.def"  // after the macros above
