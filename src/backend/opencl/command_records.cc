#include "backend/opencl/command_records.hh"

#include <utility>

#include "backend/opencl/questions.hh"
#include "backend/opencl/short_wait.hh"
#include "base/steady.hh"

namespace outboard::backend::opencl {
namespace {

/// That wait for somebody who takes them, and that one reply has.
constexpr std::size_t most_under_way = std::size_t{1} << 18, most_taken = 4096;
/// That are passed by, one question after the other, before a look ends: the rest is younger.
constexpr std::size_t most_waiting = 1024;

template <class Map, class Key>
std::uint32_t numbered(Map& all, const Key& key, std::uint32_t first) {
  return all.try_emplace(key, first + static_cast<std::uint32_t>(all.size())).first->second;
}

}  // namespace

std::uint64_t command_records::now() { return static_cast<std::uint64_t>(steady_nanoseconds()); }

void command_records::add(cl_device_id device) {
  const std::lock_guard lock(mutex_);
  (void)numbered(devices_, device, 0);
}

void command_records::forget(cl_command_queue queue) {
  const std::lock_guard lock(mutex_);
  queues_.erase(queue);
}

/// With the lock.
command_records::place command_records::place_of(cl_command_queue queue) {
  const auto [found, fresh] = queues_.try_emplace(queue);
  if (!fresh) return found->second;
  const auto of_queue = [&]<class T>(cl_command_queue_info name, T) {
    return value_of<T>([&](std::size_t size, void* to, std::size_t* wanted) {
             return table_.clGetCommandQueueInfo(queue, name, size, to, wanted);
           })
        .value_or(nullptr);
  };
  const cl_device_id device = of_queue(CL_QUEUE_DEVICE, cl_device_id{});
  const cl_context context = of_queue(CL_QUEUE_CONTEXT, cl_context{});
  return found->second = {numbered(devices_, device, 0), numbered(contexts_, context, 1), ++queues_seen_};
}

/// With the lock.
std::uint32_t command_records::number_of(std::string_view kernel) {
  const auto found = names_.find(kernel);
  if (found != names_.end()) return found->second;
  untold_.emplace_back(kernel);
  return names_.emplace(kernel, static_cast<std::uint32_t>(names_.size())).first->second;
}

void command_records::given(std::uint64_t since, cl_command_queue queue, cl_event done, api::work_record what,
                            std::string_view kernel) {
  if (since == 0 || !done) return;
  const std::uint64_t after = now();
  const std::lock_guard lock(mutex_);
  if (under_way_.size() >= most_under_way) return void(++dropped_);
  const place where = place_of(queue);
  what.device = where.device, what.context = where.context, what.stream = where.stream;
  if (what.kind == api::work_kind::kernel) what.name = number_of(kernel);
  table_.clRetainEvent(done);
  under_way_.push_back({done, what, since, after});
}

/// Those that are over; the others stay for the next time. `all`: however many of those stand before them.
std::vector<command_records::command> command_records::over(bool all) {
  std::deque<command> asked;
  {
    const std::lock_guard lock(mutex_);
    asked.swap(under_way_);
  }
  // Without the lock: who gives commands does not wait for as many questions.
  std::vector<command> found;
  std::size_t waiting = 0;
  std::erase_if(asked, [&](const command& one) {
    if (found.size() == most_taken || (!all && waiting == most_waiting)) return false;
    if (!is_over(table_, one.done)) return ++waiting, false;
    return found.push_back(one), true;
  });
  const std::lock_guard lock(mutex_);
  under_way_.insert(under_way_.begin(), asked.begin(), asked.end());
  return found;
}

/// False: it was not carried out, or its queue has no profiling.
bool command_records::time(command& one) {
  const auto ask = [&](cl_profiling_info name, std::uint64_t& to) {
    cl_ulong time = 0;
    const cl_int code = table_.clGetEventProfilingInfo(one.done, name, sizeof time, &time, nullptr);
    to = time;
    return code == CL_SUCCESS;
  };
  return ask(CL_PROFILING_COMMAND_START, one.what.begin) && ask(CL_PROFILING_COMMAND_END, one.what.end) &&
         ask(CL_PROFILING_COMMAND_QUEUED, one.queued) && one.queued != 0;
}

device::recorded_work command_records::take(bool all) {
  const std::lock_guard one_at_a_time(taking_);
  device::recorded_work taken;
  std::vector<command> timed;
  std::uint64_t lost = 0;
  const std::vector<command> finished = over(all);
  for (command one : finished) {
    if (time(one)) {
      clocks_[one.what.device].note(one.queued, one.before, one.after);
      timed.push_back(one);
    } else if (status_of(table_, one.done) == CL_COMPLETE) {
      ++lost;
    }
    table_.clReleaseEvent(one.done);
  }
  // All of them have said by now how the clocks stand.
  for (command& one : timed) {
    const event_clock& clock = clocks_[one.what.device];
    one.what.begin = clock.ours(one.what.begin);
    one.what.end = clock.ours(one.what.end);
    taken.records.push_back(one.what);
  }
  const std::lock_guard lock(mutex_);
  dropped_ += lost;
  taken.names = std::exchange(untold_, {});
  taken.dropped = dropped_ + (all ? under_way_.size() : 0);
  taken.more = finished.size() == most_taken;
  return taken;
}

void command_records::drop() {
  stop();
  const std::scoped_lock locks(taking_, mutex_);
  for (const command& one : std::exchange(under_way_, {})) table_.clReleaseEvent(one.done);
}

}  // namespace outboard::backend::opencl
