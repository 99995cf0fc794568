// What a worker may do before a CUDA session comes to it, while the session still runs where it is: load its
// code, in the order in which it was loaded there, so that it lies at the same addresses. That is most of
// what a replacement takes. Values.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "backend/cuda/call.hh"
#include "backend/cuda/code/load.hh"
#include "backend/session/session_api.hh"

namespace outboard::backend {

/// A primary context: the only ones that are there before a session.
struct waiting_context {
  std::uint64_t id = 0;
  std::int32_t device = 0;
  OUTBOARD_FIELDS(id, device)
};

/// A load_body, and in which context it was carried out (a library's: none).
struct code_to_load {
  std::uint64_t ticket = 0, context = 0;
  bool library = false;
  marshal::load_body body;
  std::vector<std::uint8_t> image;
  OUTBOARD_FIELDS(ticket, context, library, body, image)
};

/// A kernel or variable of such code that was worked with, or a function of it that was asked for.
struct code_to_use {
  std::uint64_t ticket = 0, context = 0, code = 0;
  bool variable = false;
  std::string name;
  OUTBOARD_FIELDS(ticket, context, code, variable, name)
};

struct preparation_part {
  std::vector<waiting_context> contexts;
  std::vector<code_to_load> loads;  ///< by tickets
  std::vector<code_to_use> uses;    ///< by tickets
  OUTBOARD_FIELDS(contexts, loads, uses)
};

/// In the worker that has the session. Made with the turn; the images are copied later, without it.
class code_preparation final : public session_api::preparation {
 public:
  explicit code_preparation(call& c);
  std::vector<std::byte> encode() override;
  /// The ids of the modules and libraries.
  std::set<std::uint64_t> ids() const;

 private:
  void add_loads(call& c);
  void add_uses(call& c);

  preparation_part part_;
  std::vector<std::shared_ptr<loaded_code>> code_;  // of part_.loads
};

/// In the worker that the session comes to: its code, until the session takes it. Owned by the worker,
/// outlives the session; one thread.
class loaded_ahead {
 public:
  explicit loaded_ahead(const api::driver_table& driver) : driver_(driver) {}
  ~loaded_ahead() { drop_rest(); }
  loaded_ahead(const loaded_ahead&) = delete;
  loaded_ahead& operator=(const loaded_ahead&) = delete;

  /// What code_preparation::encode() gave. Once.
  status load(std::span<const std::byte> preparation);
  /// The module or library that the session knows by this id. Nothing: it is not here. Each once.
  std::optional<fresh_code> take(std::uint64_t id);
  /// The session has everything: what it has unloaded meanwhile goes, and the contexts are its own alone.
  void drop_rest();

 private:
  struct waiting {
    fresh_code code;
    bool library = false;
    CUcontext context = nullptr;
  };
  CUresult enter(std::uint64_t context);
  CUresult load(const code_to_load& wanted);
  void use(const code_to_use& wanted);

  const api::driver_table& driver_;
  std::map<std::uint64_t, CUcontext> contexts_;
  std::vector<CUdevice> retained_;
  std::map<std::uint64_t, waiting> code_;
};

}  // namespace outboard::backend
