// Loading code into the driver: for a request of the client's, or before the session comes here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "api/cuda/driver_table.hh"
#include "backend/cuda/code/code.hh"
#include "backend/cuda/code/jit_options.hh"
#include "marshal/cuda/bodies.hh"

namespace outboard::backend {

/// A module or library that the driver has just loaded. Who has it has to give it an id, or unload it.
struct fresh_code {
  std::shared_ptr<loaded_code> code;
  void* native = nullptr;             ///< CUmodule or CUlibrary
  std::vector<std::uint8_t> kernels;  ///< marshal::kernel_table; empty: our reader cannot read it
  bool prints = false;                ///< kernels of it may, as far as we know
  bool allocates = false;             ///< the same
};

/// `bytes`: an encoded image. `jit` has its results afterwards, after an error too. A module is loaded in the
/// context that is current. Any thread, without the turn if need be.
CUresult load_code(const api::driver_table& driver, bool library, std::span<const std::byte> bytes,
                   const marshal::load_body& body, jit_arguments& jit, fresh_code& out);

}  // namespace outboard::backend
