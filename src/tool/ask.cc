#include "tool/ask.hh"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "backend/daemon/admin.hh"
#include "base/schemes.hh"
#include "frontend/encryption.hh"
#include "tool/exit_status.hh"
#include "tool/locate.hh"
#include "tool/parts.hh"
#include "tool/text.hh"
#include "tool/verbs.hh"
#include "tool/worker_command.hh"

namespace outboard::tool {
namespace {

using nlohmann::json;

/// A distant server over a slow link answers within a second or two; a dead one must not keep a user waiting.
constexpr std::chrono::seconds patience{15};

/// If no server is named, adds the one that runs on this machine.
void add_default_server(config& c) {
  if (c.servers.empty()) c.servers = sockets_there();
}

json parse(const std::string& text) { return json::parse(text, nullptr, false); }

/// "-" for what a server of another version does not report, or does not know.
std::string text_of(const json& j, const char* key) {
  const auto at = j.find(key);
  if (at == j.end() || at->is_null()) return "-";
  return printable(at->is_string() ? at->get<std::string>() : at->dump());
}

std::string number_of(const json& j, const char* key, std::string (*as_text)(double)) {
  const auto at = j.find(key);
  return at != j.end() && at->is_number() ? as_text(at->get<double>()) : "-";
}

int print_list(const std::string& text, bool as_json, std::string (*text_of_list)(const json&)) {
  const json list = parse(text);
  if (!list.is_array()) return complain(exit_failed, "the server's answer was not understood");
  return print(as_json ? list.dump(2, ' ', false, json::error_handler_t::replace) + "\n"
                       : text_of_list(list));
}

std::string devices_text(const json& list) {
  if (list.empty()) return "no devices\n";
  std::vector<std::vector<std::string>> rows{{"ORDINAL", "NAME", "KIND", "MEMORY", "COMPUTE", "UUID"}};
  for (const json& d : list) {
    rows.push_back({text_of(d, "ordinal"), text_of(d, "name"), text_of(d, "kind"),
                    number_of(d, "memory_bytes", size_text), text_of(d, "compute_capability"),
                    text_of(d, "uuid")});
  }
  return table(rows);
}

/// "interrupted, 42 s left": its client has so much time to come back.
std::string state_text(const json& s) {
  const std::string left =
      number_of(s, "ends_in_seconds", [](double seconds) { return fmt::format(", {:.0f} s left", seconds); });
  return text_of(s, "state") + (s.contains("ends_in_seconds") && !s["ends_in_seconds"].is_null() ? left : "");
}

std::string sessions_text(const json& list) {
  if (list.empty()) return "no sessions\n";
  std::vector<std::vector<std::string>> rows{{"ID", "USER", "HOST", "PROGRAM", "DEVICE", "MEMORY",
                                              "HOST MEMORY", "STATE", "TIME", "WORKER", "FROM"}};
  for (const json& s : list) {
    // A name that only the client itself vouches for has a question mark.
    const bool claimed = s.value("user_claimed", false);
    rows.push_back({text_of(s, "id"), text_of(s, "user") + (claimed ? "?" : ""), text_of(s, "host"),
                    fmt::format("{}[{}]", text_of(s, "program"), text_of(s, "process")),
                    text_of(s, s.value("api", "CUDA") == "CUDA" ? "device" : "api"),
                    number_of(s, "memory_bytes", size_text), number_of(s, "host_memory_bytes", size_text),
                    state_text(s), number_of(s, "seconds", duration_text), text_of(s, "worker"),
                    text_of(s, "from")});
  }
  return table(rows);
}

/// What a private server on this machine would offer.
int print_own_devices(const config& c, bool as_json) {
  const auto device = backend::choose_device(worker_command_line(c), c.device,
                                             [](const char* name) -> const char* { return ::getenv(name); });
  if (!device.ok()) return complain(exit_failed, device.error().message);
  return print_list(backend::devices_json(*device), as_json, devices_text);
}

/// Puts the reasons of several servers into one sentence.
void add_reason(outboard::error& problem, const std::string& why) {
  problem.message.append(problem.message.empty() ? "" : "; ").append(why);
}

std::uint64_t count_of(const json& j, const char* key) {
  const auto at = j.find(key);
  return at != j.end() && at->is_number_unsigned() ? at->get<std::uint64_t>() : 0;
}

}  // namespace

result<asking_means> prepare_to_ask(const config& c) {
  auto transports = make_transports(c);
  if (!transports.ok()) return std::move(transports).error();
  for (const std::string& url : c.servers) OUTBOARD_TRY(transports->check(url));
  asking_means means{
      std::move(*transports), {}, std::make_shared<frontend::encryption>(c.tls, c.certificates)};
  if (!c.token_file.empty()) {
    auto token = read_token(c.token_file);
    if (!token.ok()) return std::move(token).error();
    means.token = std::move(*token);
  }
  return means;
}

result<server_answer> ask_servers(const asking_means& means, const std::vector<std::string>& servers,
                                  const std::string& question) {
  wire::hello hello = frontend::introduce_ourselves();
  hello.wanted = wire::purpose::admin;
  hello.admin_question = question;
  hello.environment.clear();
  outboard::error problem{action::reconnect, ""};
  for (const std::string& url : servers) {
    auto answer =
        frontend::dial(means.transports, url, hello, means.token, transport::clock::now() + patience,
                       frontend::welcome_patience, means.encrypts);
    if (answer.ok()) {
      const auto& content = answer->welcome.content;
      return server_answer{std::string(reinterpret_cast<const char*>(content.data()), content.size()), url,
                           answer->server_product};
    }
    problem.next = answer.error().next;
    add_reason(problem, answer.error().message);
  }
  return problem;
}

/// A server that is too old to report its limits counts as one that has a place.
std::string why_no_place(const std::string& doctor_answer) {
  const json about = parse(doctor_answer);
  if (!about.is_object()) return {};
  if (about.value("draining", false)) return "it is shutting down";
  const json sessions = about.value("sessions", json::object());
  const json limits = about.value("limits", json::object());
  const std::uint64_t running = count_of(sessions, "running"), waiting = count_of(sessions, "waiting");
  const std::uint64_t most = count_of(limits, "sessions");
  if (most == 0 || running + waiting < most) return {};
  return fmt::format("it is full: {}; try again later", backend::describe_full(running, waiting, most));
}

status find_place(const asking_means& means, const std::vector<std::string>& servers) {
  outboard::error problem{action::reconnect, ""};
  for (const std::string& url : servers) {
    const auto answer = ask_servers(means, {url}, "doctor");
    const std::string no_place = answer.ok() ? why_no_place(answer->json) : "";
    if (answer.ok() && no_place.empty()) return {};
    // One busy server is a reason to try again later, whatever the others answered.
    if (problem.next != action::retry) problem.next = answer.ok() ? action::retry : answer.error().next;
    add_reason(problem, answer.ok() ? fmt::format("server {}: {}", url, no_place) : answer.error().message);
  }
  return problem;
}

int verb_devices(const common_flags& common) {
  auto c = load_with_flags(common);
  if (!c.ok()) return complain_of_configuration(c.error());
  if (!common.given("device")) add_default_server(*c);
  if (c->servers.empty()) return print_own_devices(*c, common.json);
  const auto means = prepare_to_ask(*c);
  if (!means.ok()) return complain(exit_configuration, means.error().message);
  const auto answer = ask_servers(*means, c->servers, "devices");
  if (!answer.ok()) return complain(status_of(answer.error()), answer.error().message);
  return print_list(answer->json, common.json, devices_text);
}

namespace {

/// Asks the servers named, or the one that runs on this machine. Complains and returns the exit status if
/// there is no answer.
int ask_one(config& c, const std::string& question, std::string& answer) {
  add_default_server(c);
  if (c.servers.empty()) {
    return complain(exit_no_server,
                    fmt::format("no server is named, and none runs at {}; name one with --server URL, "
                                "OUTBOARD_SERVER, or server = \"URL\" in the configuration",
                                default_socket()));
  }
  const auto means = prepare_to_ask(c);
  if (!means.ok()) return complain(exit_configuration, means.error().message);
  auto answered = ask_servers(*means, c.servers, question);
  if (!answered.ok()) return complain(status_of(answered.error()), answered.error().message);
  answer = std::move(answered->json);
  return exit_good;
}

/// Has a server do something, and prints what it says.
int tell(const common_flags& common, const std::string& order) {
  auto c = load_with_flags(common);
  if (!c.ok()) return complain_of_configuration(c.error());
  std::string answer;
  if (const int asked = ask_one(*c, order, answer); asked != exit_good) return asked;
  return print(fmt::format("{}\n", printable(answer)));
}

}  // namespace

int verb_sessions(const common_flags& common) {
  auto c = load_with_flags(common);
  if (!c.ok()) return complain_of_configuration(c.error());
  std::string answer;
  if (const int asked = ask_one(*c, "sessions", answer); asked != exit_good) return asked;
  return print_list(answer, common.json, sessions_text);
}

int verb_reload(const common_flags& common) { return tell(common, "reload"); }

int verb_end(const common_flags& common, std::uint64_t session) {
  return tell(common, fmt::format("end {}", session));
}

}  // namespace outboard::tool
