#include "api/cuda/occupancy.def"
#include "shim/cuda/export_chapter.hh"
