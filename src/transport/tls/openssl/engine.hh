// OpenSSL's connection behind the interface of engine.hh, over buffers instead of a socket.
#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <string>

#include "transport/tls/engine.hh"

namespace outboard::transport::tls {

template <class T, void (*Free)(T*)>
struct freed_by {
  void operator()(T* t) const { Free(t); }
};
template <class T, void (*Free)(T*)>
using owned = std::unique_ptr<T, freed_by<T, Free>>;

struct buffers {
  std::span<const std::byte> input;  ///< the caller's
  output out;
  void append(const char* from, std::size_t size);
};

class openssl_engine final : public engine {
 public:
  /// Owns `ssl`; `keeps` lives as long.
  openssl_engine(SSL* ssl, bool server, std::shared_ptr<void> keeps);
  ~openssl_engine() override;

  void offer(std::span<const std::byte> bytes) override;
  step shake() override;
  step shake_until_answer() override;
  bool write_with_answer(std::span<const std::byte> plain) override;
  std::ptrdiff_t read(std::span<std::byte> into) override;
  bool write(std::span<const std::byte> plain) override;
  void close() override;
  void take_output(output& into) override;
  secret binding() const override;
  secret inner_key() const override;
  certificate_facts certificate() const override;
  bool resumed() const override;
  std::string cipher() const override;
  std::string problem() const override { return problem_; }

 private:
  step judge(int code);
  void note_problem();

  std::shared_ptr<void> keeps_;
  buffers bytes_;
  owned<SSL, SSL_free> ssl_;
  std::uint64_t records_ = 0;
  bool early_ = false;  ///< the server's answer is being made
  std::string problem_;
};

}  // namespace outboard::transport::tls
