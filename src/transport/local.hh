// What unix: and shm: share: sockets that have a file, and who may use them. The socket file has mode 0600; a
// dead server's file is replaced, a living server's is not. The two differ in the connection that they make.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/fd.hh"
#include "transport/transport.hh"

namespace outboard::transport {

using make_connection = result<std::unique_ptr<connection>> (*)(unique_fd socket, std::string name);

std::unique_ptr<transport> make_local(std::string_view scheme, make_connection make);

}  // namespace outboard::transport
