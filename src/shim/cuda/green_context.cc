#include "api/cuda/green_context.def"
#include "shim/cuda/export_chapter.hh"
