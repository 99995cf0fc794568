// What the handlers of shared things have in common. With the session's turn.
#pragma once

#include <fcntl.h>

#include <cstring>

#include "backend/cuda/driver_call.hh"
#include "backend/cuda/session.hh"

namespace outboard::backend {

/// For an offer: which device, so that another session finds it among its own.
inline void name_device(call& c, std::int32_t device, share_about& about) {
  const auto& devices = c.session.facts().devices;
  if (device >= 0 && static_cast<std::size_t>(device) < devices.size())
    std::memcpy(about.device.data(), devices[static_cast<std::size_t>(device)].uuid.data(),
                about.device.size());
}

/// -1: one that is hidden from this session (CUDA_VISIBLE_DEVICES). A driver lends its memory all the same.
inline std::int32_t find_device(call& c, const share_about& about) {
  const auto& devices = c.session.facts().devices;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (std::memcmp(devices[i].uuid.data(), about.device.data(), about.device.size()) == 0)
      return static_cast<std::int32_t>(i);
  }
  return -1;
}

inline std::optional<shared_thing> seek_shared(call& c, share_class what, const marshal::share_token& token) {
  return c.core.broker() ? c.core.broker()->seek(what, token) : std::nullopt;
}

inline std::shared_ptr<const marshal::share_token> offer_shared(call& c, share_class what,
                                                                const share_about& about, int descriptor) {
  return c.core.broker() ? c.core.broker()->offer(what, about, descriptor) : nullptr;
}

/// A descriptor of the memory: the one it came with (`piece`), else the driver's.
inline CUresult export_memory(const api::driver_table& driver, CUmemGenericAllocationHandle memory,
                              const std::shared_ptr<const unique_fd>& piece, unique_fd& out) {
  int exported = piece ? ::fcntl(piece->get(), F_DUPFD_CLOEXEC, 0) : -1;
  const CUresult code = piece ? CUDA_SUCCESS
                              : call_driver(driver.cuMemExportToShareableHandle, &exported, memory,
                                            CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
  if (code == CUDA_SUCCESS && exported < 0) return CUDA_ERROR_OPERATING_SYSTEM;
  return out.reset(exported), code;
}

/// A driver's descriptor, as it takes one.
inline void* as_handle(const unique_fd& fd) {
  return reinterpret_cast<void*>(static_cast<std::intptr_t>(fd.get()));
}

inline void put_token(call& c, const std::shared_ptr<const marshal::share_token>& offer) {
  marshal::put_body(c.reply, marshal::share_reply{offer ? *offer : marshal::share_token{}});
}

/// What an object of the tables is offered under. Its `extra` holds the offer, so both end together.
using kept_offer = std::shared_ptr<const marshal::share_token>;

inline kept_offer offer_of(const server_object& object) {
  return std::static_pointer_cast<const marshal::share_token>(object.extra);
}

inline void keep_offer(server_object& object, const kept_offer& offer) {
  object.extra = std::const_pointer_cast<marshal::share_token>(offer);
}

}  // namespace outboard::backend
