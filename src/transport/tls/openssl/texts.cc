#include "transport/tls/openssl/texts.hh"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/sslerr.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>
#include <utility>

#include "base/utc_text.hh"
#include "transport/tls/openssl/engine.hh"

namespace outboard::transport::tls {
namespace {

std::string drained(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return size > 0 ? std::string(data, static_cast<std::size_t>(size)) : std::string();
}

std::string first_alternative(X509* certificate) {
  auto* names =
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr));
  if (!names) return {};
  std::string text;
  if (sk_GENERAL_NAME_num(names) > 0) {
    const owned<BIO, BIO_free_all> out(BIO_new(BIO_s_mem()));
    GENERAL_NAME_print(out.get(), sk_GENERAL_NAME_value(names, 0));
    text = drained(out.get());
  }
  GENERAL_NAMES_free(names);
  return text;
}

/// "DNS:alice.lab" of one name; empty: it is of another kind, or cannot be shown as it is.
std::string as_person(GENERAL_NAME* name) {
  int kind = 0;
  const auto* value = static_cast<const ASN1_STRING*>(GENERAL_NAME_get0_value(name, &kind));
  const char* word = kind == GEN_DNS ? "DNS:" : kind == GEN_EMAIL ? "email:" : kind == GEN_URI ? "URI:" : "";
  if (*word == '\0' || !value) return {};
  const auto* bytes = reinterpret_cast<const char*>(ASN1_STRING_get0_data(value));
  const std::string text(bytes, static_cast<std::size_t>(ASN1_STRING_length(value)));
  const bool shown = std::ranges::all_of(text, [](char c) { return c > ' ' && c < 0x7f; });
  return shown && !text.empty() ? word + text : "";
}

/// What is wrong with the certificate that this thread has looked at last. OpenSSL no longer has it when the
/// handshake has failed.
thread_local std::string verdict;

}  // namespace

int note_verdict(int good, X509_STORE_CTX* about) {
  if (good != 1) verdict = describe_verdict(X509_STORE_CTX_get_error(about), X509_STORE_CTX_get0_cert(about));
  return good;
}

std::string fingerprint_of(X509* certificate) {
  unsigned char* raw = nullptr;
  const int size = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(certificate), &raw);
  if (size <= 0) return {};
  std::array<unsigned char, 32> digest{};
  const bool hashed =
      EVP_Digest(raw, static_cast<std::size_t>(size), digest.data(), nullptr, EVP_sha256(), nullptr) == 1;
  OPENSSL_free(raw);
  if (!hashed) return {};
  std::array<char, 48> text{};
  EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()), digest.data(), digest.size());
  std::string made = text.data();
  while (made.ends_with('=')) made.pop_back();
  return "SHA256:" + made;
}

std::string name_of(X509* certificate) {
  const owned<BIO, BIO_free_all> out(BIO_new(BIO_s_mem()));
  X509_NAME_print_ex(out.get(), X509_get_subject_name(certificate), 0,
                     XN_FLAG_RFC2253 & ~ASN1_STRFLGS_ESC_MSB);
  const std::string subject = drained(out.get());
  return subject.empty() ? first_alternative(certificate) : subject;
}

std::vector<std::string> alternatives_of(X509* certificate) {
  std::vector<std::string> found;
  auto* names =
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr));
  for (int i = 0; names && i < sk_GENERAL_NAME_num(names); ++i) {
    if (std::string one = as_person(sk_GENERAL_NAME_value(names, i)); !one.empty())
      found.push_back(std::move(one));
  }
  GENERAL_NAMES_free(names);
  return found;
}

std::string time_text(const ASN1_TIME* time) {
  std::tm at{};
  if (ASN1_TIME_to_tm(time, &at) != 1) return "an unknown time";
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M UTC", &at);
  return text.data();
}

std::string describe_verdict(long code, X509* certificate) {
  const std::string now = utc_text(std::time(nullptr));
  switch (code) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return "its certificate expired on " + time_text(X509_get0_notAfter(certificate)) + " (now is " + now +
             "); renew it, or set this machine's clock";
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return "its certificate is valid from " + time_text(X509_get0_notBefore(certificate)) + " on (now is " +
             now + "); set the clocks of both machines";
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      return "its certificate is for another name (" + name_of(certificate) + "; " +
             first_alternative(certificate) + "); use the name that it has";
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
      return "its certificate (" + name_of(certificate) +
             ") is not signed by the authority that is configured; name the one that signed it";
    default:
      return std::string("its certificate is not accepted: ") + X509_verify_cert_error_string(code);
  }
}

std::string last_reason() {
  const char* text = ERR_reason_error_string(ERR_peek_last_error());
  return text ? text : "no reason is known";
}

std::string describe_failure() {
  const unsigned long code = ERR_peek_last_error();
  switch (ERR_GET_REASON(code)) {
    case SSL_R_WRONG_VERSION_NUMBER:
    case SSL_R_HTTP_REQUEST:
    case SSL_R_HTTPS_PROXY_REQUEST:
    case SSL_R_RECORD_LENGTH_MISMATCH:
    case SSL_R_UNEXPECTED_MESSAGE:
      return "it does not speak TLS";
    case SSL_R_UNSUPPORTED_PROTOCOL:
    case SSL_R_TLSV1_ALERT_PROTOCOL_VERSION:
      return "it speaks only a version of TLS below 1.3";
    case SSL_R_CERTIFICATE_VERIFY_FAILED:
      if (!verdict.empty()) return std::exchange(verdict, {});
      break;
    case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
      return "it showed no certificate";
    case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
      return "it asks for a client certificate; name one in [certificates] client and client_key";
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
      return "it does not know the authority that signed our certificate; show one that its client_authority "
             "has signed ([certificates] client)";
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
      return "it says that our certificate has expired; renew it, or look at both machines' clocks";
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
    case SSL_R_TLSV1_ALERT_ACCESS_DENIED:
      return "it does not accept our certificate; ask its administrator for another one";
    case SSL_R_DECRYPTION_FAILED_OR_BAD_RECORD_MAC:
    case SSL_R_BINDER_DOES_NOT_VERIFY:
    case SSL_R_BAD_EXTENSION:
      return "what came was changed on its way";
    default:
      break;
  }
  return "TLS failed: " + last_reason();
}

}  // namespace outboard::transport::tls
