#include "tool/ask.hh"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "backend/admin.hh"
#include "base/clean_line.hh"
#include "base/schemes.hh"
#include "tool/exit_status.hh"
#include "tool/locate.hh"
#include "tool/parts.hh"
#include "tool/verbs.hh"
#include "tool/worker_command.hh"

namespace outboard::tool {
namespace {

using nlohmann::json;

/// A distant server over a slow link answers within a second or two; a dead one must not keep a user waiting.
constexpr std::chrono::seconds patience{15};

bool is_there(const std::string& url) {
  return traits_of(url).has_socket_file && ::access(std::string(address_of(url)).c_str(), F_OK) == 0;
}

/// Without a server named: the one of this machine, if it runs.
void add_default_server(config& c) {
  if (!c.servers.empty()) return;
  for (const std::string& url : usual_endpoints()) {
    if (is_there(url)) c.servers.push_back(url);
  }
}

/// Names that clients and servers choose must not control a terminal.
std::string text_of(const json& j, const char* key) {
  const auto at = j.find(key);
  if (at == j.end()) return "-";
  return at->is_string() ? clean_line(at->get<std::string>()) : at->dump();
}

std::string gibibytes(const json& j, const char* key) {
  const auto at = j.find(key);
  char text[32];
  std::snprintf(text, sizeof text, "%.1f GiB",
                at != j.end() && at->is_number() ? at->get<double>() / static_cast<double>(1ull << 30) : 0.0);
  return text;
}

int print_list(const std::string& text, bool as_json, void (*print)(const json&)) {
  const json list = parse(text);
  if (!list.is_array()) return complain(exit_failed, "the server's answer was not understood");
  if (as_json) {
    std::printf("%s\n", list.dump(2, ' ', false, json::error_handler_t::replace).c_str());
  } else {
    print(list);
  }
  return std::fflush(stdout) == 0 ? exit_good : complain(exit_failed, "cannot write to the standard output");
}

void print_devices(const json& list) {
  if (list.empty()) std::printf("no devices\n");
  for (const json& d : list) {
    std::printf("%s  %s  %s  %s  compute %s  %s\n", text_of(d, "ordinal").c_str(), text_of(d, "name").c_str(),
                text_of(d, "kind").c_str(), gibibytes(d, "memory_bytes").c_str(),
                text_of(d, "compute_capability").c_str(), text_of(d, "uuid").c_str());
  }
}

void print_sessions(const json& list) {
  if (list.empty()) std::printf("no sessions\n");
  for (const json& s : list) {
    std::printf("%s  %s@%s  %s[%s]  since %s  from %s  worker %s\n", text_of(s, "id").c_str(),
                text_of(s, "user").c_str(), text_of(s, "host").c_str(), text_of(s, "program").c_str(),
                text_of(s, "process").c_str(), text_of(s, "started").c_str(), text_of(s, "from").c_str(),
                text_of(s, "worker").c_str());
  }
}

/// What a private back-end of this machine would offer.
int print_own_devices(const config& c, bool as_json) {
  const auto device = backend::choose_device(worker_command_line(c), c.device,
                                             [](const char* name) -> const char* { return ::getenv(name); });
  if (!device.ok()) return complain(exit_failed, device.error().message);
  return print_list(backend::devices_json(*device), as_json, print_devices);
}

}  // namespace

result<asking_means> prepare_to_ask(const config& c) {
  auto transports = make_transports(c);
  if (!transports.ok()) return std::move(transports).error();
  asking_means means{std::move(*transports), {}};
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
        frontend::dial(means.transports, url, hello, means.token, transport::clock::now() + patience);
    if (answer.ok()) {
      const auto& content = answer->welcome.content;
      return server_answer{std::string(reinterpret_cast<const char*>(content.data()), content.size()), url,
                           answer->server_product};
    }
    problem.next = answer.error().next;
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
  if (limit == 0 || running + waiting < limit) return "";
  return "server " + answer.url + " is full: " + std::to_string(running) + " of its sessions run and " +
         std::to_string(waiting) + " wait, the limit of both is " + std::to_string(limit);
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

int verb_devices(const common_flags& common) {
  auto c = load_with_flags(common);
  if (!c.ok()) return complain(exit_configuration, c.error().message);
  if (common.device.empty()) add_default_server(*c);
  if (c->servers.empty()) return print_own_devices(*c, common.json);
  const auto means = prepare_to_ask(*c);
  if (!means.ok()) return complain(exit_configuration, means.error().message);
  const auto answer = ask_servers(*means, c->servers, "devices");
  if (!answer.ok()) return complain(status_of(answer.error()), answer.error().message);
  return print_list(answer->json, common.json, print_devices);
}

int verb_sessions(const common_flags& common) {
  auto c = load_with_flags(common);
  if (!c.ok()) return complain(exit_configuration, c.error().message);
  add_default_server(*c);
  if (c->servers.empty()) {
    return complain(exit_no_server,
                    "no server is named (--server, OUTBOARD_SERVER, server = in the configuration) "
                    "and none runs at " +
                        default_endpoint());
  }
  const auto means = prepare_to_ask(*c);
  if (!means.ok()) return complain(exit_configuration, means.error().message);
  const auto answer = ask_servers(*means, c->servers, "sessions");
  if (!answer.ok()) return complain(status_of(answer.error()), answer.error().message);
  return print_list(answer->json, common.json, print_sessions);
}

}  // namespace outboard::tool
