#include "api/cuda/memory.def"
#include "shim/cuda/export_chapter.hh"
