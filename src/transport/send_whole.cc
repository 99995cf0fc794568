#include "transport/send_whole.hh"

namespace outboard::transport {

status send_whole(connection& to, std::span<const std::byte> bytes, deadline until) {
  // iovec has no const form; send() only reads
  const iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
  const io_result sent = to.send({&part, 1}, until);
  return sent.status == io::done ? status{} : gone(sent.status);
}

}  // namespace outboard::transport
