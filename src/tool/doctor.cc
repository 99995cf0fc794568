#include <stdlib.h>
#include <sys/utsname.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "backend/admin.hh"
#include "base/clean_line.hh"
#include "base/version.hh"
#include "tool/ask.hh"
#include "tool/exit_status.hh"
#include "tool/locate.hh"
#include "tool/parts.hh"
#include "tool/verbs.hh"
#include "tool/worker_command.hh"

namespace outboard::tool {
namespace {

using nlohmann::json;

/// What was found, and what is wrong with it in plain sentences.
struct findings {
  json facts = json::object();
  std::vector<std::string> wrong;
};

void look_at_front_end(const common_flags& common, findings& f) {
  const auto folder = find_library_folder(common.library);
  json j{{"found", folder.ok()}};
  if (folder.ok()) {
    j["folder"] = *folder;
    j["product"] = product;
  } else {
    f.wrong.push_back(folder.error().message);
  }
  f.facts["front_end"] = j;
}

void look_at_transports(const config& c, findings& f) {
  json list = json::array();
  auto transports = make_transports(c);
  if (transports.ok()) {
    for (const std::string_view scheme : transports->schemes()) list.push_back(scheme);
  } else {
    f.wrong.push_back(transports.error().message);
  }
  f.facts["transports"] = list;
  f.facts["profilers"] = false;  // what runs on the server is not recorded for a program's CUPTI
}

json describe(const backend::probed_device& device) {
  return {{"kind", device.kind},
          {"description", device.description},
          {"driver_version", device.snapshot.driver_version},
          {"devices", parse(backend::devices_json(device))}};
}

/// Without a server: what a private back-end would use, and why not the GPU.
void look_at_own_devices(const config& c, findings& f) {
  const auto variable = [](const char* name) -> const char* { return ::getenv(name); };
  const backend::worker_command command = worker_command_line(c);
  json list = json::array();
  for (const device_choice choice : {device_choice::vendor, device_choice::cpu}) {
    if (c.device != device_choice::automatic && c.device != choice) continue;
    const auto device = backend::probe_device(command, std::string(name(choice)), variable);
    if (device.ok()) {
      list.push_back(describe(*device));
    } else {
      list.push_back({{"kind", name(choice)}, {"problem", device.error().message}});
      // No GPU here is what most clients are: only what was asked for by name is wrong when it is missing.
      if (c.device == choice || choice == device_choice::cpu) f.wrong.push_back(device.error().message);
    }
  }
  // The first that there is is taken.
  for (json& device : list) {
    if (device.contains("problem") || get(device, "devices").empty()) continue;
    device["taken"] = true;
    break;
  }
  f.facts["own_devices"] = list;
}

void look_at_servers(const config& c, const std::vector<std::string>& servers, findings& f) {
  json list = json::array();
  const auto means = prepare_to_ask(c);
  if (!means.ok()) return f.wrong.push_back(means.error().message);
  for (const std::string& url : servers) {
    const auto answer = ask_servers(*means, {url}, "doctor");
    if (!answer.ok()) {
      list.push_back({{"url", url},
                      {"problem", answer.error().message},
                      {"answers", status_of(answer.error()) != exit_no_server}});
      f.wrong.push_back(answer.error().message);
      continue;
    }
    json about = parse(answer->json);
    if (answer->product != product) {
      f.wrong.push_back("server " + url + " is " + answer->product + ", this is " + std::string(product) +
                        "; the protocol fits, but the same version on both sides is safer");
    }
    if (const std::string why = why_no_place(*answer); !why.empty()) f.wrong.push_back(why);
    if (get(get(about, "device"), "devices").empty()) {
      f.wrong.push_back("server " + url + " has no device");
    }
    list.push_back({{"url", url}, {"answer", std::move(about)}});
  }
  f.facts["servers"] = list;
}

double number(const json& j, const char* key) {
  const json& value = get(j, key);
  return value.is_number() ? value.get<double>() : 0;
}

std::string text_of(const json& j) { return j.is_string() ? clean_line(j.get<std::string>()) : j.dump(); }

std::string driver_version(const json& device) {
  const int v = static_cast<int>(number(device, "driver_version"));
  return v == 0 ? "" : ", CUDA " + std::to_string(v / 1000) + "." + std::to_string(v % 1000 / 10);
}

void print_device(const json& device, const char* indent) {
  if (device.contains("problem")) {
    std::printf("%s%s: %s\n", indent, text_of(get(device, "kind")).c_str(),
                text_of(get(device, "problem")).c_str());
    return;
  }
  std::printf("%s%s: %s%s%s\n", indent, text_of(get(device, "kind")).c_str(),
              text_of(get(device, "description")).c_str(), driver_version(device).c_str(),
              get(device, "taken") == true ? "  <- this" : "");
  for (const json& d : get(device, "devices")) {
    std::printf("%s  %s  %s, %.1f GiB, compute %s, %s\n", indent, text_of(get(d, "ordinal")).c_str(),
                text_of(get(d, "name")).c_str(), number(d, "memory_bytes") / static_cast<double>(1ull << 30),
                text_of(get(d, "compute_capability")).c_str(), text_of(get(d, "uuid")).c_str());
  }
}

void print_pool(const json& pool) {
  std::printf("    warm pool: %s hits, %s misses, %s dropped; %s per kind of session, for %s minutes\n",
              text_of(get(pool, "hits")).c_str(), text_of(get(pool, "misses")).c_str(),
              text_of(get(pool, "dropped")).c_str(), text_of(get(pool, "per_key")).c_str(),
              text_of(get(pool, "idle_minutes")).c_str());
  for (const json& w : get(pool, "warm")) {
    const double bytes = number(w, "context_bytes");
    std::printf(
        "      idle worker %s: %s, device memory %s\n", text_of(get(w, "worker")).c_str(),
        get(w, "ready") == true ? "ready" : "starting",
        bytes > 0 ? (std::to_string(static_cast<long>(bytes / (1 << 20))) + " MiB").c_str() : "not measured");
  }
}

void print_server(const json& server) {
  if (server.contains("problem"))
    return std::printf("  %s: %s\n", text_of(get(server, "url")).c_str(),
                       get(server, "answers") == true ? "refuses" : "does not answer"),
           void();
  const json& a = get(server, "answer");
  if (!a.is_object()) return;
  std::printf("  %s: %s, protocol %s to %s\n", text_of(get(server, "url")).c_str(),
              text_of(get(a, "product")).c_str(), text_of(get(get(a, "protocol"), "lowest")).c_str(),
              text_of(get(get(a, "protocol"), "highest")).c_str());
  print_device(get(a, "device"), "    ");
  std::printf("    listening on:");
  for (const json& url : get(a, "listening")) std::printf(" %s", text_of(url).c_str());
  std::printf(
      "\n    sessions: %s running, %s waiting, %s since start, %s ended abnormally; %s connections refused\n",
      text_of(get(get(a, "sessions"), "running")).c_str(),
      text_of(get(get(a, "sessions"), "waiting")).c_str(), text_of(get(get(a, "sessions"), "total")).c_str(),
      text_of(get(get(a, "sessions"), "not_orderly")).c_str(),
      text_of(get(get(a, "connections"), "refused")).c_str());
  print_pool(get(a, "pool"));
}

/// What would happen without a server named is that kernels run here, slowly.
bool on_cpu_alone(const json& facts) {
  const json& own = get(facts, "own_devices");
  return std::ranges::any_of(
      own, [](const json& device) { return get(device, "taken") == true && get(device, "kind") == "cpu"; });
}

void print_findings(const findings& f) {
  const json& j = f.facts;
  std::printf("%s\n", text_of(j["product"]).c_str());
  std::printf("system: %s\n", text_of(j["system"]).c_str());
  const json& front = j["front_end"];
  std::printf("front-end library: %s\n",
              front["found"].get<bool>() ? text_of(front["folder"]).c_str() : "not found");
  std::printf("transports:");
  for (const json& t : j["transports"]) std::printf(" %s", text_of(t).c_str());
  std::printf("\nprofilers in programs (CUPTI): %s",
              j["profilers"].get<bool>() ? "record" : "see no kernels yet");
  std::printf("\nconfiguration files:");
  for (const json& file : j["configuration"]) std::printf(" %s", text_of(file).c_str());
  std::printf("%s\n", j["configuration"].empty() ? " none" : "");
  if (j.contains("own_devices")) {
    std::printf("no server is named; a private back-end would use:\n");
    for (const json& device : j["own_devices"]) print_device(device, "  ");
  }
  if (j.contains("servers")) {
    std::printf("%s:\n", j.contains("own_devices")
                             ? "servers of this machine, which programs use if --server names them"
                             : "servers");
    for (const json& server : j["servers"]) print_server(server);
  }
  for (const std::string& sentence : f.wrong) std::printf("wrong: %s\n", clean_line(sentence).c_str());
  if (f.wrong.empty())
    std::printf("%s\n", on_cpu_alone(j) ? "it works, but only on the cpu device" : "nothing is wrong");
}

}  // namespace

int verb_doctor(const common_flags& common) {
  findings f;
  f.facts["product"] = product;
  utsname system{};
  if (::uname(&system) == 0) {
    f.facts["system"] = std::string(system.sysname) + " " + system.release + " " + system.machine;
  }
  auto c = load_with_flags(common);
  if (!c.ok()) return complain_of_configuration(c.error());
  f.facts["configuration"] = c->sources;
  look_at_front_end(common, f);
  look_at_transports(*c, f);
  if (c->servers.empty()) {
    look_at_own_devices(*c, f);
    if (const auto here = sockets_there(); !here.empty()) look_at_servers(*c, here, f);
  } else {
    look_at_servers(*c, c->servers, f);
  }
  if (common.json) {
    f.facts["wrong"] = f.wrong;
    std::printf("%s\n", f.facts.dump(2, ' ', false, json::error_handler_t::replace).c_str());
  } else {
    print_findings(f);
  }
  return f.wrong.empty() ? exit_good : exit_failed;
}

}  // namespace outboard::tool
