#include "api/cuda/profiler.def"
#include "shim/cuda/export_chapter.hh"
