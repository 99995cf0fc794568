#include "backend/daemon/admin.hh"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "backend/confinement/confinement.hh"
#include "backend/daemon/device_shape.hh"
#include "base/clean_line.hh"
#include "base/counted.hh"
#include "base/version.hh"
#include "wire/hello.hh"

namespace outboard::backend {
namespace {

using nlohmann::json;

std::string dump(const json& j) { return j.dump(-1, ' ', false, json::error_handler_t::replace); }

std::string utc(std::chrono::system_clock::time_point when) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::chrono::system_clock::to_time_t(when)));
}

/// The most bytes of one text that a list shows. Names are shorter, and a list of eight devices' UUIDs is not
/// much longer. Uncut, and with six bytes of JSON for each control character, a session could make the list
/// 400 KiB longer.
constexpr std::size_t most_listed = 256;

std::string beginning_of(std::string_view text) {
  std::string out(text.substr(0, most_listed));
  if (text.size() > most_listed) {
    // No part of a character stays at the end.
    while (!out.empty() && (static_cast<unsigned char>(text[out.size()]) & 0xc0) == 0x80) out.pop_back();
    out += "...";
  }
  return clean_line(out);
}

json environment_json(const variables& list) {
  json j = json::object();
  for (const auto& [name, value] : list) j[name] = beginning_of(value);
  return j;
}

json device_json(const probed_device& device, std::size_t ordinal) {
  const marshal::device_facts& d = device.snapshot.devices[ordinal];
  return {{"ordinal", ordinal},
          {"name", d.name},
          {"uuid", format_uuid(d.uuid)},
          {"kind", device.kind},
          {"pci_bus_id", d.pci_bus_id},
          {"memory_bytes", d.total_memory},
          {"pageable_memory_access", has_pageable_access(device, ordinal)},
          {"compute_capability", fmt::format("{}.{}", d.compute_major, d.compute_minor)}};
}

/// In the order in which the identity's programs see them.
json seen_devices(const probed_device& device, const identity_terms& terms) {
  json list = json::array();
  const auto& all = device.snapshot.devices;
  if (terms.devices.empty()) {
    for (std::size_t i = 0; i < all.size(); ++i) list.push_back(device_json(device, i));
    return list;
  }
  const auto chosen = choose_devices(terms.devices, uuids_of(device.snapshot));
  if (!chosen.ok()) return list;
  for (const std::size_t place : *chosen) {
    list.push_back(device_json(device, place));
    list.back()["ordinal"] = list.size() - 1;
  }
  return list;
}

/// What the server knows of the asker, and grants.
json you_json(const asker& who, const workers& w) {
  const identity_terms& t = *who.terms;
  const held_memory held = w.held_by(t.name);
  return {{"credential", who.who.name},
          {"identity", t.name},
          {"rights", t.may.text()},
          {"limits", {{"sessions", t.sessions}, {"running", t.running}, {"waiting", t.waiting}}},
          {"memory",
           {{"device_bytes", held.device},
            {"device_limit", t.memory.device},
            {"host_bytes", held.host},
            {"host_limit", t.memory.host}}},
          {"weight", t.weight},
          {"priority", t.priority}};
}

const char* state_of(const session_info& s) {
  if (s.worker == -1) return "waiting";
  if (s.ends_in) return "interrupted";
  return s.serving ? "running" : "starting";
}

json session_json(const session_info& s, const std::string& device) {
  return {{"id", s.id != 0 ? json(s.id) : json()},
          {"state", state_of(s)},
          {"api", s.cuda ? "CUDA" : "OpenCL"},
          // An OpenCL session uses the platforms that it finds, whatever executes CUDA's calls.
          {"device", s.cuda ? json(device) : json()},
          {"identity", s.identity},
          {"credential", s.credential},
          {"user", beginning_of(s.user)},
          {"user_claimed", s.peer_process == -1},
          {"host", beginning_of(s.host)},
          {"program", beginning_of(s.program)},
          {"process", s.client_process},
          {"client", beginning_of(s.client_product)},
          {"from", s.from},
          {"worker", s.worker != -1 ? json(s.worker) : json()},
          {"warm", s.warm},
          {"memory_bytes", s.memory_bytes ? json(*s.memory_bytes) : json()},
          {"host_memory_bytes", s.worker != -1 ? json(s.host_memory_bytes) : json()},
          {"started", utc(s.started)},
          {"seconds", std::chrono::duration<double>(std::chrono::system_clock::now() - s.started).count()},
          {"ends_in_seconds", s.ends_in ? json(*s.ends_in) : json()},
          {"environment", environment_json(s.environment)}};
}

json warm_json(const warm_info& w, bool whole) {
  return {{"worker", w.worker},
          {"ready", w.ready},
          {"context", w.about.context},
          {"context_bytes", w.about.context_bytes},
          {"open_seconds", static_cast<double>(w.about.microseconds) / 1e6},
          {"started", utc(w.started)},
          {"environment", whole ? environment_json(w.environment) : json()}};
}

}  // namespace

std::string devices_json(const probed_device& device, const identity_terms& who) {
  return dump(seen_devices(device, who));
}

std::string devices_json(const probed_device& device) { return devices_json(device, {}); }

std::string sessions_json(const workers& w, const std::string& device, const asker& who) {
  json list = json::array();
  for (const session_info& s : w.list_sessions()) {
    if (who.sees_all() || s.identity == who.identity()) list.push_back(session_json(s, device));
  }
  return dump(list);
}

std::string describe_full(std::uint64_t running, std::uint64_t waiting, std::uint64_t most) {
  return fmt::format("{} {} and {} {}, and limits.sessions allows {} of both together",
                     counted(running, "session"), running == 1 ? "runs" : "run", waiting,
                     waiting == 1 ? "waits" : "wait", most);
}

std::string doctor_json(const daemon_facts& facts, const workers& w, const asker& who) {
  json warm = json::array();
  for (const warm_info& one : w.list_warm()) warm.push_back(warm_json(one, who.sees_all()));
  const pool::counts& counts = w.pool_counts();
  const worker_totals& totals = w.totals();
  return dump({{"product", product},
               {"you", you_json(who, w)},
               {"protocol", {{"lowest", wire::protocol_min}, {"highest", wire::protocol_max}}},
               {"process", ::getpid()},
               {"started", utc(facts.started)},
               {"device",
                {{"kind", facts.device.kind},
                 {"description", facts.device.description},
                 {"driver_version", facts.device.snapshot.driver_version},
                 {"devices", seen_devices(facts.device, *who.terms)}}},
               {"listening", facts.listening},
               {"transports", facts.transports},
               {"token_required", facts.token_required},
               {"tls", facts.tls},
               {"fingerprint", facts.fingerprint},
               {"certificate_warning", facts.certificate_warning},
               {"draining", facts.draining},
               {"confinement",
                {{"cuda", name(facts.confine_cuda)},
                 {"opencl", name(facts.confine)},
                 {"kernel", confinement_here()}}},
               {"sessions",
                {{"running", w.sessions()},
                 {"waiting", w.waiting()},
                 {"total", totals.sessions},
                 {"not_orderly", totals.failed},
                 {"crashed", totals.crashed},
                 {"seconds_total", totals.seconds}}},
               {"limits", {{"sessions", facts.limits.sessions}, {"running", facts.limits.running}}},
               {"connections", {{"waiting", facts.guests}, {"refused", facts.refused}}},
               {"pool",
                {{"per_key", facts.pool.per_key},
                 {"burst", facts.pool.burst},
                 {"idle_minutes", facts.pool.idle_minutes},
                 {"hits", counts.hits},
                 {"misses", counts.misses},
                 {"dropped", counts.dropped},
                 {"warm", warm}}}});
}

}  // namespace outboard::backend
