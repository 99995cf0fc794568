#include "transport/unix/unix.hh"

#include "transport/local.hh"
#include "transport/local_socket.hh"

namespace outboard::transport {

std::unique_ptr<transport> make_unix(const make_options&) {
  return make_local("unix", &local_connection::make);
}

}  // namespace outboard::transport
