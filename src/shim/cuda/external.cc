#include "api/cuda/external.def"
#include "shim/cuda/export_chapter.hh"
