// One connection at the gate: its TLS handshake, and then the bytes of its hello and of the daemon's answers,
// which pass through between the client's socket and a local one. It reads whole records and not a byte more,
// and stops before the first record that is not encrypted: that begins the inner connection, which is for a
// worker. Owned by the gate; its one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backend/daemon/event_loop.hh"
#include "backend/gate/gate_messages.hh"
#include "base/fd.hh"
#include "transport/tls/engine.hh"

namespace outboard::backend {

class gate_visitor {
 public:
  using id = std::uint64_t;

  /// What it asks of the gate. Each may destroy it, except may_answer.
  struct host {
    std::function<void(id)> wants_to_answer;  ///< to call answer() soon: that costs processor time
    /// Passes the client to the daemon. With `local`, its end of the local socket; else the client speaks
    /// without TLS, and this is the end of it here. False: the daemon does not take it.
    std::function<bool(gate_visitor&, unique_fd local)> pass_on;
    std::function<void(id)> shaken;  ///< the handshake is done
    /// `why` empty: nothing to say about it.
    std::function<void(id, const std::string& why)> gone;
  };

  gate_visitor(event_loop& loop, host& gate, id number, unique_fd client, std::string from,
               plain_clients plain, std::unique_ptr<transport::tls::engine> engine);
  ~gate_visitor();
  gate_visitor(const gate_visitor&) = delete;

  status start();
  /// Makes the server's answer to the client's first message.
  void answer();

  int client() const { return client_.get(); }
  const std::string& from() const { return from_; }
  std::string source;

 private:
  enum class state : std::uint8_t { silent, asking, waiting, answering, shaking, talking, parting };
  enum class taken : std::uint8_t { whole, not_yet, ended };

  bool may_be_plain() const;
  std::chrono::milliseconds patience() const;
  void on_client(std::uint32_t events);
  void on_local(std::uint32_t events);
  void look_at_first_byte();
  void nothing_came();
  taken take_record();
  bool has_record(const std::string& why_not);
  void go_on();
  void shake();
  void handshake_done();
  void read_client();
  bool forward(std::span<const std::byte> plain);
  void read_local();
  void follow_answer(std::span<const std::byte> plain);
  void greet();
  bool flush();
  void local_ended();
  void part(const std::string& why);
  void read_rest();
  void watch_local();
  void leave(const std::string& why) { host_.gone(id_, why); }

  event_loop& loop_;
  host& host_;
  const id id_;
  unique_fd client_, local_;
  std::string from_;
  plain_clients plain_;
  std::unique_ptr<transport::tls::engine> engine_;
  state state_ = state::silent;
  event_loop::id client_watch_ = 0, local_watch_ = 0, timer_ = 0;
  std::uint32_t client_events_ = 0, local_events_ = 0;
  std::vector<std::byte> record_;
  std::size_t in_record_ = 0;
  transport::tls::output out_;
  std::size_t sent_ = 0;
  std::vector<std::byte> answered_;  ///< the first bytes of the daemon's answer behind the greeting
  bool greeted_ = false, local_ended_ = false, inner_begins_ = false;
  std::size_t ignored_ = 0;
  std::string why_;  ///< it is parting
};

}  // namespace outboard::backend
