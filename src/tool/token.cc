// `outboard token`: makes, lists and revokes the named tokens of this machine's server, in the server's file.
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <ctime>
#include <nlohmann/json.hpp>
#include <optional>

#include "backend/identity/named_tokens.hh"
#include "tool/exit_status.hh"
#include "tool/json_text.hh"
#include "tool/parts.hh"
#include "tool/text.hh"
#include "tool/verbs.hh"

namespace outboard::tool {
namespace {

constexpr std::int64_t longest_life = std::int64_t{100} * 365 * 86400;

/// "30d", "12h", "45m", "90s". Nothing: it is none of these.
std::optional<std::chrono::seconds> parse_lifetime(std::string_view text) {
  static constexpr std::pair<char, std::int64_t> units[]{
      {'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}, {'w', 7 * 86400}};
  std::int64_t number = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (code != std::errc() || end + 1 != text.data() + text.size() || number <= 0) return std::nullopt;
  for (const auto& [letter, seconds] : units) {
    if (*end == letter && number <= longest_life / seconds) return std::chrono::seconds(number * seconds);
  }
  return std::nullopt;
}

std::string day_of(std::int64_t seconds) { return seconds == 0 ? "never" : backend::minute_text(seconds); }

int list(const std::string& path, bool json) {
  const auto tokens = backend::read_named_tokens(path);
  if (!tokens.ok()) return complain(exit_configuration, tokens.error().message);
  const std::int64_t now = std::time(nullptr);
  const auto state = [&](const backend::named_token& t) {
    return t.expires && t.expires <= now ? "expired" : "valid";
  };
  if (json) {
    nlohmann::json out = nlohmann::json::array();
    for (const auto& t : *tokens) {
      out.push_back({{"name", t.name},
                     {"created", t.created},
                     {"expires", t.expires ? nlohmann::json(t.expires) : nullptr},
                     {"state", state(t)}});
    }
    return print(printed_json(out));
  }
  if (tokens->empty()) return print("no named tokens in " + path + "\n");
  std::vector<std::vector<std::string>> rows{{"NAME", "CREATED", "EXPIRES", "STATE"}};
  for (const auto& t : *tokens) rows.push_back({t.name, day_of(t.created), day_of(t.expires), state(t)});
  return print(table(rows));
}

int create(const std::string& path, const std::string& name, const std::string& given) {
  const auto lifetime = given.empty() ? std::optional(std::chrono::seconds(0)) : parse_lifetime(given);
  if (!lifetime)
    return complain(exit_usage,
                    "--expires takes a number and s, m, h, d or w, as 30d, not \"" + given + "\"");
  const auto text = backend::create_named_token(path, name, *lifetime);
  if (!text.ok()) return complain(exit_failed, text.error().message);
  complain(exit_good,
           "this is the token \"" + name +
               "\"; it is shown only now. Its user puts it into a file of mode 0600 and names that "
               "with --token-file or OUTBOARD_TOKEN_FILE");
  return print(*text + "\n");
}

}  // namespace

std::string default_tokens_file() {
  const auto folder = [](const char* variable) -> std::string {
    const char* value = std::getenv(variable);
    if (!value || value[0] != '/') return {};
    return std::string(value).substr(0, std::string_view(value).find(':'));  // systemd may name several
  };
  if (const std::string state = folder("STATE_DIRECTORY"); !state.empty()) return state + "/tokens";
  if (::geteuid() == 0) return "/var/lib/outboard/tokens";  // where the service's file is
  if (const std::string state = folder("XDG_STATE_HOME"); !state.empty()) return state + "/outboard/tokens";
  const std::string home = folder("HOME");
  return home.empty() ? "" : home + "/.local/state/outboard/tokens";
}

int verb_token(const common_flags& common, const token_flags& flags) {
  const std::string& action = flags.words.front();
  const bool lists = action == "list";
  if (!lists && action != "create" && action != "revoke")
    return complain(exit_usage,
                    "`outboard token` knows create NAME, list and revoke NAME, not \"" + action + "\"");
  if (flags.words.size() != (lists ? 1 : 2))
    return complain(exit_usage, lists ? "`outboard token list` takes no NAME"
                                      : "`outboard token " + action + "` takes one NAME");
  if (!flags.lifetime.empty() && action != "create")
    return complain(exit_usage, "--expires is for `outboard token create`");
  const auto c = load_with_flags(common);
  if (!c.ok()) return complain_of_configuration(c.error());
  const std::string path = c->tokens_file.empty() ? default_tokens_file() : c->tokens_file;
  if (path.empty())
    return complain(exit_configuration, "no place for the tokens is known; give --tokens-file FILE");
  if (lists) return list(path, common.json);
  const std::string& name = flags.words.back();
  if (action == "create") return create(path, name, flags.lifetime);
  const status revoked = backend::revoke_named_token(path, name);
  return revoked.ok() ? exit_good : complain(exit_failed, revoked.error().message);
}

}  // namespace outboard::tool
