#include "backend/daemon/admin.hh"

#include <charconv>
#include <nlohmann/json.hpp>

#include "backend/confinement/confinement.hh"
#include "backend/daemon/session_fields.hh"
#include "base/clean_line.hh"
#include "base/icd_files.hh"
#include "base/machine.hh"
#include "base/utc_text.hh"
#include "base/version.hh"
#include "wire/hello.hh"

namespace outboard::backend {
namespace {

using nlohmann::json;

std::string dump(const json& j) { return j.dump(-1, ' ', false, json::error_handler_t::replace); }

std::string utc(std::chrono::system_clock::time_point when) {
  return utc_text(std::chrono::system_clock::to_time_t(when), "%Y-%m-%dT%H:%M:%SZ");
}

/// A text of a client's choice: lists show its beginning, and nothing that JSON writes with six bytes for
/// one.
std::string shown(const std::string& text) {
  constexpr std::size_t most = 256;
  return clean_line(text.size() <= most ? text : text.substr(0, most) + "...");
}

json environment_json(const variables& list) {
  json j = json::object();
  for (const auto& [name, value] : list) j[name] = shown(value);
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
          {"compute_capability", std::to_string(d.compute_major) + "." + std::to_string(d.compute_minor)}};
}

double seconds_since(std::chrono::system_clock::time_point when) {
  return std::chrono::duration<double>(std::chrono::system_clock::now() - when).count();
}

/// For who measures what the way here costs.
json machine_json() {
  const machine_facts m = look_at_machine();
  return {{"host", m.host}, {"cpu", m.cpu}, {"cores", m.cores}, {"kernel", m.kernel}, {"load", m.load}};
}

json client_json(const std::vector<log::field>& fields) {
  json j = json::object();
  for (const auto& [name, value] : fields) {
    const auto* text = std::get_if<std::string>(&value);
    std::visit([&, to = std::string(name)](const auto& v) { j[to] = v; }, value);
    if (text) j[std::string(name)] = shown(*text);
  }
  return j;
}

/// One that waits for a place: it has no number yet, and no worker.
json waiting_json(const waiting_line::one& w, std::size_t before, const seats& places) {
  json j = client_json(client_fields(w.session));
  const share& has = *w.session.has;
  const bool own_limit = has.sessions && places.held_by(has.account).running >= *has.sessions;
  j.update({{"id", json()},
            {"state", "waiting"},
            {"waits_behind", before},
            {"waits_for", own_limit ? "its own" : "a place"},
            {"identity", shown(has.name())},
            {"worker", json()},
            {"memory_bytes", json()},
            {"started", utc(w.since)},
            {"seconds", seconds_since(w.since)}});
  return j;
}

const char* state_of(const session_info& s) {
  if (s.ends_in) return "interrupted";
  return s.serving ? "running" : "starting";
}

json session_json(const session_info& s) {
  json j = client_json(client_fields(s));
  j.update({{"id", s.id},
            {"state", state_of(s)},
            {"ends_in_seconds", s.ends_in ? json(*s.ends_in) : json()},
            {"identity", shown(s.has->name())},
            {"worker", s.worker},
            {"warm", s.warm},
            {"memory_bytes", s.memory_bytes ? json(*s.memory_bytes) : json()},
            {"host_memory_bytes", s.host_memory ? json(s.host_memory->memory) : json()},
            {"host_memory_limit", s.host_memory && s.host_memory->most ? json(*s.host_memory->most) : json()},
            {"started", utc(s.started)},
            {"seconds", seconds_since(s.started)},
            {"environment", environment_json(s.environment)}});
  return j;
}

json warm_json(const warm_info& w) {
  return {{"worker", w.worker},
          {"ready", w.ready},
          {"context", w.about.context},
          {"context_bytes", w.about.context_bytes},
          {"open_seconds", static_cast<double>(w.about.microseconds) / 1e6},
          {"started", utc(w.started)},
          {"environment", environment_json(w.environment)}};
}

/// The share of who asks.
json identity_json(const daemon_facts& facts, const workers& w) {
  const share& has = facts.has;
  const seats::held held = w.places().held_by(has.account);
  const status may_run = check_right(shown(facts.asker), has, right::run);
  return {{"person", shown(facts.asker)},
          {"name", shown(has.name())},
          {"rights", rights_text(has.may)},
          {"running", held.running},
          {"waiting", held.waiting},
          {"sessions_limit", has.sessions ? json(*has.sessions) : json()},
          {"waiting_limit", has.waiting ? json(*has.waiting) : json()},
          {"device_memory_limit", has.device_memory ? json(*has.device_memory) : json()},
          {"device_memory_held", w.memory_of(has.account)},
          {"host_memory_limit", has.host_memory ? json(*has.host_memory) : json()},
          {"cpu_weight", has.cpu_weight ? json(*has.cpu_weight) : json()},
          {"devices", has.devices ? json(*has.devices) : json()},
          {"shares_places", facts.several},
          {"refusal", may_run.ok() ? w.refusal_of(has) : may_run.error().message}};
}

json json_of(const opencl_offer& opencl) {
  return {{"platforms", opencl.platforms},
          {"confine", opencl.confine},
          {"lacks", opencl.lacks},
          {"served", opencl.served}};
}

json json_of(cgroup_choice choice, const group_choice& groups) {
  return {{"choice", name(choice)},
          {"below", groups.own ? json(groups.own->name) : json()},
          {"lacks", groups.why_not}};
}

}  // namespace

opencl_offer look_at_opencl(confine_choice confine, const variable_source& own_environment) {
  opencl_offer offer;
  offer.confine = name(confine);
  offer.lacks = confinement_lacks();
  for (auto& [file, library] : icd_files(own_environment("OCL_ICD_VENDORS")))
    offer.platforms.push_back(std::move(library));
  offer.served = can_be_served(confine, {.device = "", .cuda = false});
  return offer;
}

confinement_state look_at_confinement(const config& c, const probed_device& device) {
  confinement_state state{.confine = std::string(name(c.confine)),
                          .has = "",
                          .lacks = "",
                          .reads = c.confined_reads,
                          .writes = c.confined_writes,
                          .reaches_all_memory = reaches_all_memory(device.snapshot)};
  if (c.confine == confine_choice::off) return state;
  state.has = confinement_has();
  state.lacks = confinement_lacks();
  state.served =
      can_be_served(c.confine, {.device = device.kind, .reaches_all_memory = state.reaches_all_memory});
  return state;
}

std::string opencl_json(const opencl_offer& opencl) { return dump(json_of(opencl)); }

std::string devices_json(const probed_device& device) {
  json list = json::array();
  for (std::size_t i = 0; i < device.snapshot.devices.size(); ++i) list.push_back(device_json(device, i));
  return dump(list);
}

std::string devices_json(const probed_device& device, const share& has) {
  if (!has.devices && !has.device_memory) return devices_json(device);
  json list = json::array();
  const std::vector<std::string> lent = uuids_of(device.snapshot);
  for (const std::string& uuid : has.devices ? *has.devices : lent) {
    for (std::size_t i = 0; i < lent.size(); ++i) {
      if (lent[i] != uuid) continue;
      list.push_back(device_json(device, i));
      list.back()["ordinal"] = list.size() - 1;
      const std::uint64_t all = device.snapshot.devices[i].total_memory;
      list.back()["memory_bytes"] = has.device_memory ? std::min(all, *has.device_memory) : all;
    }
  }
  return dump(list);
}

std::string reread_json(const config& read, const std::vector<std::string>& later) {
  return dump({{"files", read.sources}, {"identities", read.identities.size()}, {"next_start", later}});
}

std::optional<replace_question> decode_replace_question(const std::string& question) {
  constexpr std::string_view word = "replace ";
  constexpr std::uint64_t longest = 60'000;
  if (!question.starts_with(word)) return std::nullopt;
  replace_question asked;
  const char* const end = question.data() + question.size();
  const auto number = std::from_chars(question.data() + word.size(), end, asked.session);
  if (number.ec != std::errc()) return std::nullopt;
  if (number.ptr == end) return asked;
  std::uint64_t milliseconds = 0;
  if (*number.ptr != ' ') return std::nullopt;
  const auto time = std::from_chars(number.ptr + 1, end, milliseconds);
  if (time.ec != std::errc() || time.ptr != end || milliseconds > longest) return std::nullopt;
  asked.patience = std::chrono::milliseconds(milliseconds);
  return asked;
}

std::string replace_json(workers& w, const replace_question& asked) {
  const status begun = asked.patience ? w.replace(asked.session, *asked.patience) : status();
  if (!begun.ok()) return problem_json(begun.error().message);
  const replacement* const about = w.replacement_of(asked.session);
  if (!about) return problem_json("its worker was not to be replaced, or it has ended");
  using enum replacement::state;
  return dump({{"state", about->step == done     ? "done"
                         : about->step == failed ? "failed"
                                                 : "under way"},
               {"seconds", std::chrono::duration<double>(about->took).count()},
               {"why", about->why}});
}

std::string problem_json(const std::string& why) { return dump({{"problem", why}}); }

std::string sessions_json(const workers& w, const std::string& only_of) {
  const auto is_shown = [&](const std::string& identity) { return only_of.empty() || identity == only_of; };
  json list = json::array();
  for (const session_info& s : w.list_sessions()) {
    if (is_shown(s.identity)) list.push_back(session_json(s));
  }
  std::size_t before = 0;
  for (const waiting_line::one& one : w.waiting_sessions().all()) {
    if (is_shown(one.session.identity)) list.push_back(waiting_json(one, before, w.places()));
    ++before;
  }
  return dump(list);
}

std::string doctor_json(const daemon_facts& facts, const workers& w) {
  json warm = json::array();
  for (const warm_info& one : w.list_warm()) warm.push_back(warm_json(one));
  json devices = json::array();
  for (std::size_t i = 0; i < facts.device.snapshot.devices.size(); ++i)
    devices.push_back(device_json(facts.device, i));
  const pool::counts& counts = w.pool_counts();
  const worker_totals& totals = w.totals();
  return dump({{"product", product},
               {"protocol", {{"lowest", wire::protocol_min}, {"highest", wire::protocol_max}}},
               {"machine", machine_json()},
               {"process", ::getpid()},
               {"started", utc(facts.started)},
               {"device",
                {{"kind", facts.device.kind},
                 {"description", facts.device.description},
                 {"driver_version", facts.device.snapshot.driver_version},
                 {"no_profiles", facts.device.no_profiles},
                 {"devices", devices}}},
               {"opencl", json_of(facts.opencl)},
               {"confinement",
                {{"confine", facts.workers.confine},
                 {"has", facts.workers.has},
                 {"lacks", facts.workers.lacks},
                 {"served", facts.workers.served},
                 {"reaches_all_memory", facts.workers.reaches_all_memory},
                 {"reads", facts.workers.reads},
                 {"writes", facts.workers.writes}}},
               {"cgroup", json_of(facts.cgroup, facts.groups)},
               {"listening", facts.listening},
               {"transports", facts.transports},
               {"token_required", facts.token_required},
               {"munge", facts.munge},
               {"tls", facts.tls},
               {"fingerprint", facts.fingerprint},
               {"certificate_warning", facts.certificate_warning},
               {"audit",
                {{"on", !facts.audit_file.empty()},
                 {"file", allows(facts.has.may, right::administer) ? json(facts.audit_file) : json()}}},
               {"draining", facts.draining},
               {"sessions",
                {{"running", w.sessions()},
                 {"waiting", w.waiting()},
                 {"limit", w.most_sessions()},
                 {"total", totals.sessions},
                 {"not_orderly", totals.failed},
                 {"crashed", totals.crashed},
                 {"seconds_total", totals.seconds}}},
               {"identity", identity_json(facts, w)},
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
