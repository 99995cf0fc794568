// What users read about certificates and failures: one line each, with what to do. Pure functions.
#pragma once

#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <string>
#include <vector>

namespace outboard::transport::tls {

/// Names the public key, so that a certificate may be renewed: "SHA256:" and base64 without padding.
std::string fingerprint_of(X509* certificate);
/// "CN=alice,O=lab", or the first alternative name ("DNS:gpubox", "URI:spiffe://…") where the subject is
/// empty.
std::string name_of(X509* certificate);
/// Its alternative names that can name somebody: "DNS:alice.lab", "email:alice@lab",
/// "URI:spiffe://lab/alice". Those with bytes that a text would not show are left out, so that none looks
/// like another one.
std::vector<std::string> alternatives_of(X509* certificate);
/// Why a certificate is not trusted.
std::string describe_verdict(long code, X509* certificate);
/// For SSL_CTX_set_verify: keeps why a certificate was not accepted, for describe_failure() in the same
/// thread.
int note_verdict(int good, X509_STORE_CTX* about);
/// Why a connection failed, from OpenSSL's queue of errors.
std::string describe_failure();
/// "2026-11-25 14:00 UTC".
std::string time_text(const ASN1_TIME* time);
/// OpenSSL's own words for what it refused last.
std::string last_reason();

}  // namespace outboard::transport::tls
