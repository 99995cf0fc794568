#include "api/cuda/event.def"
#include "shim/cuda/export_chapter.hh"
