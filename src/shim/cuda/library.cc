#include "api/cuda/library.def"
#include "shim/cuda/export_chapter.hh"
