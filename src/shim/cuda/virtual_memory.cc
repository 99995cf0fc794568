#include "api/cuda/virtual_memory.def"
#include "shim/cuda/export_chapter.hh"
