#include "api/cuda/primary_context.def"
#include "shim/cuda/export_chapter.hh"
