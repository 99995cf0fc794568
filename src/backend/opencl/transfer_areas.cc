#include "backend/opencl/transfer_areas.hh"

#include <algorithm>

#include "backend/opencl/command_wait.hh"
#include "base/machine_memory.hh"
#include "base/pages.hh"

namespace outboard::backend::opencl {

transfer_area::transfer_area(const api::opencl::function_table& table, cl_context context,
                             std::shared_ptr<locked_memory> memory, std::uint64_t block)
    : table_(table),
      context_(context),
      memory_(std::move(memory)),
      block_(block),
      uses_(block ? memory_->size() / block : 0) {}

transfer_area::~transfer_area() {
  for (const use& each : uses_) {
    if (each.done) table_.clReleaseEvent(each.done);
  }
}

void transfer_area::used(std::uint64_t offset, cl_event done, cl_int code) {
  if (block_ == 0 || offset / block_ >= uses_.size()) return;
  if (done) table_.clRetainEvent(done);
  const std::lock_guard lock(mutex_);
  const use before = std::exchange(uses_[offset / block_], {done, code});
  if (before.done) table_.clReleaseEvent(before.done);
}

transfer_area::use transfer_area::last_use(std::uint64_t block) {
  const std::lock_guard lock(mutex_);
  if (block >= uses_.size()) return {nullptr, CL_INVALID_VALUE};
  if (uses_[block].done) table_.clRetainEvent(uses_[block].done);
  return uses_[block];
}

marshal::opencl::busy_blocks_body transfer_area::busy() {
  marshal::opencl::busy_blocks_body blocks;
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < uses_.size(); ++i) {
    auto& [done, code] = uses_[i];
    const std::uint64_t bit = std::uint64_t{1} << i;
    if (done) {
      const cl_int status = status_of(table_, done).value_or(CL_COMPLETE);
      if (status > CL_COMPLETE) {
        blocks.busy |= bit;
        continue;
      }
      table_.clReleaseEvent(std::exchange(done, nullptr));
      if (status < 0) code = CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;  // as a wait for it would return
    }
    if (code != CL_SUCCESS) blocks.failed |= bit;
  }
  return blocks;
}

std::optional<int> transfer_areas::open(const marshal::opencl::area_body& wanted, cl_context context,
                                        cl_int& code) {
  code = CL_OUT_OF_RESOURCES;
  {
    const std::lock_guard lock(mutex_);
    if (areas_.contains(wanted.number)) return code = CL_INVALID_VALUE, std::nullopt;
    if (wanted.size > quarter_of_memory() - std::min(total_, quarter_of_memory())) return std::nullopt;
  }
  std::shared_ptr<void> counted;
  if (ledger_ && !(counted = ledger_->take_of_machine(page_up(wanted.size)))) return std::nullopt;
  auto memory = locked_memory::make(table_, context, wanted.size, std::move(counted));
  if (!memory) return std::nullopt;
  const int file = memory->file();
  const std::lock_guard lock(mutex_);
  total_ += memory->size();
  areas_[wanted.number] = std::make_shared<transfer_area>(table_, context, std::move(memory), wanted.block);
  code = CL_SUCCESS;
  return file;
}

bool transfer_areas::close(std::uint64_t number) {
  std::shared_ptr<transfer_area> gone;  // destroyed without the lock
  const std::lock_guard lock(mutex_);
  const auto found = areas_.extract(number);
  if (found.empty()) return false;
  gone = found.mapped();
  total_ -= gone->memory().size();
  return true;
}

void transfer_areas::close_all_of(cl_context context) {
  std::vector<std::shared_ptr<transfer_area>> gone;
  const std::lock_guard lock(mutex_);
  std::erase_if(areas_, [&](const auto& each) {
    if (each.second->context() != context) return false;
    total_ -= each.second->memory().size();
    gone.push_back(each.second);
    return true;
  });
}

std::shared_ptr<transfer_area> transfer_areas::find(std::uint64_t number) const {
  const std::lock_guard lock(mutex_);
  const auto found = areas_.find(number);
  return found == areas_.end() ? nullptr : found->second;
}

std::optional<host_bytes> bytes_in(std::shared_ptr<transfer_area> area, std::uint64_t offset,
                                   std::uint64_t size) {
  if (!area || size > area->memory().size() || offset > area->memory().size() - size) return std::nullopt;
  std::byte* const data = area->memory().data() + offset;
  return host_bytes{data, size, std::move(area)};
}

}  // namespace outboard::backend::opencl
