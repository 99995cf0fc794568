#include "tool/ask.hh"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <thread>

#include "backend/daemon/admin.hh"
#include "base/clean_line.hh"
#include "base/joined.hh"
#include "base/schemes.hh"
#include "tool/exit_status.hh"
#include "tool/json_text.hh"
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

/// Without a server named: the one of this machine, if it runs.
void add_default_server(config& c) {
  if (c.servers.empty()) c.servers = sockets_there();
}

/// Names that clients and servers choose must not control a terminal. "-": a server of another version does
/// not say it, or does not know.
std::string text_of(const json& j, const char* key) {
  const json& value = get(j, key);
  if (value.is_null()) return "-";
  return clean_line(value.is_string() ? value.get<std::string>() : json_text(value));
}

std::string number_of(const json& j, const char* key, std::string (*as_text)(double)) {
  const json& value = get(j, key);
  return value.is_number() ? as_text(value.get<double>()) : "-";
}

int print_list(const std::string& text, bool as_json, std::string (*text_of_list)(const json&)) {
  const json list = parse(text);
  if (!list.is_array()) return complain(exit_failed, "the server's answer was not understood");
  return print(as_json ? printed_json(list) : text_of_list(list));
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

/// "waiting, 2 before it".
std::string state_of(const json& s) {
  const json& before = get(s, "waits_behind");
  if (const auto left = get(s, "ends_in_seconds"); left.is_number())
    return fmt::format("{}, {} s left", text_of(s, "state"), std::lround(left.get<double>()));
  if (!before.is_number_unsigned()) return text_of(s, "state");
  if (get(s, "waits_for") == "its own") return text_of(s, "state") + " for others of its identity";
  return text_of(s, "state") + (before == 0 ? ", next" : ", " + json_text(before) + " before it");
}

/// Of the server's own memory: "700 MiB of 1.5 GiB".
std::string host_memory_of(const json& s) {
  const std::string held = number_of(s, "host_memory_bytes", size_text);
  return get(s, "host_memory_limit").is_number()
             ? held + " of " + number_of(s, "host_memory_limit", size_text)
             : held;
}

std::string sessions_text(const json& list) {
  if (list.empty()) return "no sessions\n";
  std::vector<std::vector<std::string>> rows{
      {"ID", "IDENTITY", "USER", "HOST", "PROGRAM", "API", "MEMORY", "STATE", "TIME", "WORKER", "FROM"}};
  // Known where workers have control groups.
  const bool with_host =
      std::ranges::any_of(list, [](const json& s) { return get(s, "host_memory_bytes").is_number(); });
  if (with_host) rows[0].insert(rows[0].begin() + 7, "HOST MEMORY");
  for (const json& s : list) {
    rows.push_back({text_of(s, "id"), text_of(s, "identity"), text_of(s, "user"), text_of(s, "host"),
                    text_of(s, "program") + "[" + text_of(s, "process") + "]", text_of(s, "api"),
                    number_of(s, "memory_bytes", size_text), state_of(s),
                    number_of(s, "seconds", duration_text), text_of(s, "worker"), text_of(s, "from")});
    if (with_host) rows.back().insert(rows.back().begin() + 7, host_memory_of(s));
  }
  return table(rows);
}

/// What a private back-end of this machine would offer.
int print_own_devices(const config& c, bool as_json) {
  const auto device = backend::choose_device(worker_command_line(c), c.device,
                                             [](const char* name) -> const char* { return ::getenv(name); });
  if (!device.ok()) return complain(exit_failed, device.error().message);
  return print_list(backend::devices_json(*device), as_json, devices_text);
}

/// Only a program of a session's own sees them: platforms are loaded by its worker.
int list_opencl(common_flags common, const config& c) {
  const auto folder = find_library_folder("");
  if (!folder.ok()) return complain(exit_failed, folder.error().message);
  if (!c.servers.empty()) common.settings["server"] = joined(c.servers, ",");
  std::vector<std::string> program{own_path(), "opencl-list", *folder + "/libOutboardOpenCL.so.1"};
  if (common.json) program.emplace_back("--json");
  return verb_run(common, program, true);
}

}  // namespace

std::vector<std::string> sockets_there() {
  std::vector<std::string> list = usual_endpoints();
  std::erase_if(
      list, [](const std::string& url) { return ::access(std::string(address_of(url)).c_str(), F_OK) != 0; });
  return list;
}

result<asking_means> prepare_to_ask(const config& c) {
  auto transports = make_transports(c);
  if (!transports.ok()) return std::move(transports).error();
  asking_means means{
      std::move(*transports), {}, std::make_shared<frontend::encryption>(c.tls, c.certificates, c.munge)};
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
    problem.reason = answer.error().reason;
    problem.message.append(problem.message.empty() ? "" : "; ").append(answer.error().message);
  }
  return problem;
}

json parse(const std::string& text) { return json::parse(text, nullptr, false); }

const json& get(const json& j, const char* key) {
  static const json nothing;
  const auto at = j.is_object() ? j.find(key) : j.end();
  return at == j.end() ? nothing : *at;
}

std::string why_no_place(const server_answer& answer) {
  const json about = parse(answer.json);
  const json& sessions = get(about, "sessions");
  const auto number = [&](const char* key) -> std::uint64_t {
    const json& value = get(sessions, key);
    return value.is_number_unsigned() ? value.get<std::uint64_t>() : 0;
  };
  if (get(about, "draining") == true) return "server " + answer.url + " is shutting down";
  const std::uint64_t running = number("running"), waiting = number("waiting"), limit = number("limit");
  if (limit == 0 || running + waiting < limit) {
    const json& refusal = get(get(about, "identity"), "refusal");
    if (!refusal.is_string() || refusal == "") return "";
    return "server " + answer.url + " begins no session: " + clean_line(refusal.get<std::string>());
  }
  return fmt::format("server {} is full: {} of its sessions run and {} wait, the limit of both is {}",
                     answer.url, running, waiting, limit);
}

status find_place(const asking_means& means, const std::vector<std::string>& servers) {
  outboard::error problem{action::reconnect, ""};
  for (const std::string& url : servers) {
    const auto answer = ask_servers(means, {url}, "doctor");
    const std::string why = answer.ok() ? why_no_place(*answer) : answer.error().message;
    if (why.empty()) return {};
    problem.next = answer.ok() ? action::retry : answer.error().next;
    problem.message.append(problem.message.empty() ? "" : "; ").append(why);
  }
  return problem;
}

int verb_devices(const common_flags& common, bool opencl) {
  auto c = load_with_flags(common);
  if (!c.ok()) return complain_of_configuration(c.error());
  if (!common.given("device")) add_default_server(*c);
  if (opencl) return list_opencl(common, *c);
  if (c->servers.empty()) return print_own_devices(*c, common.json);
  const auto means = prepare_to_ask(*c);
  if (!means.ok()) return complain(exit_configuration, means.error().message);
  const auto answer = ask_servers(*means, c->servers, "devices");
  if (!answer.ok()) return complain(status_of(answer.error()), answer.error().message);
  return print_list(answer->json, common.json, devices_text);
}

namespace {

/// Asks the servers that are named, or this machine's. Returns a status where none has answered.
int ask_a_server(const common_flags& common, const std::string& question, server_answer& answer) {
  auto c = load_with_flags(common);
  if (!c.ok()) return complain_of_configuration(c.error());
  add_default_server(*c);
  if (c->servers.empty()) {
    return complain(exit_no_server,
                    "no server is named (--server, OUTBOARD_SERVER, server = in the configuration) "
                    "and none runs at " +
                        default_endpoint());
  }
  const auto means = prepare_to_ask(*c);
  if (!means.ok()) return complain(exit_configuration, means.error().message);
  auto got = ask_servers(*means, c->servers, question);
  if (!got.ok()) return complain(status_of(got.error()), got.error().message);
  answer = std::move(*got);
  return exit_good;
}

}  // namespace

int verb_sessions(const common_flags& common) {
  server_answer answer;
  if (const int status = ask_a_server(common, "sessions", answer); status != exit_good) return status;
  return print_list(answer.json, common.json, sessions_text);
}

int verb_reload(const common_flags& common) {
  server_answer answer;
  if (const int status = ask_a_server(common, "reload", answer); status != exit_good) return status;
  const json done = parse(answer.json);
  if (const json& problem = get(done, "problem"); problem.is_string()) {
    return complain(exit_configuration,
                    "the server's configuration stays as it was: " + problem.get<std::string>());
  }
  if (!done.is_object()) return complain(exit_failed, "the server's answer was not understood");
  std::string later;
  for (const json& key : get(done, "next_start"))
    later.append(later.empty() ? "" : ", ").append(key.is_string() ? key.get<std::string>() : json_text(key));
  return print("server " + answer.url + " has read its configuration again: " + text_of(done, "identities") +
               " identities\n" +
               (later.empty() ? "" : "from its next start on count: " + clean_line(later) + "\n"));
}

namespace {

/// How often to ask what became of it.
constexpr std::chrono::milliseconds replace_look{5};

}  // namespace

int verb_replace(const common_flags& common, const replace_flags& flags) {
  const std::string id = std::to_string(flags.session);
  std::string question = "replace " + id + " " + std::to_string(std::llround(flags.patience * 1000));
  while (true) {
    server_answer answer;
    if (const int status = ask_a_server(common, question, answer); status != exit_good) return status;
    const json done = parse(answer.json);
    if (const json& problem = get(done, "problem"); problem.is_string())
      return complain(exit_failed, "session " + id + ": " + clean_line(problem.get<std::string>()));
    const std::string state = text_of(done, "state");
    if (state == "failed")
      return complain(exit_failed, "session " + id + " keeps its worker: " + text_of(done, "why"));
    if (state == "done")
      return print("another worker goes on with session " + id + " after " +
                   number_of(done, "seconds", [](double s) { return std::to_string(s) + " s"; }) + "\n");
    question = "replace " + id;
    std::this_thread::sleep_for(replace_look);
  }
}

}  // namespace outboard::tool
