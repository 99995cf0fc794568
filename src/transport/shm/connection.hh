// The connection of shm:. It begins as the Unix socket that it stands on; each direction goes over into its
// ring at a byte of its own, so nothing is lost or doubled, and either end may be any process that has the
// socket (a daemon that greets and hands over to a worker):
//   1. The server, before the first byte that it sends through this object, makes the memory and sends it
//   over
//      the socket with a marked byte. Behind that byte its stream is in its ring.
//   2. The client takes the memory in when its reader comes to that byte. Before the next byte that it sends,
//      it sends a marked byte with the same descriptor: behind it, its stream is in its ring.
//   3. From then on the socket carries descriptors (a byte each; the ring says at which position of the
//      stream), bells that wake a reader who sleeps, and the end of either process.
// Which end is the server says the socket: an accepted one has the listener's name. Where the server cannot
// make memory, or is no peer of this kind, all stays with the socket.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <span>
#include <string>

#include "transport/local_socket.hh"
#include "transport/shm/memory.hh"
#include "transport/shm/ring.hh"

namespace outboard::transport::shm {

class ring_connection final : public local_connection {
 public:
  static result<std::unique_ptr<connection>> make(unique_fd socket, std::string name);
  ~ring_connection() override;

  const capabilities& what() const override;
  io_result send(std::span<const iovec> parts, deadline until) override;
  void expect_send() override;
  io wait_readable(deadline until) override;
  void shutdown() override;
  status send_descriptor(int fd) override;
  result<unique_fd> receive_descriptor(deadline until) override;
  result<unique_fd> detach() override;
  result<shared_stream> share() const override;
  status go_on(shared_stream& from) override;

 protected:
  io_result attempt(std::span<std::byte> into) override;
  io await_bytes(deadline until) override;

 private:
  struct rings {
    memory shared;
    ring_writer out;
    ring_reader in;
  };

  ring_connection(unique_fd socket, unique_fd event, std::string name, bool server)
      : local_connection(std::move(socket), std::move(event), std::move(name)), server_(server) {}

  // Of the sender.
  io begin_sending(deadline until);
  void offer_rings(deadline until);
  io send_by_ring(std::span<const iovec> parts, deadline until, std::size_t& sent);
  bool peer_is_there();
  io wait_for_room(deadline until, bool for_mark);
  void publish();

  // Of the receiver.
  bool is_first_of_ring(const carrier& c) const;
  bool begin_receiving(carrier c);
  io_result attempt_socket(std::span<std::byte> into);
  io_result attempt_ring(std::span<std::byte> into);
  io look();
  void wake_writer();
  void read_socket();
  bool next_descriptor(unique_fd& fd);

  void publish_rings(memory shared);
  void leave();

  const bool server_;
  std::unique_ptr<rings> own_rings_;
  std::atomic<rings*> rings_{nullptr};  // set once, by the server's sender or the client's receiver

  // Of the sender.
  ring_writer* out_ = nullptr;  // null: by socket
  bool offered_ = false;
  unsigned sends_ = 0;
  unique_fd memory_;  // of a client: set before rings_, closed when its sending goes over; a server keeps it

  // Of the receiver.
  ring_reader* in_ = nullptr;  // null: by socket
  bool ended_ = false;         // the socket has: what is in the ring is all that comes
  bool flooded_ = false;
  std::deque<unique_fd> descriptors_;  // came with bells, before their byte in the ring
};

}  // namespace outboard::transport::shm
