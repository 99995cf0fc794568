#include "api/cuda/interop.def"
#include "shim/cuda/export_chapter.hh"
