#include "shim/cuda/export_chapter.hh"

#include "api/cuda/peer.def"  // after the macros above
