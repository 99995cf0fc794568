#include <fmt/format.h>
#include <stdlib.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "backend/daemon/admin.hh"
#include "base/clean_line.hh"
#include "base/machine.hh"
#include "base/version.hh"
#include "tool/ask.hh"
#include "tool/cure.hh"
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

struct fault {
  std::string text;  ///< a plain sentence
  cure mended_by;
};

/// What was found, and what is wrong with it.
struct findings {
  json facts = json::object();
  std::vector<fault> wrong;

  void add(std::string text, cure by) { wrong.push_back({std::move(text), std::move(by)}); }
};

void look_at_front_end(const common_flags& common, findings& f) {
  const auto folder = find_library_folder(common.library);
  json j{{"found", folder.ok()}};
  if (folder.ok()) {
    j["folder"] = *folder;
    j["product"] = product;
  } else {
    f.add(folder.error().message, cure_by_package(product));
  }
  f.facts["front_end"] = j;
  // What a program's own profiler gets of us.
  f.facts["profilers"] = folder.ok() && ::access((*folder + "/libcupti.so.13").c_str(), R_OK) == 0;
}

void look_at_transports(const config& c, findings& f) {
  json list = json::array();
  auto transports = make_transports(c);
  if (transports.ok()) {
    for (const std::string_view scheme : transports->schemes()) list.push_back(scheme);
  } else {
    f.add(transports.error().message, cure_of_transports());
  }
  f.facts["transports"] = list;
}

json describe(const backend::probed_device& device) {
  return {{"kind", device.kind},
          {"description", device.description},
          {"driver_version", device.snapshot.driver_version},
          {"no_profiles", device.no_profiles},
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
      if (c.device == choice || choice == device_choice::cpu)
        f.add(device.error().message, cure_of_no_device());
    }
  }
  // The first that there is is taken.
  for (json& device : list) {
    if (device.contains("problem") || get(device, "devices").empty()) continue;
    device["taken"] = true;
    break;
  }
  f.facts["own_devices"] = list;
  // A private back-end confines nothing.
  f.facts["own_opencl"] = parse(backend::opencl_json(backend::look_at_opencl(confine_choice::off, variable)));
}

void look_at_servers(const config& c, const std::vector<std::string>& servers, findings& f) {
  json list = json::array();
  const auto means = prepare_to_ask(c);
  if (!means.ok()) return f.add(means.error().message, cure_of_token_file(c));
  for (const std::string& url : servers) {
    const auto answer = ask_servers(*means, {url}, "doctor");
    if (!answer.ok()) {
      list.push_back({{"url", url},
                      {"problem", answer.error().message},
                      {"answers", status_of(answer.error()) != exit_no_server}});
      f.add(answer.error().message, cure_of_silence(c, url, answer.error()));
      continue;
    }
    json about = parse(answer->json);
    if (answer->product != product) {
      f.add("server " + url + " is " + answer->product + ", this is " + std::string(product) +
                "; the protocol fits, but the same version on both sides is safer",
            cure_by_package(answer->product));
    }
    if (const std::string why = why_no_place(*answer); !why.empty()) f.add(why, cure_of_no_place());
    if (get(get(about, "device"), "devices").empty()) {
      f.add("server " + url + " has no device", cure_of_no_device());
    }
    list.push_back({{"url", url}, {"answer", std::move(about)}});
  }
  f.facts["servers"] = list;
}

double number(const json& j, const char* key) {
  const json& value = get(j, key);
  return value.is_number() ? value.get<double>() : 0;
}

std::string text_of(const json& j) { return j.is_string() ? clean_line(j.get<std::string>()) : json_text(j); }

std::string driver_version(const json& device) {
  const int v = static_cast<int>(number(device, "driver_version"));
  return v == 0 ? "" : fmt::format(", CUDA {}.{}", v / 1000, v % 1000 / 10);
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
  const json& silent = get(device, "no_profiles");  // a server of an earlier version does not say it
  if (silent.is_string())
    std::printf("%s  profilers %s\n", indent,
                silent == "" ? "see its work" : ("see nothing of its work: " + text_of(silent)).c_str());
}

void print_opencl(const json& opencl, const char* indent) {
  if (!opencl.is_object()) return;  // a server of an earlier version does not say it
  std::string names;
  for (const json& library : get(opencl, "platforms"))
    names.append(names.empty() ? "" : ", ").append(text_of(library));
  const std::string lacks = text_of(get(opencl, "lacks"));
  std::string how = ", workers are confined";
  if (get(opencl, "confine") == "off") {
    how = ", workers are not confined";
  } else if (!lacks.empty()) {
    how = get(opencl, "served") == false
              ? ", refused: worker.confine is \"require\", and the kernel lacks " + lacks
              : ", workers are confined but for what the kernel lacks: " + lacks;
  }
  std::printf("%sOpenCL: %s\n", indent, names.empty() ? "no platform is installed" : (names + how).c_str());
}

void print_confinement(const json& workers, const char* indent) {
  if (!workers.is_object()) return;  // a server of an earlier version does not say it
  if (get(workers, "reaches_all_memory") == true)
    std::printf("%skernels reach all memory of their worker (HMM or ATS); what keeps them from the rest:\n",
                indent);
  if (get(workers, "confine") == "off") return std::printf("%sworkers: not confined\n", indent), void();
  const std::string has = text_of(get(workers, "has")), lacks = text_of(get(workers, "lacks"));
  std::string how = "confined: " + has;
  if (!lacks.empty())
    how = "not wholly confined: " + has + (has.empty() ? "" : "; ") + "the kernel lacks " + lacks;
  if (get(workers, "served") == false) {
    how = "CUDA sessions are refused (worker.confine is \"" + text_of(get(workers, "confine")) +
          "\"): the kernel lacks " + lacks;
  }
  std::printf("%sworkers: %s\n", indent, how.c_str());
  for (const char* kind : {"reads", "writes"}) {
    for (const json& path : get(workers, kind))
      std::printf("%s  worker.%s: %s\n", indent, kind, text_of(path).c_str());
  }
}

void print_groups(const json& cgroup, const char* indent) {
  if (!cgroup.is_object()) return;  // a server of an earlier version does not say it
  std::string how = "none (worker.cgroup is \"off\")";
  if (const json& below = get(cgroup, "below"); below.is_string()) {
    how = "one for each worker, below " + text_of(below);
  } else if (get(cgroup, "choice") != "off") {
    how = "none: " + text_of(get(cgroup, "lacks"));
  }
  std::printf("%scontrol groups: %s\n", indent, how.c_str());
}

void print_audit(const json& audit) {
  if (!audit.is_object()) return;  // a server of an earlier version does not say it
  const json& file = get(audit, "file");
  std::printf("    audit: %s\n", get(audit, "on") != true ? "none (audit_file names no file)"
                                 : file.is_string()       ? text_of(file).c_str()
                                                          : "on, its administrators see where");
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

/// What who asks may do and have there.
void print_identity(const json& identity) {
  if (!identity.is_object()) return;  // a server of an earlier version does not say it
  const auto limit = [&](const char* key) {
    const json& most = get(identity, key);
    return most.is_null() ? std::string() : " of " + json_text(most);
  };
  const std::string person = text_of(get(identity, "person")), name = text_of(get(identity, "name"));
  std::string memory;
  if (const double most = number(identity, "device_memory_limit"); most > 0) {
    double held = 0;
    for (const json& device : get(identity, "device_memory_held")) {
      if (device.is_number()) held = std::max(held, device.get<double>());
    }
    memory = "; memory " + size_text(held) + " of " + size_text(most);
  }
  std::printf("    you: %s%s; rights: %s; %s%s running, %s%s waiting%s%s\n", person.c_str(),
              name == person ? "" : (" of [identity." + name + "]").c_str(),
              text_of(get(identity, "rights")).c_str(), text_of(get(identity, "running")).c_str(),
              limit("sessions_limit").c_str(), text_of(get(identity, "waiting")).c_str(),
              limit("waiting_limit").c_str(), memory.c_str(),
              get(identity, "shares_places") == true ? "; places are shared with others" : "");
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
  print_opencl(get(a, "opencl"), "    ");
  if (const std::string key = text_of(get(a, "fingerprint")); !key.empty() && key != "null")
    std::printf("    TLS: its key is %s\n", key.c_str());
  if (const std::string warning = text_of(get(a, "certificate_warning"));
      !warning.empty() && warning != "null")
    std::printf("    TLS: %s\n", warning.c_str());
  print_confinement(get(a, "confinement"), "    ");
  print_groups(get(a, "cgroup"), "    ");
  if (get(a, "munge") == true) std::printf("    MUNGE: a credential is as good as a token\n");
  print_audit(get(a, "audit"));
  std::printf("    listening on:");
  for (const json& url : get(a, "listening")) std::printf(" %s", text_of(url).c_str());
  std::printf(
      "\n    sessions: %s running, %s waiting, %s since start, %s ended abnormally; %s connections refused\n",
      text_of(get(get(a, "sessions"), "running")).c_str(),
      text_of(get(get(a, "sessions"), "waiting")).c_str(), text_of(get(get(a, "sessions"), "total")).c_str(),
      text_of(get(get(a, "sessions"), "not_orderly")).c_str(),
      text_of(get(get(a, "connections"), "refused")).c_str());
  print_identity(get(a, "identity"));
  print_pool(get(a, "pool"));
}

/// What would happen without a server named is that kernels run here, slowly.
bool on_cpu_alone(const json& facts) {
  const json& own = get(facts, "own_devices");
  return std::ranges::any_of(
      own, [](const json& device) { return get(device, "taken") == true && get(device, "kind") == "cpu"; });
}

std::string pointer_to(const cure& c) { return c.about.empty() ? "" : " (see " + std::string(c.about) + ")"; }

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
              j["profilers"].get<bool>()
                  ? "see the server's kernels under `outboard run`"
                  : "see no kernels: this build has no libcupti (outboard run --profile FILE records them)");
  std::printf("\nconfiguration files:");
  for (const json& file : j["configuration"]) std::printf(" %s", text_of(file).c_str());
  std::printf("%s\n", j["configuration"].empty() ? " none" : "");
  if (j.contains("own_devices")) {
    std::printf("no server is named; a private back-end would use:\n");
    for (const json& device : j["own_devices"]) print_device(device, "  ");
    print_opencl(get(j, "own_opencl"), "  ");
  }
  if (j.contains("servers")) {
    std::printf("%s:\n", j.contains("own_devices")
                             ? "servers of this machine, which programs use if --server names them"
                             : "servers");
    for (const json& server : j["servers"]) print_server(server);
  }
  for (const fault& each : f.wrong)
    std::printf("wrong: %s%s\n", clean_line(each.text).c_str(), pointer_to(each.mended_by).c_str());
  if (!f.wrong.empty() && !f.wrong.front().mended_by.command.empty())
    std::printf("%s mends it: %s\n", f.wrong.size() == 1 ? "this" : "of the first line, this",
                clean_line(f.wrong.front().mended_by.command).c_str());
  if (f.wrong.empty())
    std::printf("%s\n", on_cpu_alone(j) ? "it works, but only on the cpu device" : "nothing is wrong");
}

/// `--fix`: for a script, or a person in a hurry. Whatever is no command goes to stderr.
int print_cure(const findings& f) {
  if (f.wrong.empty()) return exit_good;
  const fault& first = f.wrong.front();
  const std::string& command = first.mended_by.command;
  if (command.empty())
    return complain(exit_failed, first.text + "; no single command mends that" + pointer_to(first.mended_by));
  std::printf("%s\n", clean_line(command).c_str());
  return exit_failed;
}

}  // namespace

int verb_doctor(const common_flags& common, bool only_cure) {
  findings f;
  f.facts["product"] = product;
  const machine_facts machine = look_at_machine();
  f.facts["system"] = machine.kernel + " " + machine.architecture;
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
  if (only_cure) return print_cure(f);
  if (common.json) {
    json sentences = json::array(), cures = json::array(), sections = json::array();
    for (const fault& each : f.wrong) {
      sentences.push_back(each.text);
      cures.push_back(each.mended_by.command.empty() ? json() : json(each.mended_by.command));
      sections.push_back(each.mended_by.about);
    }
    f.facts["wrong"] = sentences;
    f.facts["cures"] = cures;
    f.facts["sections"] = sections;
    std::fputs(printed_json(f.facts).c_str(), stdout);
  } else {
    print_findings(f);
  }
  return f.wrong.empty() ? exit_good : exit_failed;
}

}  // namespace outboard::tool
