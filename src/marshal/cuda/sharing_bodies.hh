// Bodies of requests about what sessions share with each other: memory, events, pools. What is shared is
// named by a token that the daemon mints; native handles and descriptors never reach a client. Values.
#pragma once

#include "marshal/cuda/bodies.hh"

namespace outboard::marshal {

/// Names one shared thing. Random, so knowing it is the right to it (among sessions of one identity).
using share_token = std::array<std::uint8_t, 32>;

/// cuIpcGetMemHandle: a block of the program's, inside one mapping of the window. cuMemPoolExportPointer
/// (size 0).
struct share_block_body {
  std::uint64_t address = 0, size = 0;
  OUTBOARD_FIELDS(address, size)
};

struct share_reply {
  share_token token{};
  OUTBOARD_FIELDS(token)
};

/// cuIpcOpenMemHandle_v2: with address 0 asks how much room the memory needs, then maps it there.
struct share_open_body {
  share_token token{};
  std::uint64_t address = 0;
  OUTBOARD_FIELDS(token, address)
};

/// The block lies at `offset` of `mapped` bytes; `device` is -1 where the session does not see it; `own`:
/// this session's own memory.
struct share_open_reply {
  std::uint64_t mapped = 0, offset = 0, size = 0;
  std::int32_t device = -1;
  bool own = false;
  OUTBOARD_FIELDS(mapped, offset, size, device, own)
};

/// cuMemImportFromShareableHandle, cuMemPoolImportFromShareableHandle, cuIpcOpenEventHandle: a new handle for
/// what the token names.
struct share_import_body {
  std::uint64_t handle = 0;
  share_token token{};
  OUTBOARD_FIELDS(handle, token)
};

/// cuMemPoolImportPointer; `address` is a record's wish.
struct share_pointer_body {
  std::uint64_t pool = 0, address = 0;
  share_token token{};
  OUTBOARD_FIELDS(pool, address, token)
};

struct share_pointer_reply {
  std::uint64_t address = 0, size = 0;
  OUTBOARD_FIELDS(address, size)
};

/// cuMemRelease; `keep`: descriptors that the program has exported are open somewhere, and hold the memory
/// until share_forget.
struct release_body {
  std::uint64_t handle = 0;
  bool keep = false;
  OUTBOARD_FIELDS(handle, keep)
};

/// cuCtxEnablePeerAccess, cuCtxDisablePeerAccess.
struct peer_body {
  std::uint64_t context = 0;
  std::int32_t device = 0;  ///< of that context
  std::uint32_t flags = 0;
  OUTBOARD_FIELDS(context, device, flags)
};

/// All of cuMulticast*. Create: handle, size, devices, types; AddDevice: handle, device; BindMem: memory is a
/// handle; BindAddr: an address; Unbind: device, offset, size.
struct multicast_body {
  std::uint64_t handle = 0, size = 0, offset = 0, memory = 0, memory_offset = 0, flags = 0;
  std::int32_t device = 0;
  std::uint32_t devices = 0, handle_types = 0, option = 0;
  OUTBOARD_FIELDS(handle, size, offset, memory, memory_offset, flags, device, devices, handle_types, option)
};

}  // namespace outboard::marshal
