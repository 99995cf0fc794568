#include <fmt/format.h>
#include <stdlib.h>
#include <sys/utsname.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "backend/daemon/admin.hh"
#include "base/version.hh"
#include "tool/ask.hh"
#include "tool/exit_status.hh"
#include "tool/locate.hh"
#include "tool/parts.hh"
#include "tool/text.hh"
#include "tool/verbs.hh"
#include "tool/worker_command.hh"

namespace outboard::tool {
namespace {

using nlohmann::json;

/// A server of another version may answer with other keys; one that is absent counts as null.
const json& get(const json& j, const char* key) {
  static const json nothing;
  const auto at = j.is_object() ? j.find(key) : j.end();
  return at == j.end() ? nothing : *at;
}

/// What was found, and a plain sentence for each thing that is wrong.
struct findings {
  json facts = json::object();
  std::vector<std::string> wrong;
};

void look_at_client_library(const common_flags& common, findings& f) {
  const auto folder = find_library_folder(common.library);
  json j{{"found", folder.ok()}};
  if (folder.ok()) {
    j["folder"] = *folder;
    j["product"] = product;
  } else {
    f.wrong.push_back(folder.error().message);
  }
  f.facts["client_library"] = j;
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
}

json describe(const backend::probed_device& device) {
  return {{"kind", device.kind},
          {"description", device.description},
          {"driver_version", device.snapshot.driver_version},
          {"devices", json::parse(backend::devices_json(device), nullptr, false)}};
}

/// If no server is named: which devices a private server would use, and why not the GPU.
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
      // Most clients have no GPU, so a missing one is wrong only if it was asked for.
      if (c.device == choice || choice == device_choice::cpu) f.wrong.push_back(device.error().message);
    }
  }
  f.facts["own_devices"] = list;
}

/// A server on this machine that `run` does not use, because none is named.
void look_at_default_socket(const config& c, findings& f) {
  const std::vector<std::string> there = sockets_there();
  if (there.empty()) return;
  const auto means = prepare_to_ask(c);
  if (!means.ok()) return f.wrong.push_back(means.error().message);
  const auto answer = ask_servers(*means, there, "doctor");
  if (answer.ok()) f.facts["server_here"] = {{"url", answer->url}, {"product", answer->product}};
}

/// A text may come from a server.
std::string text_of(const json& j) { return printable(j.is_string() ? j.get<std::string>() : j.dump()); }
std::string text_of(const json& j, const char* key) { return text_of(get(j, key)); }

/// The rights are words with ", " in between.
bool grants_run(const json& you) {
  const json& rights = get(you, "rights");
  return !rights.is_string() || rights.get<std::string>().starts_with("run");
}

void look_at_servers(const config& c, findings& f) {
  json list = json::array();
  const auto means = prepare_to_ask(c);
  if (!means.ok()) return f.wrong.push_back(means.error().message);
  for (const std::string& url : c.servers) {
    const auto answer = ask_servers(*means, {url}, "doctor");
    if (!answer.ok()) {
      list.push_back({{"url", url},
                      {"answers", answer.error().next != action::reconnect},
                      {"problem", answer.error().message}});
      f.wrong.push_back(answer.error().message);
      continue;
    }
    json about = json::parse(answer->json, nullptr, false);
    if (answer->product != product) {
      f.wrong.push_back(
          fmt::format("server {} is {}, and this is {}; they understand each other, but the same version on "
                      "both sides is safer",
                      url, answer->product, product));
    }
    if (const std::string no_place = why_no_place(answer->json); !no_place.empty())
      f.wrong.push_back(fmt::format("server {}: {}", url, no_place));
    if (const json& you = get(about, "you"); you.is_object() && !grants_run(you)) {
      f.wrong.push_back(
          fmt::format("server {} lets {} run no programs; ask its administrator for the right "
                      "\"run\"",
                      url, text_of(you, "identity")));
    }
    if (const json& warning = get(about, "certificate_warning"); warning.is_string() && warning != "")
      f.wrong.push_back(fmt::format("server {}: {}", url, printable(warning.get<std::string>())));
    if (get(get(about, "device"), "devices").empty()) {
      f.wrong.push_back(fmt::format("server {} has no device", url));
    }
    list.push_back({{"url", url}, {"answer", std::move(about)}});
  }
  f.facts["servers"] = list;
}

double number(const json& j, const char* key) {
  const json& value = get(j, key);
  return value.is_number() ? value.get<double>() : 0;
}

/// "1 GiB", or "1 GiB of at most 4 GiB".
std::string held_text(const json& memory, const char* held, const char* limit) {
  const std::string text = size_text(number(memory, held));
  const auto most = number(memory, limit);
  return most == 0 ? text : fmt::format("{} of at most {}", text, size_text(most));
}

std::string list_of(const json& texts) {
  std::string list;
  for (const json& each : texts) list.append(" ").append(text_of(each));
  return list.empty() ? " none" : list;
}

/// The report grows line by line.
using report = std::back_insert_iterator<std::string>;

void add_device(report out, const json& device, const char* indent) {
  if (device.contains("problem")) {
    fmt::format_to(out, "{}{}: {}\n", indent, text_of(device, "kind"), text_of(device, "problem"));
    return;
  }
  const int driver = static_cast<int>(number(device, "driver_version"));
  fmt::format_to(out, "{}{}: {}{}\n", indent, text_of(device, "kind"), text_of(device, "description"),
                 driver == 0 ? "" : fmt::format(", CUDA {}.{}", driver / 1000, driver % 1000 / 10));
  for (const json& d : get(device, "devices")) {
    fmt::format_to(out, "{}  {}  {}, {}, compute {}, {}\n", indent, text_of(d, "ordinal"), text_of(d, "name"),
                   size_text(number(d, "memory_bytes")), text_of(d, "compute_capability"),
                   text_of(d, "uuid"));
    if (get(d, "pageable_memory_access") == true)
      fmt::format_to(out, "{}    its kernels can access all memory of their worker (HMM or ATS)\n", indent);
  }
}

void add_pool(report out, const json& pool) {
  fmt::format_to(
      out,
      "    warm workers: {} found ready, {} missing, {} ended unused; up to {} kept for each kind of "
      "session, for {} min\n",
      text_of(pool, "hits"), text_of(pool, "misses"), text_of(pool, "dropped"), text_of(pool, "per_key"),
      text_of(pool, "idle_minutes"));
  for (const json& w : get(pool, "warm")) {
    const double bytes = number(w, "context_bytes");
    fmt::format_to(out, "      idle worker {}: {}, device memory {}\n", text_of(w, "worker"),
                   get(w, "ready") == true ? "ready" : "starting",
                   bytes > 0 ? size_text(bytes) : "not measured");
  }
}

void add_server(report out, const json& server) {
  if (server.contains("problem")) {
    fmt::format_to(
        out, "  {}: {}\n", text_of(server, "url"),
        get(server, "answers") == true ? "answers, but refuses us (see below)" : "does not answer");
    return;
  }
  const json& a = get(server, "answer");
  if (!a.is_object()) return;
  const json& sessions = get(a, "sessions");
  fmt::format_to(out, "  {}: {}, protocol {} to {}{}\n", text_of(server, "url"), text_of(a, "product"),
                 text_of(get(a, "protocol"), "lowest"), text_of(get(a, "protocol"), "highest"),
                 get(a, "draining") == true ? ", shutting down" : "");
  add_device(out, get(a, "device"), "    ");
  fmt::format_to(out, "    listening on:{}\n", list_of(get(a, "listening")));
  if (const json& key = get(a, "fingerprint"); key.is_string() && key != "")
    fmt::format_to(out, "    TLS: its key is {}\n", text_of(key));
  fmt::format_to(out,
                 "    sessions: {} running, {} waiting; {} since the start, {} of them ended abnormally\n",
                 text_of(sessions, "running"), text_of(sessions, "waiting"), text_of(sessions, "total"),
                 text_of(sessions, "not_orderly"));
  fmt::format_to(out, "    connections: {} refused since the start\n",
                 text_of(get(a, "connections"), "refused"));
  if (const json& you = get(a, "you"); you.is_object()) {
    fmt::format_to(out, "    you are {}, identity {}; rights: {}\n", text_of(you, "credential"),
                   text_of(you, "identity"), text_of(you, "rights"));
    if (const json& memory = get(you, "memory"); memory.is_object()) {
      fmt::format_to(out, "    your sessions hold {} of a device, and {} of the server's own memory\n",
                     held_text(memory, "device_bytes", "device_limit"),
                     held_text(memory, "host_bytes", "host_limit"));
    }
  }
  if (const json& confinement = get(a, "confinement"); confinement.is_object()) {
    fmt::format_to(out, "    confinement: CUDA {}, OpenCL {}; its kernel has {}\n",
                   text_of(confinement, "cuda"), text_of(confinement, "opencl"),
                   text_of(confinement, "kernel"));
  }
  add_pool(out, get(a, "pool"));
}

/// If nothing is wrong. A machine that computes without a GPU should not look like one that has one.
const char* verdict_of_good(const json& facts) {
  const auto is_gpu = [](const json& device) {
    return get(device, "kind") == "vendor" && !device.contains("problem");
  };
  const json& own = get(facts, "own_devices");
  if (own.is_array() && std::ranges::none_of(own, is_gpu))
    return "works, but only on the cpu device: kernels run in an interpreter, slowly; name a server with "
           "--server "
           "URL to use a GPU";
  return "nothing is wrong";
}

/// `run` takes the first device that can be opened.
void add_own_devices(report out, const json& devices) {
  fmt::format_to(out,
                 "no server is named; `outboard run` starts a private server on this machine, with {}:\n",
                 devices.size() == 1 ? "this device" : "the first of these devices that works");
  for (const json& device : devices) add_device(out, device, "  ");
}

std::string report_of(const findings& f) {
  std::string text;
  const report out(text);
  const json& j = f.facts;
  const json& library = j["client_library"];
  fmt::format_to(out, "{}\nsystem: {}\nclient library: {}\ntransports:{}\nconfiguration files:{}\n",
                 text_of(j["product"]), text_of(get(j, "system")),
                 get(library, "found") == true ? text_of(library, "folder") : "not found",
                 list_of(j["transports"]), list_of(j["configuration"]));
  if (j.contains("own_devices")) add_own_devices(out, j["own_devices"]);
  if (j.contains("server_here")) {
    const std::string url = text_of(j["server_here"], "url");
    fmt::format_to(
        out,
        "a server runs on this machine at {}: `outboard devices` and `outboard sessions` ask it, but "
        "`outboard run` uses it only with --server {}\n",
        url, url);
  }
  if (j.contains("servers")) {
    text += "servers:\n";
    for (const json& server : j["servers"]) add_server(out, server);
  }
  for (const std::string& sentence : f.wrong) fmt::format_to(out, "wrong: {}\n", printable(sentence));
  if (f.wrong.empty()) fmt::format_to(out, "{}\n", verdict_of_good(j));
  return text;
}

}  // namespace

int verb_doctor(const common_flags& common) {
  findings f;
  f.facts["product"] = product;
  utsname system{};
  if (::uname(&system) == 0)
    f.facts["system"] = fmt::format("{} {} {}", system.sysname, system.release, system.machine);
  auto c = load_with_flags(common);
  if (!c.ok()) return complain_of_configuration(c.error());
  f.facts["configuration"] = c->sources;
  look_at_client_library(common, f);
  look_at_transports(*c, f);
  if (c->servers.empty()) {
    look_at_own_devices(*c, f);
    look_at_default_socket(*c, f);
  } else {
    look_at_servers(*c, f);
  }
  if (common.json) f.facts["wrong"] = f.wrong;
  const int printed =
      print(common.json ? f.facts.dump(2, ' ', false, json::error_handler_t::replace) + "\n" : report_of(f));
  return f.wrong.empty() ? printed : exit_failed;
}

}  // namespace outboard::tool
