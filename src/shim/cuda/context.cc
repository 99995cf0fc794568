#include "api/cuda/context.def"
#include "shim/cuda/export_chapter.hh"
