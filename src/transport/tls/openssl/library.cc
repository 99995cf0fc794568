// The shared object's one exported function, and the contexts behind it.
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <mutex>
#include <string_view>
#include <vector>

#include "transport/tls/openssl/engine.hh"
#include "transport/tls/openssl/texts.hh"

namespace outboard::transport::tls {
namespace {

/// Both go with SHA-256, which a key for the inner connection needs.
constexpr const char* aes = "TLS_AES_128_GCM_SHA256";
constexpr const char* chacha = "TLS_CHACHA20_POLY1305_SHA256";
constexpr unsigned char aes_number[]{0x13, 0x01};

constexpr long seconds_of_ticket = 4 * 3600;

/// How long a quarter of a record takes; more than any real value if it cannot be encrypted.
double time_of(const char* name) {
  const owned<EVP_CIPHER_CTX, EVP_CIPHER_CTX_free> at(EVP_CIPHER_CTX_new());
  EVP_CIPHER* const cipher = EVP_CIPHER_fetch(nullptr, name, nullptr);
  const std::array<unsigned char, 32> key{};
  std::vector<unsigned char> in(most_in_record / 4), out(most_in_record);
  double best = 1e9;
  for (int round = 0; cipher && round < 3; ++round) {
    const auto began = std::chrono::steady_clock::now();
    int size = 0;
    bool good = EVP_EncryptInit_ex2(at.get(), cipher, key.data(), key.data(), nullptr) == 1;
    for (int i = 0; i < 2; ++i)
      good =
          good && EVP_EncryptUpdate(at.get(), out.data(), &size, in.data(), static_cast<int>(in.size())) == 1;
    if (!good) break;
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
  }
  EVP_CIPHER_free(cipher);
  return best;
}

/// The client's order decides: what this machine encrypts faster comes first. Where processors have
/// instructions for AES, that is AES-128-GCM, by a factor of 4 to 6.
const std::string& suites() {
  static const std::string list = time_of("AES-128-GCM") <= time_of("ChaCha20-Poly1305")
                                      ? std::string(aes) + ":" + chacha
                                      : std::string(chacha) + ":" + aes;
  return list;
}

int no_password(char*, int, int, void*) { return 0; }

using bio = owned<BIO, BIO_free_all>;
bio source(const std::string& text) {
  return bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

std::vector<owned<X509, X509_free>> certificates_in(const std::string& pem) {
  std::vector<owned<X509, X509_free>> list;
  const bio from = source(pem);
  while (X509* one = PEM_read_bio_X509(from.get(), nullptr, no_password, nullptr)) list.emplace_back(one);
  ERR_clear_error();
  return list;
}

/// What is good for every connection of ours.
owned<SSL_CTX, SSL_CTX_free> plain_context(bool server) {
  owned<SSL_CTX, SSL_CTX_free> c(SSL_CTX_new(server ? TLS_server_method() : TLS_client_method()));
  if (!c) return c;
  SSL_CTX_set_min_proto_version(c.get(), TLS1_3_VERSION);
  SSL_CTX_set_ciphersuites(c.get(), suites().c_str());
  SSL_CTX_set1_groups_list(c.get(), "X25519:P-256:P-384");
  SSL_CTX_set_mode(c.get(), SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_AUTO_RETRY);
  // A change of cipher is announced for old middleboxes only, at the price of a record each way.
  SSL_CTX_clear_options(c.get(), SSL_OP_ENABLE_MIDDLEBOX_COMPAT);
  SSL_CTX_set_options(c.get(), SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_max_early_data(c.get(), 0);
  return c;
}

status take_certificate(SSL_CTX* c, const std::string& pem, const std::string& key_pem, const char* whose) {
  const auto chain = certificates_in(pem);
  const std::string of = std::string(whose) + " certificate";
  if (chain.empty())
    return failure("the file of the " + of + " holds no certificate (or half of one); it must be PEM");
  if (SSL_CTX_use_certificate(c, chain.front().get()) != 1)
    return failure("the " + of + " is unfit: " + last_reason());
  for (std::size_t i = 1; i < chain.size(); ++i)
    if (SSL_CTX_add1_chain_cert(c, chain[i].get()) != 1)
      return failure("the chain of the " + of + ": " + last_reason());
  const owned<EVP_PKEY, EVP_PKEY_free> key(
      PEM_read_bio_PrivateKey(source(key_pem).get(), nullptr, no_password, nullptr));
  if (!key)
    return failure("the file of the key of the " + of +
                   " holds no private key without a password; it must be PEM");
  if (SSL_CTX_use_PrivateKey(c, key.get()) != 1 || SSL_CTX_check_private_key(c) != 1)
    return failure("the key does not belong to the " + of + "; give the two files that were made together");
  return {};
}

status take_authorities(SSL_CTX* c, const std::string& pem, bool name_them) {
  const auto list = certificates_in(pem);
  if (list.empty()) return failure("the file of the authority holds no certificate; it must be PEM");
  X509_STORE* store = SSL_CTX_get_cert_store(c);
  for (const auto& one : list) {
    X509_STORE_add_cert(store, one.get());
    if (name_them) SSL_CTX_add_client_CA(c, one.get());
  }
  return {};
}

class openssl_context final : public context, public std::enable_shared_from_this<openssl_context> {
 public:
  openssl_context(owned<SSL_CTX, SSL_CTX_free> c, bool server, bool checks)
      : ssl_(std::move(c)), server_(server), checks_(checks) {
    SSL_CTX_set_app_data(ssl_.get(), this);
  }
  ~openssl_context() override { keep(nullptr); }

  std::unique_ptr<engine> start(const std::string& host) override {
    SSL* ssl = SSL_new(ssl_.get());
    if (!ssl) return nullptr;
    if (!server_ && checks_ && !name_host(ssl, host)) return SSL_free(ssl), nullptr;
    if (!server_) {
      const std::lock_guard lock(tickets_);
      host_ = host;
      if (ticket_ && ticket_host_ == host) {
        SSL_set_session(ssl, ticket_);
        // A ticket is for one use, so that nobody on the way sees that two connections belong together.
        SSL_SESSION_free(std::exchange(ticket_, nullptr));
      }
    }
    auto made = std::make_unique<openssl_engine>(ssl, server_, shared_from_this());
    SSL_set_app_data(ssl, nullptr);
    return made;
  }

  std::string fingerprint() const override {
    X509* own = SSL_CTX_get0_certificate(ssl_.get());
    return own ? fingerprint_of(own) : "";
  }

  std::string warning() const override {
    X509* own = SSL_CTX_get0_certificate(ssl_.get());
    if (!own) return {};
    const ASN1_TIME* end = X509_get0_notAfter(own);
    std::time_t soon = std::time(nullptr) + 14 * 86400;
    if (X509_cmp_current_time(X509_get0_notBefore(own)) > 0)
      return "the server's certificate is valid from " + time_text(X509_get0_notBefore(own)) +
             " on; set this machine's clock";
    if (X509_cmp_current_time(end) < 0)
      return "the server's certificate expired on " + time_text(end) + "; renew it";
    if (X509_cmp_time(end, &soon) < 0) return "the server's certificate expires on " + time_text(end);
    return {};
  }

  static int new_ticket(SSL* ssl, SSL_SESSION* session) {
    auto* self = static_cast<openssl_context*>(SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl)));
    self->keep(session);
    return 1;
  }

 private:
  bool name_host(SSL* ssl, const std::string& host) {
    X509_VERIFY_PARAM* check = SSL_get0_param(ssl);
    if (X509_VERIFY_PARAM_set1_ip_asc(check, host.c_str()) == 1) return true;
    X509_VERIFY_PARAM_set_hostflags(check, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return SSL_set_tlsext_host_name(ssl, host.c_str()) == 1 && SSL_set1_host(ssl, host.c_str()) == 1;
  }

  void keep(SSL_SESSION* session) {
    const std::lock_guard lock(tickets_);
    if (ticket_) SSL_SESSION_free(ticket_);
    ticket_ = session;
    ticket_host_ = host_;
  }

  owned<SSL_CTX, SSL_CTX_free> ssl_;
  const bool server_, checks_;
  std::mutex tickets_;
  SSL_SESSION* ticket_ = nullptr;
  std::string host_, ticket_host_;  // a context is for one server
};

/// The key of an inner connection as a session of TLS 1.3 that both ends know.
SSL_SESSION* session_of(SSL* ssl) {
  const auto* key = static_cast<const secret*>(SSL_get_app_data(ssl));
  if (!key) return nullptr;
  SSL_SESSION* made = SSL_SESSION_new();
  const SSL_CIPHER* cipher = SSL_CIPHER_find(ssl, aes_number);
  if (made && cipher &&
      SSL_SESSION_set1_master_key(made, reinterpret_cast<const unsigned char*>(key->data()), key->size()) ==
          1 &&
      SSL_SESSION_set_cipher(made, cipher) == 1 &&
      SSL_SESSION_set_protocol_version(made, TLS1_3_VERSION) == 1)
    return made;
  SSL_SESSION_free(made);
  return nullptr;
}

constexpr unsigned char key_name[] = "outboard";

int offer_key(SSL* ssl, const EVP_MD*, const unsigned char** name, std::size_t* size, SSL_SESSION** session) {
  *session = session_of(ssl);
  *name = key_name;
  *size = sizeof key_name - 1;
  return *session ? 1 : 0;
}

int find_key(SSL* ssl, const unsigned char* name, std::size_t size, SSL_SESSION** session) {
  *session = nullptr;
  if (size != sizeof key_name - 1 || std::memcmp(name, key_name, size) != 0) return 0;
  *session = session_of(ssl);
  return *session ? 1 : 0;
}

/// For all inner connections of this process; they differ by their keys.
SSL_CTX* keyed_context(bool server) {
  const auto make = [](bool as_server) {
    SSL_CTX* const c = plain_context(as_server).release();
    if (!c) return c;
    // No tickets: there is nothing to resume.
    SSL_CTX_set_num_tickets(c, 0);
    SSL_CTX_set_session_cache_mode(c, SSL_SESS_CACHE_OFF);
    if (as_server) {
      SSL_CTX_set_psk_find_session_callback(c, find_key);
    } else {
      SSL_CTX_set_psk_use_session_callback(c, offer_key);
      // The key is only offered: an end that answers with a certificate in its place has not shown it.
      SSL_CTX_set_verify(c, SSL_VERIFY_PEER, [](int, X509_STORE_CTX*) { return 0; });
    }
    return c;
  };
  static SSL_CTX* const of_clients = make(false);
  static SSL_CTX* const of_servers = make(true);
  return server ? of_servers : of_clients;
}

/// The key lives as long as the connection that it is for.
struct held_key {
  secret key;
  ~held_key() { OPENSSL_cleanse(key.data(), key.size()); }
};

std::unique_ptr<engine> start_keyed(bool server, const secret& key) {
  SSL_CTX* const c = keyed_context(server);
  SSL* const ssl = c ? SSL_new(c) : nullptr;
  if (!ssl) return nullptr;
  auto held = std::make_shared<held_key>(held_key{key});
  SSL_set_app_data(ssl, &held->key);
  return std::make_unique<openssl_engine>(ssl, server, std::move(held));
}

bool add_extension(X509* to, int what, const std::string& text) {
  X509V3_CTX about;
  X509V3_set_ctx_nodb(&about);
  X509V3_set_ctx(&about, to, to, nullptr, nullptr, 0);
  const owned<X509_EXTENSION, X509_EXTENSION_free> made(
      X509V3_EXT_conf_nid(nullptr, &about, what, text.c_str()));
  return made && X509_add_ext(to, made.get(), -1) == 1;
}

std::string text_of(BIO* from) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(from, &data);
  return size > 0 ? std::string(data, static_cast<std::size_t>(size)) : "";
}

class openssl_library final : public library {
 public:
  openssl_library() {
    // The program may still have threads of ours when it exits.
    OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT | OPENSSL_INIT_NO_LOAD_CONFIG, nullptr);
  }

  result<std::shared_ptr<context>> make_client(const client_terms& terms) override {
    auto c = plain_context(false);
    if (!c) return failure("TLS cannot be prepared: " + last_reason());
    if (!terms.certificate.empty())
      OUTBOARD_TRY(take_certificate(c.get(), terms.certificate, terms.key, "client"));
    if (!terms.authorities.empty()) OUTBOARD_TRY(take_authorities(c.get(), terms.authorities, false));
    const bool checks = !terms.authorities.empty();
    SSL_CTX_set_verify(c.get(), checks ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, note_verdict);
    SSL_CTX_set_session_cache_mode(c.get(), SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL_STORE);
    SSL_CTX_sess_set_new_cb(c.get(), openssl_context::new_ticket);
    return std::shared_ptr<context>(std::make_shared<openssl_context>(std::move(c), false, checks));
  }

  result<std::shared_ptr<context>> make_server(const server_terms& terms) override {
    auto c = plain_context(true);
    if (!c) return failure("TLS cannot be prepared: " + last_reason());
    OUTBOARD_TRY(take_certificate(c.get(), terms.certificate, terms.key, "server"));
    if (!terms.authorities.empty()) {
      OUTBOARD_TRY(take_authorities(c.get(), terms.authorities, true));
      SSL_CTX_set_verify(c.get(),
                         SSL_VERIFY_PEER | (terms.certificate_required ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0),
                         note_verdict);
    }
    // A session of another context, with other authorities, is not resumed here.
    std::array<unsigned char, 16> name{};
    RAND_bytes(name.data(), name.size());
    SSL_CTX_set_session_id_context(c.get(), name.data(), name.size());
    SSL_CTX_set_session_cache_mode(c.get(), SSL_SESS_CACHE_OFF);  // tickets need no memory here
    SSL_CTX_set_timeout(c.get(), seconds_of_ticket);
    return std::shared_ptr<context>(std::make_shared<openssl_context>(std::move(c), true, false));
  }

  std::unique_ptr<engine> start_client(const secret& key) override { return start_keyed(false, key); }
  std::unique_ptr<engine> start_server(const secret& key) override { return start_keyed(true, key); }

  result<std::string> make_certificate(const std::string& host) override {
    const owned<EVP_PKEY, EVP_PKEY_free> key(EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", "P-256"));
    const owned<X509, X509_free> made(X509_new());
    if (!key || !made) return failure("no key can be made: " + last_reason());
    std::uint64_t serial = 0;
    RAND_bytes(reinterpret_cast<unsigned char*>(&serial), sizeof serial);
    X509_set_version(made.get(), X509_VERSION_3);
    ASN1_INTEGER_set_uint64(X509_get_serialNumber(made.get()), serial >> 1);
    // Clients pin the key. That ends when somebody ends it, not by a date.
    X509_gmtime_adj(X509_getm_notBefore(made.get()), -86400);
    ASN1_TIME_set_string_X509(X509_getm_notAfter(made.get()), "99991231235959Z");
    X509_NAME* name = X509_get_subject_name(made.get());
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8,
                               reinterpret_cast<const unsigned char*>(host.substr(0, 64).c_str()), -1, -1, 0);
    X509_set_issuer_name(made.get(), name);
    X509_set_pubkey(made.get(), key.get());
    const bool good = add_extension(made.get(), NID_basic_constraints, "critical,CA:FALSE") &&
                      add_extension(made.get(), NID_key_usage, "critical,digitalSignature") &&
                      add_extension(made.get(), NID_ext_key_usage, "serverAuth") &&
                      X509_sign(made.get(), key.get(), EVP_sha256()) != 0;
    const bio out(BIO_new(BIO_s_mem()));
    if (!good || PEM_write_bio_PrivateKey(out.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) != 1 ||
        PEM_write_bio_X509(out.get(), made.get()) != 1)
      return failure("no certificate can be made: " + last_reason());
    return text_of(out.get());
  }

  std::string version() const override {
    const std::string text = OpenSSL_version(OPENSSL_VERSION);
    return text.substr(0, text.find(' ', text.find(' ') + 1));
  }
};

}  // namespace
}  // namespace outboard::transport::tls

extern "C" __attribute__((visibility("default"))) outboard::transport::tls::library* outboard_tls_library(
    const char* interface) {
  using namespace outboard::transport::tls;
  if (std::string_view(interface) != library_interface) return nullptr;
  static openssl_library* const only = new openssl_library;  // never ends: threads may use it at the exit
  return only;
}
