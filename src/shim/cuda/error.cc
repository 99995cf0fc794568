#include "api/cuda/error.def"
#include "shim/cuda/export_chapter.hh"
