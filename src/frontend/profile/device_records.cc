#include "frontend/profile/device_records.hh"

#include <utility>

#include "frontend/call_watch.hh"

namespace outboard::frontend {

void device_records::add(marshal::profile_take_reply&& reply, std::int64_t asked, std::int64_t answered) {
  const auto came = static_cast<std::int64_t>(reply.came), left = static_cast<std::int64_t>(reply.left);
  if (left) clock_.note(asked, came, left, answered);
  for (std::string& name : reply.names) names_.push_back(std::move(name));
  waiting_.insert(waiting_.end(), reply.records.begin(), reply.records.end());
  dropped_ = reply.dropped;
}

void device_records::end_fetch() {
  for (const api::work_record& w : waiting_) {
    if (w.end < w.begin) continue;
    const std::string_view name = w.kind == api::work_kind::kernel && w.name < names_.size()
                                      ? std::string_view(names_[w.name])
                                      : std::string_view();
    take_({w, name, clock_.ours(w.begin), clock_.ours(w.end), call_of_request(w.request)});
  }
  waiting_.clear();
}

}  // namespace outboard::frontend
