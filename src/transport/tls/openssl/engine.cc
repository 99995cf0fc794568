#include "transport/tls/openssl/engine.hh"

#include <openssl/err.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <cstring>

#include "transport/tls/openssl/texts.hh"

namespace outboard::transport::tls {
namespace {

/// AES-GCM may protect 2^24.5 records with one key (RFC 8446, 5.5).
constexpr std::uint64_t records_of_a_key = 1u << 23;

/// Answers that reading has made and nobody has sent yet. A peer of ours asks for none; one that asks for new
/// keys (RFC 8446, 4.6.3) without ever reading would fill our memory.
constexpr std::size_t most_unsent_answers = 16u << 10;

constexpr char inner_label[] = "EXPORTER-outboard-inner";
constexpr char binding_label[] = "EXPORTER-Channel-Binding";  // RFC 9266

int read_bytes(BIO* bio, char* into, int most) {
  auto* own = static_cast<buffers*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  const std::size_t n = std::min<std::size_t>(static_cast<std::size_t>(most), own->input.size());
  if (n == 0) return BIO_set_retry_read(bio), -1;
  std::memcpy(into, own->input.data(), n);
  own->input = own->input.subspan(n);
  return static_cast<int>(n);
}

int write_bytes(BIO* bio, const char* from, int size) {
  auto* own = static_cast<buffers*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  own->append(from, static_cast<std::size_t>(size));
  return size;
}

long control(BIO*, int what, long, void*) { return what == BIO_CTRL_FLUSH ? 1 : 0; }

BIO_METHOD* method() {
  static BIO_METHOD* const made = [] {
    BIO_METHOD* m = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "outboard");
    BIO_meth_set_read(m, read_bytes);
    BIO_meth_set_write(m, write_bytes);
    BIO_meth_set_ctrl(m, control);
    return m;
  }();
  return made;
}

secret exported(SSL* ssl, const char* label) {
  secret out{};
  CHECK(SSL_export_keying_material(ssl, reinterpret_cast<unsigned char*>(out.data()), out.size(), label,
                                   std::strlen(label), nullptr, 0, 0) == 1);
  return out;
}

}  // namespace

void buffers::append(const char* from, std::size_t size) {
  if (out.used + size > out.room.size()) out.room.resize(std::max(2 * out.room.size(), out.used + size));
  std::memcpy(out.room.data() + out.used, from, size);
  out.used += size;
}

openssl_engine::openssl_engine(SSL* ssl, bool server, std::shared_ptr<void> keeps)
    : keeps_(std::move(keeps)), ssl_(ssl) {
  BIO* bio = BIO_new(method());
  BIO_set_data(bio, &bytes_);
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl, bio, bio);
  if (server) {
    SSL_set_accept_state(ssl);
  } else {
    SSL_set_connect_state(ssl);
  }
}

// A session whose connection was not closed by TLS's own message would not be resumed again.
openssl_engine::~openssl_engine() { SSL_set_shutdown(ssl_.get(), SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN); }

void openssl_engine::offer(std::span<const std::byte> bytes) { bytes_.input = bytes; }

step openssl_engine::judge(int code) {
  switch (SSL_get_error(ssl_.get(), code)) {
    case SSL_ERROR_WANT_READ:
      return step::wants_bytes;
    default:
      note_problem();
      return step::failed;
  }
}

void openssl_engine::note_problem() {
  if (problem_.empty()) problem_ = describe_failure();
  ERR_clear_error();
}

step openssl_engine::shake() {
  ERR_clear_error();
  if (early_) {
    // The handshake goes on by reading the rest of early data, of which there is none.
    const step before = shake_until_answer();
    if (before != step::done) return before;
  }
  const int done = SSL_do_handshake(ssl_.get());
  return done == 1 ? step::done : judge(done);
}

step openssl_engine::shake_until_answer() {
  ERR_clear_error();
  early_ = true;
  char nothing = 0;
  std::size_t got = 0;
  switch (SSL_read_early_data(ssl_.get(), &nothing, 1, &got)) {
    case SSL_READ_EARLY_DATA_FINISH:
      early_ = false;
      return step::done;
    case SSL_READ_EARLY_DATA_SUCCESS:
      problem_ = "it sent early data, which nobody had offered";
      return step::failed;
    default:
      return judge(-1);
  }
}

bool openssl_engine::write_with_answer(std::span<const std::byte> plain) {
  ERR_clear_error();
  std::size_t written = 0;
  if (SSL_write_early_data(ssl_.get(), plain.data(), plain.size(), &written) == 1 && written == plain.size())
    return true;
  note_problem();
  return false;
}

std::ptrdiff_t openssl_engine::read(std::span<std::byte> into) {
  ERR_clear_error();
  std::size_t got = 0;
  const bool read = SSL_read_ex(ssl_.get(), into.data(), into.size(), &got) == 1;
  if (bytes_.out.used > most_unsent_answers) {
    problem_ = "it asks for new keys again and again, and reads no answer";
    return -2;
  }
  if (read) return static_cast<std::ptrdiff_t>(got);
  switch (SSL_get_error(ssl_.get(), 0)) {
    case SSL_ERROR_WANT_READ:
      return 0;
    case SSL_ERROR_ZERO_RETURN:
      return -1;
    default:
      note_problem();
      return -2;
  }
}

bool openssl_engine::write(std::span<const std::byte> plain) {
  ERR_clear_error();
  if (++records_ % records_of_a_key == 0) SSL_key_update(ssl_.get(), SSL_KEY_UPDATE_NOT_REQUESTED);
  std::size_t written = 0;
  if (SSL_write_ex(ssl_.get(), plain.data(), plain.size(), &written) == 1 && written == plain.size())
    return true;
  note_problem();
  return false;
}

void openssl_engine::close() {
  ERR_clear_error();
  SSL_shutdown(ssl_.get());
}

void openssl_engine::take_output(output& into) {
  std::swap(into, bytes_.out);
  bytes_.out.used = 0;
}

secret openssl_engine::binding() const { return exported(ssl_.get(), binding_label); }
secret openssl_engine::inner_key() const { return exported(ssl_.get(), inner_label); }

certificate_facts openssl_engine::certificate() const {
  certificate_facts facts;
  const owned<X509, X509_free> theirs(SSL_get1_peer_certificate(ssl_.get()));
  if (!theirs) return facts;
  facts.present = true;
  const long verdict = SSL_get_verify_result(ssl_.get());
  facts.trusted = verdict == X509_V_OK;
  if (!facts.trusted) facts.problem = describe_verdict(verdict, theirs.get());
  facts.fingerprint = fingerprint_of(theirs.get());
  facts.name = "certificate " + name_of(theirs.get());
  for (const std::string& one : alternatives_of(theirs.get())) facts.also.push_back("certificate " + one);
  return facts;
}

bool openssl_engine::resumed() const { return SSL_session_reused(ssl_.get()) == 1; }

std::string openssl_engine::cipher() const { return SSL_get_cipher_name(ssl_.get()); }

}  // namespace outboard::transport::tls
