#include "transport/shm/shm.hh"

#include "transport/local.hh"
#include "transport/shm/connection.hh"

namespace outboard::transport {

std::unique_ptr<transport> make_shm(const make_options&) {
  return make_local("shm", &shm::ring_connection::make);
}

}  // namespace outboard::transport
