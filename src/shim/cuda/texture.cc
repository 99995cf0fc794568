#include "api/cuda/texture.def"
#include "shim/cuda/export_chapter.hh"
