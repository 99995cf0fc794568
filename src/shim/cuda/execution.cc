#include "api/cuda/execution.def"
#include "shim/cuda/export_chapter.hh"
