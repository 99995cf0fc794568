#include "frontend/profile/profile_writer.hh"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "frontend/call_watch.hh"

namespace outboard::frontend {
namespace {

/// What the library answers by itself in less is counted, but not drawn: nine of ten calls are so.
constexpr std::int64_t short_call = 1000;
/// Devices stand below the process that uses them, under numbers that no process has (Linux: below 2^22) and
/// that have 32 bits: Perfetto takes a larger one for 0.
std::int64_t device_group(std::int32_t process, std::uint32_t device) {
  return (std::int64_t{1} << 31) + (std::int64_t{process} << 8) + (device & 0xff);
}

}  // namespace

bool profile_writer::begin(const std::string& file, bool summary, std::int64_t since) {
  const std::lock_guard lock(mutex_);
  began_ = since != 0 ? since : profile_clock::now();
  process_ = ::getpid();
  summarise_ = summary;
  if (!file.empty() && file_.open(file, "profile")) {
    std::string& text = file_.text();
    profile_events::name_group(text, process_, "process " + std::to_string(process_), 0);
    text.front() = '[';  // the only event that no comma stands before
  }
  return file_.is_open() || summarise_;
}

void profile_writer::add_calls(const std::vector<profile_events::call>& calls) {
  const std::lock_guard lock(mutex_);
  if (ended_) return;
  for (profile_events::call c : calls) {
    if (summarise_) summary_.add_call(c.how, c.end - c.begin);
    const bool worth_drawing = c.how != answered::locally || c.end - c.begin >= short_call;
    c.begin -= began_;
    c.end -= began_;
    if (!file_.is_open() || !worth_drawing) continue;
    profile_events::add_call(file_.text(), process_, c);
    file_.flush_some();
  }
}

void profile_writer::add_notes() {
  const std::vector<annotated> all = notes_.take();
  const std::lock_guard lock(mutex_);
  if (ended_) return;
  for (const auto& [thread, name] : notes_.take_threads())
    if (file_.is_open()) profile_events::name_row(file_.text(), process_, thread, name);
  for (const annotated& a : all) write(a);
}

void profile_writer::add_traffic(const traffic& moved) {
  const std::lock_guard lock(mutex_);
  if (!ended_) write_traffic(moved);
}

void profile_writer::note(std::string_view what) {
  const std::lock_guard lock(mutex_);
  if (!ended_ && file_.is_open())
    profile_events::add_note(file_.text(), process_, profile_clock::now() - began_, what);
}

void profile_writer::flush() {
  const std::lock_guard lock(mutex_);
  if (!ended_ && file_.is_open()) file_.flush();
}

void profile_writer::begin_fetch() {
  const std::lock_guard lock(mutex_);
  clock_.begin_look();
}

void profile_writer::add(marshal::profile_take_reply&& reply, std::int64_t asked, std::int64_t answered) {
  const std::lock_guard lock(mutex_);
  if (ended_) return;
  const auto came = static_cast<std::int64_t>(reply.came), left = static_cast<std::int64_t>(reply.left);
  if (left) clock_.note(asked, came, left, answered);
  for (const std::string& name : reply.names) names_.push_back(profile_events::demangled(name));
  records_.insert(records_.end(), reply.records.begin(), reply.records.end());
  dropped_ = reply.dropped;
  if (reply.more) write_records();
}

void profile_writer::end_fetch() {
  const std::lock_guard lock(mutex_);
  if (!ended_) write_records();
}

void profile_writer::end(const traffic& moved) {
  add_notes();
  if (const std::uint64_t lost = notes_.lost())
    note(std::to_string(lost) +
         " of the program's ranges and marks are not here: there were too many at once");
  const std::lock_guard lock(mutex_);
  if (std::exchange(ended_, true)) return;
  write_records();
  if (file_.is_open()) {
    write_traffic(moved);
    file_.text() += "\n]\n";
    file_.close();
  }
  if (!summarise_) return;
  const std::string text =
      summary_.text({profile_clock::now() - began_, moved.sent, moved.received, dropped_}, names_);
  std::fputs(text.c_str(), stderr);
}

/// With the lock, as what follows.
void profile_writer::write_records() {
  for (const api::work_record& w : records_) {
    if (w.end < w.begin) continue;
    write(w);
    if (file_.is_open()) file_.flush_some();
  }
  records_.clear();
}

void profile_writer::write(const annotated& a) {
  if (summarise_ && a.kind != annotation_kind::mark) summary_.add_range(a);
  if (!file_.is_open()) return;
  annotated shown = a;
  shown.begin -= began_;
  shown.end -= began_;
  profile_events::add_annotation(file_.text(), process_, shown);
  file_.flush_some();
}

/// The last title counts where there are several: it says how far the clocks were apart at worst.
void profile_writer::title_device(std::int64_t group, std::uint32_t device) {
  const std::int64_t error_us = (clock_.error() + 999) / 1000;
  std::string name = notes_.device(device);
  const auto [told, fresh] = titles_.try_emplace(group);
  auto& [told_error, told_name] = told->second;
  if (!fresh && told_error >= error_us && told_name == name) return;
  told_error = std::max(told_error, error_us);
  told_name = std::move(name);
  std::string title = "device " + std::to_string(device);
  if (!told_name.empty()) title.append(" (").append(told_name).append(")");
  title +=
      " of process " + std::to_string(process_) + " (clocks agree to " + std::to_string(told_error) + " us)";
  profile_events::name_group(file_.text(), group, title, 1 + static_cast<int>(device));
}

/// The program knows its streams by handles, the device by numbers: a call that left work tells both.
void profile_writer::title_stream(std::int64_t group, std::uint32_t stream, std::uint32_t call) {
  const auto [told, fresh] = rows_.try_emplace({group, stream});
  const std::string name = notes_.streams() ? notes_.stream_of(call) : std::string();
  if (!fresh && (name.empty() || told->second == name)) return;
  told->second = name;
  std::string title = "stream " + std::to_string(stream);
  if (!name.empty()) title.append(": ").append(name);
  profile_events::name_row(file_.text(), group, stream, title);
}

void profile_writer::write(api::work_record w) {
  if (w.name >= names_.size()) w.name = api::work_record::no_name;  // a server may say anything
  const std::int64_t at = clock_.ours(w.begin) - began_;
  if (summarise_) summary_.add_work(w, at);
  if (!file_.is_open()) return;
  const std::int64_t group = device_group(process_, w.device);
  const std::uint32_t call = call_of_request(w.request);
  title_device(group, w.device);
  title_stream(group, w.stream, call);
  const std::string name = w.kind != api::work_kind::kernel      ? profile_events::name_of(w)
                           : w.name == api::work_record::no_name ? std::string("unknown kernel")
                                                                 : names_[w.name];
  profile_events::add_work(file_.text(), group, w, name, at, clock_.ours(w.end) - began_, call);
}

void profile_writer::write_traffic(const traffic& moved) {
  if (!file_.is_open()) return;
  profile_events::add_traffic(file_.text(), process_, profile_clock::now() - began_, moved.sent - told_.sent,
                              moved.received - told_.received);
  told_ = moved;
}

}  // namespace outboard::frontend
