#include "api/cuda/entry_point.def"
#include "shim/cuda/export_chapter.hh"
