#include "api/cuda/initialization.def"
#include "shim/cuda/export_chapter.hh"
