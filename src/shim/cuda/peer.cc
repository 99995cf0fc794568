#include "api/cuda/peer.def"
#include "shim/cuda/export_chapter.hh"
