#include "opencl_world.hh"

#include <sys/mman.h>

#include <algorithm>

#include "base/check.hh"

namespace outboard::fuzz {
namespace {

std::mutex one_at_a_time;
thread_local bool in_callback = false;
constexpr std::uint64_t shared_base = 0x3000'0000'0000, shared_step = 16u << 20;

/// A call from within one of the platform's callbacks would deadlock.
template <class Tell>
void call_back(Tell&& tell) {
  in_callback = true;
  tell();
  in_callback = false;
}

bool is_over(const event& e) { return e.status <= CL_COMPLETE; }

bool step(queue& q) {
  const bool any_order = (q.bits & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE) != 0;
  for (std::size_t i = 0; i < q.waiting.size() && (any_order || i == 0); ++i) {
    command& c = q.waiting[i];
    if (!std::ranges::all_of(c.waits, [](const auto& each) { return is_over(*each); })) continue;
    const bool failed = std::ranges::any_of(c.waits, [](const auto& each) { return each->status < 0; });
    command now = std::move(c);
    q.waiting.erase(q.waiting.begin() + static_cast<std::ptrdiff_t>(i));
    if (!failed) now.work();
    reach(*now.done, failed ? CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST : CL_COMPLETE);
    return true;
  }
  return false;
}

}  // namespace

world& all() {
  static world* const the_one = new world;
  return *the_one;
}

inside::inside() {
  CHECK(!in_callback);
  one_at_a_time.lock();
}
inside::~inside() { one_at_a_time.unlock(); }

std::shared_ptr<thing> living(const void* at, kind k) {
  const auto found = all().all.find(const_cast<void*>(at));
  CHECK(found != all().all.end());
  CHECK(found->second->what == k);
  return found->second;
}

cl_int drop(void* at, kind k) {
  const auto it = living(at, k);
  if (--it->references == 0) all().all.erase(at);
  return CL_SUCCESS;
}

memory::~memory() {
  if (own) all().total -= size;
  for (const callback& each : at_end)
    call_back([&] { each.tell(reinterpret_cast<cl_mem>(this), each.data); });
}

event::~event() { reach(*this, -1); }

void must_be_shared(std::uint64_t address, std::size_t size) {
  const auto after = all().shared.upper_bound(address);
  CHECK(after != all().shared.begin());
  const auto& [base, length] = *std::prev(after);
  CHECK(address - base < length && size <= length - (address - base));
}

void touch(const void* at, std::size_t size) {
  const auto* const bytes = static_cast<const volatile std::byte*>(at);
  for (std::size_t i = 0; i < size; ++i) (void)bytes[i];
}

void change(void* at, std::size_t size, std::byte with) {
  auto* const bytes = static_cast<volatile std::byte*>(at);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = with;
}

void reach(event& of, cl_int status) {
  of.status = status;
  for (const event::callback& each : of.callbacks)
    call_back([&] { each.tell(reinterpret_cast<cl_event>(&of), std::min(status, each.at), each.data); });
  of.callbacks.clear();
}

cl_int give(cl_command_queue to, cl_uint count, const cl_event* waits, cl_event* wanted,
            std::function<void()> work) {
  if (!to) return CL_INVALID_COMMAND_QUEUE;
  if ((count != 0) != (waits != nullptr)) return CL_INVALID_EVENT_WAIT_LIST;
  const auto q = the<queue>(to);
  command c;
  for (cl_uint i = 0; i < count; ++i) {
    if (!waits[i]) return CL_INVALID_EVENT_WAIT_LIST;
    c.waits.push_back(the<event>(waits[i]));
  }
  c.work = std::move(work);
  c.done = std::make_shared<event>();
  c.done->in = to;
  if (wanted) *wanted = add<cl_event>(c.done);
  q->waiting.push_back(std::move(c));
  return CL_SUCCESS;
}

void carry_out(bool patient) {
  for (int tries = 0; tries < 2; ++tries) {
    std::vector<std::shared_ptr<queue>> queues;
    for (const auto& [at, each] : all().all) {
      if (each->what == kind::queue) queues.push_back(std::static_pointer_cast<queue>(each));
    }
    for (bool more = true; more;) {
      more = false;
      for (const auto& each : queues) more = step(*each) || more;
    }
    if (!patient) return;
    std::vector<std::shared_ptr<event>> unset;
    for (const auto& [at, each] : all().all) {
      const auto e = each->what == kind::event ? std::static_pointer_cast<event>(each) : nullptr;
      if (e && !e->in && !is_over(*e)) unset.push_back(e);
    }
    for (const auto& each : unset) reach(*each, -1);
  }
}

void finish_all() {
  const inside here;
  carry_out(true);
}

std::uint64_t shared_address(std::uint64_t n) { return shared_base + n * shared_step; }

void begin_anew() {
  const inside here;
  world& w = all();
  auto gone = std::exchange(w.all, {});
  gone.clear();
  for (const auto& [address, size] : w.shared_once) ::munmap(reinterpret_cast<void*>(address), size);
  w.shared.clear();
  w.shared_once.clear();
  w.the_platform = std::make_shared<platform>();
  w.the_device = std::make_shared<device>();
  add<cl_platform_id>(w.the_platform);
  add<cl_device_id>(w.the_device);
}

}  // namespace outboard::fuzz
