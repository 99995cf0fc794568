#include "api/cuda/addressing.def"
#include "shim/cuda/export_chapter.hh"
