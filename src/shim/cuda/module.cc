#include "api/cuda/module.def"
#include "shim/cuda/export_chapter.hh"
