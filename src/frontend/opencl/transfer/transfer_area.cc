#include "frontend/opencl/transfer/transfer_area.hh"

#include <sys/mman.h>

#include <algorithm>

#include "base/sealed_file.hh"
#include "frontend/opencl/message.hh"

namespace outboard::frontend::opencl {

std::unique_ptr<transfer_area> transfer_area::open(cl_context context, std::uint64_t size,
                                                   std::uint64_t block) {
  if (!link::instance().server() || !link::instance().has_areas() || size > SIZE_MAX / 2) return nullptr;
  std::unique_ptr<transfer_area> made(new transfer_area(context, link::instance().next_number(), size));
  message m(service::open_area);
  marshal::put_body(m.body(), marshal::opencl::area_body{made->number_, id_of(context), size, block});
  unique_fd file;
  if (m.call({}, nullptr, &file) != CL_SUCCESS) return nullptr;
  void* const at = size_of_sealed_file(file.get()).value_or(0) < size
                       ? MAP_FAILED
                       : ::mmap(nullptr, static_cast<std::size_t>(size), PROT_READ | PROT_WRITE, MAP_SHARED,
                                file.get(), 0);
  if (at == MAP_FAILED) return nullptr;
  made->data_ = static_cast<std::byte*>(at);
  return made;
}

transfer_area::~transfer_area() {
  if (data_) ::munmap(data_, static_cast<std::size_t>(size_));
  const at_home here(cell_of(context_));
  lane& own = this_lane();
  const answered how = own.how;  // it is no answer to the call under way
  (void)post_body(service::close_area, marshal::opencl::close_area_body{number_});
  own.how = std::max(how, answered::locally);
}

}  // namespace outboard::frontend::opencl
