#include "api/cuda/memory_pool.def"
#include "shim/cuda/export_chapter.hh"
