#include "api/cuda/stream.def"
#include "shim/cuda/export_chapter.hh"
