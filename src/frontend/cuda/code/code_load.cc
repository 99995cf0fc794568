#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>

#include "base/fd.hh"
#include "base/log.hh"
#include "frontend/cuda/code/code.hh"
#include "frontend/cuda/code/image_recall.hh"

namespace outboard::frontend::cuda {
namespace {

/// Below the largest frame, so that other lanes' requests come in between.
constexpr std::size_t piece = 4 << 20;

bool may_be_for_want_of_an_entry(CUresult code) {
  switch (code) {
    case CUDA_ERROR_INVALID_IMAGE:
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
    case CUDA_ERROR_INVALID_PTX:
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
    case CUDA_ERROR_JIT_COMPILER_NOT_FOUND:
      return true;
    default:
      return false;
  }
}

bool forced_to_ptx() {
  const char* value = std::getenv("CUDA_FORCE_PTX_JIT");
  return value && std::string_view(value) == "1";
}

std::uint64_t reserve_module(const lane& own, bool library) {
  auto info = std::make_unique<module_info>();
  info->is_library = library;
  info->context = library ? 0 : own.context_handle();
  return process::instance()
      .objects()
      .handles(library ? api::handle_kind::library : api::handle_kind::module)
      .reserve(std::move(info));
}

std::shared_ptr<const marshal::kernel_table> contents_of(const marshal::load_reply& reply) {
  auto table = marshal::decode_kernel_table(std::as_bytes(std::span(reply.kernels)));
  if (table) return std::make_shared<const marshal::kernel_table>(std::move(*table));
  log::warn("the server's list of a module's kernels is no list: ", table.error().message);
  return std::make_shared<const marshal::kernel_table>();
}

CUresult load_once(lane& own, const load_order& order, marshal::module_image image,
                   const marshal::image_target& target, std::uint64_t handle) {
  const auto turn = take_upload_turn();
  const recalled_image recalled = recall_image(own, image.encoded(), turn);
  const auto missing = std::span(image.encoded()).subspan(recalled.uploaded);
  if (const CUresult code = upload(own, missing, turn); code != CUDA_SUCCESS) return code;
  marshal::load_body body;
  body.handle = handle;
  body.image_size = image.encoded().size();
  body.capability_major = target.major;
  body.capability_minor = target.minor;
  body.wants_ptx = target.wants_ptx;
  if (order.jit) body.options = order.jit->travelling();
  typed_request r(order.code, own, body);
  const CUresult code = r.call();
  if (r.reply().rest().empty()) return code;  // an error before the driver was asked
  marshal::load_reply reply;
  if (const CUresult whole = r.read(reply); whole != CUDA_SUCCESS) return whole;
  if (order.jit) order.jit->deliver(reply.jit);
  if (code != CUDA_SUCCESS) return code;
  const api::handle_kind kind = order.library ? api::handle_kind::library : api::handle_kind::module;
  auto& made = *static_cast<module_info*>(process::instance().objects().handles(kind).find(handle));
  made.contents = contents_of(reply);
  made.local = std::make_shared<local_code>(std::move(image), target);
  return CUDA_SUCCESS;
}

/// On a GPU libraries try images on purpose that may not fit; on the cpu device the program was compiled
/// without PTX, and its user should hear of it once.
CUresult nothing_chosen(const error& why, const marshal::image_target& target) {
  static std::atomic<bool> told{false};
  if (why.next == action::fall_back && target.wants_ptx && !told.exchange(true, std::memory_order_relaxed)) {
    log::error("an image that the program loads: ", why.message,
               "; compile it with PTX, as nvcc does by default (-gencode arch=compute_80,code=compute_80)");
  } else {
    log::warn("an image that the program loads: ", why.message);
  }
  return why.next == action::fall_back ? CUDA_ERROR_NO_BINARY_FOR_GPU : CUDA_ERROR_INVALID_IMAGE;
}

}  // namespace

/// A library may come to run on any of the devices; a module runs on its context's.
marshal::image_target target_for(const lane& own, bool library) {
  const marshal::snapshot& facts = process::instance().facts();
  const context_state* current = own.current();
  const auto& device = facts.devices[current ? static_cast<std::size_t>(current->device) : 0];
  marshal::image_target target;
  target.major = static_cast<std::uint32_t>(device.compute_major);
  target.minor = static_cast<std::uint32_t>(device.compute_minor);
  target.wants_ptx = facts.device_kind == "cpu" || forced_to_ptx();
  target.whole =
      library && std::ranges::any_of(facts.devices, [&](const marshal::device_facts& other) {
        return other.compute_major != device.compute_major || other.compute_minor != device.compute_minor;
      });
  return target;
}

CUresult read_file(const char* path, std::vector<std::byte>& into) {
  const unique_fd file(::open(path, O_RDONLY | O_CLOEXEC));
  struct stat about {};
  if (!file || ::fstat(file.get(), &about) != 0) return CUDA_ERROR_FILE_NOT_FOUND;
  if (S_ISDIR(about.st_mode)) return CUDA_ERROR_OUT_OF_MEMORY;  // as driver 580 says of a folder
  if (!S_ISREG(about.st_mode)) return CUDA_ERROR_FILE_NOT_FOUND;
  if (static_cast<std::uint64_t>(about.st_size) > marshal::max_image_bytes) return CUDA_ERROR_INVALID_IMAGE;
  into.resize(static_cast<std::size_t>(about.st_size) + 1);  // the NUL
  std::size_t have = 0;
  while (have + 1 < into.size()) {
    const ssize_t n = ::read(file.get(), into.data() + have, into.size() - 1 - have);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return CUDA_ERROR_OPERATING_SYSTEM;
    if (n == 0) break;  // it shrank
    have += static_cast<std::size_t>(n);
  }
  into.resize(have + 1);
  into.back() = std::byte{0};
  return CUDA_SUCCESS;
}

std::unique_lock<std::mutex> take_upload_turn() {
  static constinit std::mutex uploads;
  return process::instance().lane_uploads() ? std::unique_lock<std::mutex>() : std::unique_lock(uploads);
}

CUresult upload(lane& own, std::span<const std::byte> bytes, const std::unique_lock<std::mutex>&) {
  CUresult code = CUDA_SUCCESS;
  for (std::size_t at = 0; at < bytes.size() && code == CUDA_SUCCESS; at += piece) {
    request_of<marshal::service::upload> r(own);
    code = r.post(bytes.subspan(at, std::min(piece, bytes.size() - at)));
  }
  return code;
}

CUresult load_code(lane& own, const load_order& order, const result<marshal::image_view>& image,
                   std::uint64_t& handle) {
  process& p = process::instance();
  if (!image) {
    log::warn("an image that the program loads: ", image.error().message);
    return image.error().next == action::fall_back ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_IMAGE;
  }
  marshal::image_target target = target_for(own, order.library);
  auto chosen = marshal::module_image::select(*image, target);
  if (!chosen) return nothing_chosen(chosen.error(), target);
  const api::handle_kind kind = order.library ? api::handle_kind::library : api::handle_kind::module;
  std::uint64_t made = reserve_module(own, order.library);
  if (!made) return CUDA_ERROR_OUT_OF_MEMORY;
  const bool reduced = chosen->reduced();
  CUresult code = load_once(own, order, std::move(*chosen), target, made);
  if (reduced && may_be_for_want_of_an_entry(code)) {
    target.whole = true;
    if (auto all = marshal::module_image::select(*image, target)) {
      p.objects().handles(kind).release(made);  // the server keeps the first id as that of a failed load
      made = reserve_module(own, order.library);
      if (!made) return CUDA_ERROR_OUT_OF_MEMORY;
      code = load_once(own, order, std::move(*all), target, made);
    }
  }
  if (code == CUDA_SUCCESS) {
    handle = made;
  } else {
    p.objects().handles(kind).release(made);
  }
  return code;
}

}  // namespace outboard::frontend::cuda
