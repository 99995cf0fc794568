#include "api/cuda/graph.def"
#include "shim/cuda/export_chapter.hh"
