// OpenCL's objects as programs see them: cells whose first word is the dispatch table through which the ICD
// loader calls. A cell is never given back to the system, so that a pointer to a released object can be
// recognised without a fault. The object behind it ends when the program has released it and no other object
// needs it. Reference counts are ours alone: the server hears only of the last release. Any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "api/opencl/functions.hh"
#include "frontend/handle_table.hh"
#include "frontend/opencl/home.hh"

namespace outboard::frontend::opencl {

using api::handle_kind;

struct cell {
  const cl_icd_dispatch* dispatch = nullptr;         ///< first: read by the loader
  std::atomic<handle_kind> kind{handle_kind::none};  ///< none: free
  std::atomic<std::uint32_t> references{0};          ///< the program's
  std::atomic<std::uint32_t> holds{0};  ///< of objects that need it, and one for all of the program's
  std::uint64_t id = 0;                 ///< by which its back-end knows it
  peer* home = nullptr;                 ///< that back-end
  object* info = nullptr;               ///< owned by the handle table
};

template <class H>
cell* cell_of(H handle) {
  return reinterpret_cast<cell*>(handle);
}

/// A fresh object of the call's back-end with one reference of the program; nullptr: there are too many.
cell* make(handle_kind kind, std::unique_ptr<object> info);
/// The same for objects that the server has named already (platforms, devices).
cell* make_named(handle_kind kind, std::uint64_t id, std::unique_ptr<object> info);

/// A function of an extension by its name; nullptr: none has that name.
using find_extension_function = void* (*)(std::string_view name);

/// How programs reach our functions: set once, before the first object is made.
void set_dispatch(const cl_icd_dispatch* dispatch, find_extension_function find);
void* extension_function(std::string_view name);

/// Called when the last need of an object is gone, before its cell is free: tells the server.
using death = void (*)(cell& dying);
void on_death(death tell);

void hold(cell& c);
void let_go(cell& c);
/// Ends an object that was never made; the server is not informed.
void discard(cell& c);

/// Whether this is a living object of this kind. The program may pass anything that the loader could read a
/// word from.
bool alive(const cell* c, handle_kind kind);

/// The same for any value at all, and objects of any kind.
bool is_cell(const cell* c);

template <class H>
bool alive(H handle) {
  return alive(cell_of(handle), api::handle_trait<H>::kind);
}

/// nullptr: it is no living object of this kind.
template <class Info, class H>
Info* find(H handle) {
  return alive(handle) ? static_cast<Info*>(cell_of(handle)->info) : nullptr;
}

template <class H>
std::uint64_t id_of(H handle) {
  return handle ? cell_of(handle)->id : 0;
}

template <class H>
cl_int retain(H handle) {
  if (!alive(handle)) return api::opencl::invalid(api::handle_trait<H>::kind);
  cell_of(handle)->references.fetch_add(1, std::memory_order_relaxed);
  return CL_SUCCESS;
}

template <class H>
cl_int release(H handle) {
  if (!alive(handle)) return api::opencl::invalid(api::handle_trait<H>::kind);
  cell& c = *cell_of(handle);
  std::uint32_t left = c.references.load(std::memory_order_relaxed);
  while (left && !c.references.compare_exchange_weak(left, left - 1, std::memory_order_acq_rel)) {
  }
  if (left == 0) return api::opencl::invalid(api::handle_trait<H>::kind);
  if (left == 1) let_go(c);
  return CL_SUCCESS;
}

template <class H>
cl_uint references(H handle) {
  return cell_of(handle)->references.load(std::memory_order_relaxed);
}

/// Keeps an object that another one needs.
template <class H>
class needed {
 public:
  needed() = default;
  explicit needed(H handle) : handle_(handle) {
    if (handle_) hold(*cell_of(handle_));
  }
  needed(needed&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  needed(const needed& other) : needed(other.handle_) {}
  needed& operator=(needed other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~needed() {
    if (handle_) let_go(*cell_of(handle_));
  }
  H get() const { return handle_; }

 private:
  H handle_ = nullptr;
};

}  // namespace outboard::frontend::opencl
