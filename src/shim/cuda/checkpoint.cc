#include "api/cuda/checkpoint.def"
#include "shim/cuda/export_chapter.hh"
