#include "api/cuda/stream_memory.def"
#include "shim/cuda/export_chapter.hh"
