#include "frontend/settings.hh"

#include "base/configuration/config.hh"
#include "base/schemes.hh"
#include "frontend/encryption.hh"
#include "frontend/reconnector.hh"
#include "wire/features.hh"

namespace outboard::frontend {

result<settings> client_settings() {
  auto c = load_config(default_config_sources());
  if (!c) return std::move(c).error();
  if (c->servers.empty()) {
    return failure("no server: set OUTBOARD_SERVER (" + url_forms(" or ") +
                   "), or start the program with `outboard run`");
  }
  settings s;
  if (!c->token_file.empty()) {
    auto token = read_token(c->token_file);
    if (!token) return std::move(token).error();
    s.token = std::move(*token);
  }
  s.encrypts = std::make_shared<encryption>(c->tls, c->certificates, c->munge);
  s.servers = std::move(c->servers);
  s.synchronous = c->sync;
  s.rings = c->rings;
  s.data_connections = c->data_connections;
  s.compression = c->compression;
  s.module_cache = c->module_cache;
  s.wait = std::chrono::seconds(c->wait_seconds);
  s.find_addresses = c->find_addresses;
  s.concurrent_managed = c->concurrent_managed;
  s.trace_file = std::move(c->trace);
  s.profile = {std::move(c->profile), c->profile_summary};
  if (c->log_given) s.log = c->log;
  s.plugins = std::move(c->plugins);
  return s;
}

result<dialed> dial_any(const settings& s, const transport::registry& transports, wire::hello hello,
                        transport::deadline until) {
  hello.features |= wire::feature_lane_uploads | wire::feature_fine_grain | wire::feature_words |
                    wire::feature_failure_lines | wire::feature_resume;
  // A profiler in the program may want it at any time.
  hello.features |= wire::feature_profile | wire::feature_samples;
  if (s.rings) hello.features |= wire::feature_rings;
  if (s.data_connections) hello.features |= wire::feature_data_connections;
  if (s.compression) hello.features |= wire::feature_packed_pieces;
  if (s.module_cache) hello.features |= wire::feature_image_recall;
  std::string reasons;
  int reason = 0;
  for (const std::string& url : s.servers) {
    auto got = dial(transports, url, hello, s.token, until, s.wait, s.encrypts);
    if (got && got->terms) {
      got->reconnects = reconnector::make(transports, *got, s.token, s.encrypts);
      got->connection = got->reconnects->adopt_session(std::move(got->connection));
    }
    if (got) return got;
    if (!reasons.empty()) reasons += "; ";
    reasons += got.error().message;
    reason = got.error().reason;
  }
  return outboard::error{action::fail, reasons.empty() ? "no server is named" : reasons, reason};
}

}  // namespace outboard::frontend
