// The loopback: transport as a shared object.
#include "transport/loopback/loopback.hh"
#include "transport/plugin/export.hh"

OUTBOARD_EXPORT_TRANSPORT("loopback", outboard::transport::make_loopback())
