#include "api/cuda/multicast.def"
#include "shim/cuda/export_chapter.hh"
