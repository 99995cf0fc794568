#include "api/cuda/tensor_map.def"
#include "shim/cuda/export_chapter.hh"
