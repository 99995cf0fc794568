#include "api/cuda/device.def"
#include "shim/cuda/export_chapter.hh"
