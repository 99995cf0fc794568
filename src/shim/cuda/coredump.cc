#include "api/cuda/coredump.def"
#include "shim/cuda/export_chapter.hh"
