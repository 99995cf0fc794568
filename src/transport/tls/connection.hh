// An encrypted connection over another one, usually tcp:. Its first part, the outer connection, ends in the
// server's gate, which has the certificate's key and sees strangers. When the client has said its hello, it
// begins an inner connection in the same stream, with a key that only the two ends of the outer one can make;
// that ends in the worker, which so gets the stream without any key of the server's. Each inner connection
// has new keys of its own (X25519). The records of the two cannot be confused: the server's first inner
// record is the only one after the greeting that is not encrypted. Owner and thread rules as in transport.hh.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "transport/tls/engine.hh"
#include "transport/transport.hh"

namespace outboard::transport::tls {

class part_reader;

class tls_connection final : public connection {
 public:
  /// Client: the outer connection, whose handshake is done when this returns.
  static result<std::unique_ptr<tls_connection>> open_outer(std::unique_ptr<connection> raw,
                                                            std::unique_ptr<engine> outer, deadline until);
  /// One end of an inner connection; its handshake is done by the first send or receive.
  enum class side : std::uint8_t { client, server };
  tls_connection(std::unique_ptr<connection> raw, std::unique_ptr<engine> inner, side own);
  ~tls_connection() override;

  /// Client: what is sent from now on goes to the inner end; what still comes from the outer one is received
  /// until the inner one answers. Does not wait for that. `inner` was made with the outer engine's
  /// inner_key().
  status begin_inner(std::unique_ptr<engine> inner, deadline until);

  /// Completes the inner connection's handshake, which the first send or receive otherwise does.
  io shake(deadline until);

  const engine* outer() const { return outer_.get(); }
  /// What went wrong, for people; empty: nothing, or it was not TLS.
  std::string problem() const;

  const capabilities& what() const override { return what_; }
  io_result send(std::span<const iovec> parts, deadline until) override;
  void expect_send() override { raw_->expect_send(); }
  io_result receive(std::span<std::byte> into, deadline until) override;
  io wait_readable(deadline until) override;
  void interrupt() override { raw_->interrupt(); }
  bool peer_gone() override { return raw_->peer_gone(); }
  void shutdown() override;
  void set_spin(std::chrono::microseconds budget) override { raw_->set_spin(budget); }
  result<peer_identity> peer() const override { return raw_->peer(); }
  std::string describe() const override { return raw_->describe(); }

 private:
  explicit tls_connection(std::unique_ptr<connection> raw);
  io shake_outer(deadline until);
  io pump(deadline until);
  io read_record(deadline until);
  io make_answer(deadline until);
  io begin_early(deadline until);
  io take_record(deadline until);
  io read_from(engine& by);
  io send_said(deadline until);
  io send_output(engine& by, deadline until);
  std::size_t take_kept(std::span<std::byte> into);
  bool has_kept();
  io decrypt(std::span<std::byte> into, std::size_t& got);
  io fill(deadline until);
  std::size_t encrypt(part_reader& from, bool early);
  io_result flush(deadline until);
  std::size_t count_whole_records();
  void say_goodbye();

  std::unique_ptr<connection> raw_;
  capabilities what_;
  mutable std::mutex engines_;  ///< OpenSSL's objects have one user at a time
  std::unique_ptr<engine> outer_, inner_;
  std::atomic<bool> ready_{false};  ///< the inner connection's handshake is done
  std::atomic<bool> shut_{false};
  bool answering_ = false;  ///< the inner end has answered
  bool is_server_ = false;
  bool owes_answer_ = false;  ///< server: the client's first message is not answered yet
  bool ended_ = false;        ///< the outer end has closed
  bool shaken_ = false;       ///< as `ready_`, but the last words of the handshake may not be sent yet
  std::mutex shaking_;        ///< held to take the next record of a handshake, and for all that follows

  // Handshakes'. A record that was sent in part is continued by the next who holds `shaking_`.
  std::vector<std::byte> record_;
  std::size_t in_record_ = 0;
  output said_;
  std::size_t said_sent_ = 0;  ///< of said_

  // The receiver's; before `ready_`, of who holds `engines_`.
  std::vector<std::byte> kept_;
  std::size_t taken_ = 0;  ///< of kept_
  std::vector<std::byte> input_;
  bool was_full_ = false;

  // The sender's.
  std::mutex sending_;
  output out_;
  std::size_t sent_ = 0;       ///< of out_
  std::size_t encrypted_ = 0;  ///< bytes before encryption that lie in out_
  std::size_t promised_ = 0;   ///< those of them that are not reported as sent
  std::vector<std::byte> gathered_;
};

}  // namespace outboard::transport::tls
