#include "frontend/opencl/memory_claim.hh"

#include <algorithm>
#include <utility>

#include "frontend/opencl/kinds.hh"
#include "frontend/opencl/message.hh"

namespace outboard::frontend::opencl {
namespace {

/// Whole devices of the context that have a limit, each once.
std::vector<device_info*> limited(const context_info& context) {
  std::vector<device_info*> list;
  for (const cl_device_id each : context.devices) {
    auto* info = find<device_info>(each);
    while (info->parent.get()) info = find<device_info>(info->parent.get());
    if (info->memory_limit && std::ranges::find(list, info) == list.end()) list.push_back(info);
  }
  return list;
}

bool beyond(const std::vector<device_info*>& on, std::uint64_t more) {
  return std::ranges::any_of(on, [more](const device_info* each) {
    const std::uint64_t held = each->held.load(std::memory_order_relaxed);
    return more > each->memory_limit || held > each->memory_limit - more;
  });
}

/// How much of what was released is in use still, after a while in which it might have come back.
void ask(const context_info& context, std::uint64_t wanted, peer& home) {
  marshal::opencl::settle_body body;
  for (const cl_device_id each : context.devices) body.devices.push_back(id_of(each));
  body.wanted = wanted;
  message m(service::settle_memory);
  marshal::put_body(m.body(), body);
  if (m.call() != CL_SUCCESS) return;
  wire::reader reply = m.reply();
  const auto left = marshal::take_body<marshal::opencl::settle_reply>(reply);
  if (!reply.finished()) return (void)m.malformed();
  home.dying.store(left.dying, std::memory_order_relaxed);
}

}  // namespace

memory_claim::memory_claim(memory_claim&& other) noexcept
    : on_(std::exchange(other.on_, {})),
      bytes_(std::exchange(other.bytes_, 0)),
      home_(std::exchange(other.home_, nullptr)) {}

memory_claim& memory_claim::operator=(memory_claim&& other) noexcept {
  std::swap(on_, other.on_);
  std::swap(bytes_, other.bytes_);
  std::swap(home_, other.home_);
  return *this;
}

memory_claim::~memory_claim() {
  if (on_.empty()) return;
  home_->dying.fetch_add(bytes_, std::memory_order_relaxed);
  for (device_info* each : on_) each->held.fetch_sub(bytes_, std::memory_order_relaxed);
}

memory_claim memory_claim::of_made(const context_info& context, std::uint64_t bytes) {
  memory_claim made;
  peer* const home = home_of_call();
  if (bytes == 0 || !home) return made;
  made.on_ = limited(context);
  made.bytes_ = bytes;
  made.home_ = home;
  for (device_info* each : made.on_) each->held.fetch_add(bytes, std::memory_order_relaxed);
  return made;
}

void memory_claim::make_room(const context_info& context, std::uint64_t bytes, std::uint64_t uncounted) {
  peer* const home = home_of_call();
  const auto on = limited(context);
  if (on.empty() || !home) return;
  const std::uint64_t dying = home->dying.load(std::memory_order_relaxed);
  if (dying != 0 && beyond(on, uncounted + dying)) ask(context, bytes, *home);
}

void memory_claim::cancel() {
  for (device_info* each : on_) each->held.fetch_sub(bytes_, std::memory_order_relaxed);
  on_.clear();
}

cl_int memory_claim::take(const context_info& context, std::uint64_t bytes, memory_claim& claim) {
  for (const device_info* each : limited(context)) {
    if (bytes > each->memory_limit) return CL_MEM_OBJECT_ALLOCATION_FAILURE;
  }
  // First counted, then looked at: two threads cannot both get what is left.
  memory_claim made = of_made(context, bytes);
  if (made.on_.empty()) return CL_SUCCESS;
  if (!beyond(made.on_, 0)) make_room(context, bytes, 0);
  if (beyond(made.on_, made.home_->dying.load(std::memory_order_relaxed)))
    return made.cancel(), CL_MEM_OBJECT_ALLOCATION_FAILURE;
  claim = std::move(made);
  return CL_SUCCESS;
}

}  // namespace outboard::frontend::opencl
