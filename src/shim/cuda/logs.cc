#include "api/cuda/logs.def"
#include "shim/cuda/export_chapter.hh"
