// Chapter logs: the log of failed calls is kept here, where the program's calls are; files are the client's.
// All of it works before cuInit.
#include <fcntl.h>
#include <unistd.h>

#include <cstring>

#include "base/file_bytes.hh"
#include "frontend/cuda/ends.hh"
#include "frontend/cuda/error_log.hh"

namespace outboard::frontend::cuda {
namespace {

/// Flags are not looked at, as drivers do not. False: the iterator is beyond the log.
bool begin(const CUlogIterator* iterator, std::uint32_t& from) {
  from = iterator ? *iterator : 0;
  return from <= error_log::instance().end();
}

}  // namespace

namespace ends {

CUresult cuLogsRegisterCallback(CUlogsCallback callback, void* data, CUlogsCallbackHandle* out) {
  if (!callback) return CUDA_ERROR_INVALID_VALUE;
  const std::uintptr_t handle = error_log::instance().add(callback, data);
  if (out) *out = reinterpret_cast<CUlogsCallbackHandle>(handle);
  return CUDA_SUCCESS;
}

CUresult cuLogsUnregisterCallback(CUlogsCallbackHandle callback) {
  const bool known = error_log::instance().remove(reinterpret_cast<std::uintptr_t>(callback));
  return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuLogsCurrent(CUlogIterator* out, unsigned) {
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  *out = error_log::instance().end();
  return CUDA_SUCCESS;
}

CUresult cuLogsDumpToFile(CUlogIterator* iterator, const char* path, unsigned) {
  std::uint32_t from = 0;
  if (!path || !begin(iterator, from)) return CUDA_ERROR_INVALID_VALUE;
  const int file = ::open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0) return CUDA_ERROR_INVALID_VALUE;
  const bool written = write_whole(file, error_log::instance().text(from));
  if (::close(file) != 0 || !written) return CUDA_ERROR_OPERATING_SYSTEM;
  if (iterator) *iterator = from;
  return CUDA_SUCCESS;
}

CUresult cuLogsDumpToMemory(CUlogIterator* iterator, char* buffer, size_t* size, unsigned) {
  std::uint32_t from = 0;
  if (!size || !buffer) return CUDA_ERROR_INVALID_VALUE;
  const std::size_t room = *size;
  *size = 0;
  if (!begin(iterator, from)) return CUDA_ERROR_INVALID_VALUE;
  const bool any = from < error_log::instance().end();
  const std::string text = error_log::instance().text_within(from, room);
  if (any && text.empty()) return CUDA_ERROR_INVALID_VALUE;
  if (room) std::memcpy(buffer, text.c_str(), text.size() + 1);
  *size = text.size();
  if (iterator) *iterator = from;
  return CUDA_SUCCESS;
}

}  // namespace ends
}  // namespace outboard::frontend::cuda
