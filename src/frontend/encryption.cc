#include "frontend/encryption.hh"

#include <algorithm>

#include "base/log.hh"
#include "base/schemes.hh"
#include "transport/tls/known_servers.hh"
#include "transport/tls/peer_place.hh"
#include "transport/tls/pem_file.hh"
#include "transport/url.hh"

namespace outboard::frontend {
namespace {

using transport::deadline;
using transport::io;

/// A server of this machine without TLS greets at once, unless the machine is very busy; one with TLS waits
/// for us, for 3 s.
constexpr std::chrono::milliseconds patience_with_plain{2500};
/// The same of one that had TLS when it was last here, which is in the file of known servers.
constexpr std::chrono::milliseconds patience_with_former_tls{300};
constexpr std::chrono::seconds handshake_patience{10};

status read_into(std::string& into, const std::string& path) {
  if (path.empty()) return {};
  auto text = transport::tls::read_pem(path);
  if (!text.ok()) return std::move(text).error();
  into = std::move(*text);
  return {};
}

/// "gpubox:26882" of "tcp:gpubox:26882".
std::string server_of(std::string_view url) { return std::string(address_of(url)); }

std::string host_of(std::string_view url) {
  const auto where = transport::parse_host_port(address_of(url));
  return where.ok() ? where->host : std::string(address_of(url));
}

}  // namespace

std::optional<std::string> encryption::believed(const std::string& server) {
  const std::lock_guard lock(mutex_);
  const auto at = believed_.find(server);
  return at == believed_.end() ? std::nullopt : std::optional(at->second);
}

void encryption::prepare(std::string_view url) const {
  if (mode_ == tls_choice::required && traits_of(url).leaves_host) (void)transport::tls::load().ok();
}

/// Between programs of one machine nobody is on the way; whether its server speaks TLS shows by who begins.
bool encryption::is_wanted(transport::connection& raw, std::string_view url, deadline until) {
  if (!traits_of(url).leaves_host || mode_ == tls_choice::off) return false;
  if (believed(server_of(url))) return true;
  if (mode_ == tls_choice::required || !transport::tls::is_on_this_host(raw.describe())) return true;
  const auto patience = has_spoken_tls(server_of(url)) ? patience_with_former_tls : patience_with_plain;
  return raw.wait_readable(std::min(until, transport::clock::now() + patience)) == io::timed_out;
}

bool encryption::has_spoken_tls(const std::string& server) const {
  const auto text = transport::tls::read_known(known_file());
  return text.ok() && !transport::tls::find_known(*text, server).empty();
}

result<std::shared_ptr<transport::tls::context>> encryption::context_for(transport::tls::library& by,
                                                                         const std::string& server) {
  const std::lock_guard lock(mutex_);
  auto& kept = contexts_[server];
  if (kept) return kept;
  transport::tls::client_terms terms;
  OUTBOARD_TRY(read_into(terms.authorities, files_.server_authority));
  OUTBOARD_TRY(read_into(terms.certificate, files_.client));
  terms.key = terms.certificate;
  OUTBOARD_TRY(read_into(terms.key, files_.client_key));
  auto made = by.make_client(terms);
  if (!made.ok()) return std::move(made).error();
  kept = std::move(*made);
  return kept;
}

result<secured> encryption::secure(std::unique_ptr<transport::connection> raw, std::string_view url,
                                   bool has_token, deadline until) {
  secured made;
  if (!is_wanted(*raw, url, until)) {
    made.link = std::move(raw);
    return made;
  }
  const auto library = transport::tls::load();
  if (!library.ok()) return library.error();
  made.server = server_of(url);
  const auto context = context_for(**library, made.server);
  if (!context.ok()) return context.error();
  auto engine = (*context)->start(host_of(url));
  if (!engine) return outboard::error{action::retry, "no memory is left for an encrypted connection"};
  auto opened = transport::tls::tls_connection::open_outer(
      std::move(raw), std::move(engine), std::min(until, transport::clock::now() + handshake_patience));
  if (!opened.ok()) {
    outboard::error why = std::move(opened).error();
    if (why.message == "it does not speak TLS") {
      why.next = action::reconnect;  // it may be any program that listens there
      why.message += "; if the network up to it is trusted, set tls = \"off\" (OUTBOARD_TLS, --tls off)";
    }
    return why;
  }
  made.tls = opened->get();
  made.link = std::move(*opened);
  made.shows_certificate = !files_.client.empty();
  OUTBOARD_TRY(judge(made, has_token));
  return made;
}

std::string encryption::known_file() const {
  return files_.known_servers.empty() ? transport::tls::default_known_servers() : files_.known_servers;
}

status encryption::judge(secured& with, bool has_token) {
  const transport::tls::certificate_facts facts = with.tls->outer()->certificate();
  with.fingerprint = facts.fingerprint;
  // With an authority, the handshake has failed if it does not vouch for the server.
  if (!files_.server_authority.empty()) {
    with.known = true;
    with.fingerprint.clear();
    return {};
  }
  const std::string path = known_file();
  const auto text = transport::tls::read_known(path);
  if (!text.ok()) return text.error();
  const auto known = transport::tls::find_known(*text, with.server);
  with.known =
      std::ranges::any_of(known, [&](const auto& one) { return one.fingerprint == facts.fingerprint; });
  if (with.known) return {};
  if (!known.empty()) {
    return failure("its key has changed: it is " + facts.fingerprint + ", but line " +
                   std::to_string(known.front().line) + " of " + path + " has " + known.front().fingerprint +
                   "; if the server was given a new key, remove that line, else somebody is in between");
  }
  if (const auto before = believed(with.server); before && !before->empty() && *before != facts.fingerprint) {
    return failure("its key has changed: it is " + facts.fingerprint + ", but was " + *before +
                   " when this program first reached it; restart the program if the server was given a new "
                   "key, else somebody is in between");
  }
  if (has_token) return {};
  return failure(
      "it is not known, and without a token it cannot prove itself; if `outboard doctor` on the server "
      "shows the fingerprint " +
      facts.fingerprint + ", add this line to " + path + ": " +
      transport::tls::line_of_known(with.server, facts.fingerprint));
}

void encryption::remember(const secured& with) {
  if (!with.tls) return;
  {
    const std::lock_guard lock(mutex_);
    believed_.emplace(with.server, with.fingerprint);
  }
  if (with.known || with.fingerprint.empty()) return;
  const std::string path = known_file();
  if (path.empty()) return;
  if (const status added = transport::tls::add_known(path, with.server, with.fingerprint); !added.ok())
    log::debug("the fingerprint of ", with.server, " is not kept: ", added.error().message);
}

}  // namespace outboard::frontend
