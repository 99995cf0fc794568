// `outboard cdi generate`: a description by which container engines (podman, docker, containerd, CRI-O) give
// a server's GPUs to a container whose image knows nothing of them: the Container Device Interface.
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/configuration/settings.hh"
#include "base/machine.hh"
#include "base/schemes.hh"
#include "tool/ask.hh"
#include "tool/exit_status.hh"
#include "tool/json_text.hh"
#include "tool/locate.hh"
#include "tool/text.hh"
#include "tool/verbs.hh"
#include "transport/tls/known_servers.hh"

namespace outboard::tool {
namespace {

using nlohmann::json;

json mount_of(const std::string& here, const std::string& there, bool read_only) {
  json options = {"nosuid", "nodev", "bind"};
  if (read_only) options.push_back("ro");
  return {{"hostPath", here}, {"containerPath", there}, {"options", options}};
}

/// Where loaders look without being told: Debian's place, and that of Red Hat and SUSE. No variable of the
/// image has to change, and nothing has to run in it.
std::vector<std::string> library_places() {
  return {"/usr/lib/" + look_at_machine().architecture + "-linux-gnu", "/usr/lib64"};
}

void add_libraries(json& mounts, const std::string& folder, bool profilers) {
  // Some programs ask for the name without a version. What encrypts is looked for beside the library that
  // needs it.
  constexpr std::array<std::pair<std::string_view, std::string_view>, 8> names{
      {{"libcuda.so.1", "libcuda.so.1"},
       {"libcuda.so.1", "libcuda.so"},
       {"libnvidia-ml.so.1", "libnvidia-ml.so.1"},
       {"libnvidia-ml.so.1", "libnvidia-ml.so"},
       {"libOutboardOpenCL.so.1", "libOutboardOpenCL.so.1"},
       {"outboard-tls.so", "outboard-tls.so"},
       {"libcupti.so.12", "libcupti.so.12"},
       {"libcupti.so.13", "libcupti.so.13"}}};
  const std::vector<std::string> places = library_places();
  for (const auto& [file, name] : names) {
    const std::string path = folder + "/" + std::string(file);
    if (::access(path.c_str(), R_OK) != 0 || (!profilers && file.starts_with("libcupti"))) continue;
    for (const std::string& place : places)
      mounts.push_back(mount_of(path, place + "/" + std::string(name), true));
  }
}

/// OpenCL's loader finds the library by this file, which says its bare name.
void add_icd(json& mounts, const std::string& folder) {
  const std::string path = folder + "/outboard.icd";
  if (::access(path.c_str(), R_OK) == 0)
    mounts.push_back(mount_of(path, "/etc/OpenCL/vendors/outboard.icd", true));
}

/// A server that starts anew makes a new socket: so its folder is given, unless that is everybody's.
void add_socket(json& mounts, const std::string& url) {
  const std::string path(address_of(url));
  const std::string folder = path.substr(0, path.rfind('/'));
  const bool shared = folder.empty() || folder == "/tmp" || folder == "/run" || folder == "/var/run";
  mounts.push_back(mount_of(shared ? path : folder, shared ? path : folder, false));
}

/// A file of this user's that the container's programs read, where the setting names one.
void add_file(json& mounts, json& environment, std::string_view key, const std::string& path) {
  if (path.empty()) return;
  const setting* s = find_setting(key);
  const std::string inside = "/run/outboard-" + std::string(s->name);
  mounts.push_back(mount_of(std::filesystem::absolute(path), inside, true));
  environment.push_back(std::string(s->variable) + "=" + inside);
}

/// The lines of this user's known servers that are about these; in a container nobody would keep them.
std::string lines_of_known(const config& c, const std::vector<std::string>& servers) {
  const std::string& named = c.certificates.known_servers;
  const auto text =
      transport::tls::read_known(named.empty() ? transport::tls::default_known_servers() : named);
  std::string lines;
  if (!text.ok()) return lines;
  for (const std::string& url : servers) {
    const std::string server(address_of(url));
    for (const auto& known : transport::tls::find_known(*text, server))
      lines += transport::tls::line_of_known(server, known.fingerprint) + "\n";
  }
  return lines;
}

/// Beside the description, because an engine of another user could not read the file in a home folder. Empty:
/// nothing is known, or the description goes to the standard output. It is no secret.
std::string known_beside(const std::string& output) {
  return output == "-" ? "" : std::filesystem::path(output).replace_extension(".known_servers").string();
}

/// How many devices the server lends; 0: it does not say.
std::size_t devices_of(const config& c, const std::vector<std::string>& servers) {
  const auto means = prepare_to_ask(c);
  if (!means.ok()) return 0;
  const auto answer = ask_servers(*means, servers, "devices");
  const json list = answer.ok() ? parse(answer->json) : json();
  return list.is_array() ? list.size() : 0;
}

/// `known`: a file with the servers' fingerprints; empty: there is none.
json description(const config& c, const std::string& libraries, const std::vector<std::string>& servers,
                 std::size_t devices, const std::string& known) {
  json mounts = json::array();
  add_libraries(mounts, libraries, c.cupti);
  add_icd(mounts, libraries);
  std::string list;
  for (const std::string& url : servers) {
    list.append(list.empty() ? "" : ",").append(url);
    if (traits_of(url).has_socket_file) add_socket(mounts, url);
  }
  json common = {"OUTBOARD_SERVER=" + list};
  if (c.tls != tls_choice::automatic) common.push_back("OUTBOARD_TLS=" + std::string(name(c.tls)));
  add_file(mounts, common, "token_file", c.token_file);
  add_file(mounts, common, "certificates.client", c.certificates.client);
  add_file(mounts, common, "certificates.client_key", c.certificates.client_key);
  add_file(mounts, common, "certificates.server_authority", c.certificates.server_authority);
  add_file(mounts, common, "certificates.known_servers", known);
  json all = json::array();
  all.push_back({{"name", "all"}, {"containerEdits", {{"env", common}}}});
  for (std::size_t i = 0; i < devices; ++i) {
    json environment = common;
    environment.push_back("CUDA_VISIBLE_DEVICES=" + std::to_string(i));
    all.push_back({{"name", std::to_string(i)}, {"containerEdits", {{"env", environment}}}});
  }
  return {{"cdiVersion", "0.5.0"},
          {"kind", "outboard.dev/gpu"},
          {"containerEdits", {{"mounts", mounts}}},
          {"devices", all}};
}

bool write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  return static_cast<bool>(file << text << std::flush);
}

}  // namespace

int verb_cdi(const common_flags& common, const std::string& action, const std::string& output) {
  if (action != "generate")
    return complain(exit_usage, "there is no \"cdi " + action + "\"; known: outboard cdi generate");
  const auto c = load_with_flags(common);
  if (!c.ok()) return complain_of_configuration(c.error());
  const auto libraries = find_library_folder(common.library);
  if (!libraries.ok()) return complain(exit_failed, libraries.error().message);
  const std::vector<std::string> servers = c->servers.empty() ? std::vector{default_endpoint()} : c->servers;
  // Asked first: a server that proves itself is known from then on.
  const std::size_t devices = devices_of(*c, servers);
  const std::string lines = lines_of_known(*c, servers);
  const std::string known = lines.empty() ? "" : known_beside(output);
  const std::string text = printed_json(description(*c, *libraries, servers, devices, known));
  if (output == "-") return print(text);
  std::error_code problem;
  std::filesystem::create_directories(std::filesystem::path(output).parent_path(), problem);
  if (!write_file(output, text) || (!known.empty() && !write_file(known, lines))) {
    return complain(exit_failed,
                    "cannot write " + output + "; as root it can be, or name another place with --output");
  }
  std::string said = "wrote " + output + ": outboard.dev/gpu=all";
  for (std::size_t i = 0; i < devices; ++i) said += ", outboard.dev/gpu=" + std::to_string(i);
  if (devices == 0) said += " (no server answered, so single devices have no names)";
  return print(said + "\ntry: podman run --rm --device outboard.dev/gpu=all IMAGE PROGRAM\n");
}

}  // namespace outboard::tool
