// Code on the cpu device: images become parsed modules, parsed modules become instances with variables in a
// context. Objects are immutable or guard themselves; any thread. Instances live as long as a launch,
// function or module that uses them, so unloading never pulls code from under a kernel.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "api/cuda/headers.hh"
#include "ptx/run/executor.hh"
#include "ptx/text/module.hh"

namespace outboard::device::cpu {

struct context;
using context_ptr = std::shared_ptr<context>;
class memory;

/// Texts and buffers of the JIT options that a load or link call brings; the rest of the options do not
/// matter here.
class jit_options {
 public:
  jit_options() = default;
  jit_options(unsigned count, const CUjit_option* options, void** values);
  /// What the options that choose a target make of any load: success where they can be obeyed.
  CUresult refusal() const;
  void write_error(const std::string& text);

 private:
  void** error_size_ = nullptr;  // the option's value, in: room, out: bytes written
  char* error_buffer_ = nullptr;
  void** info_size_ = nullptr;
  char* info_buffer_ = nullptr;
  bool has_target_ = false, target_of_context_ = false;
  unsigned target_ = 0;
};

/// PTX text, fatbin, wrapper or linked image -> module. Errors: 200 no image we know, 209 machine code only,
/// 218 PTX that does not parse (the text says where).
CUresult load_image(const void* image, jit_options& options, ptx::module_ptr& out);

/// One linked image of several PTX texts, as cuLinkComplete gives it out and load_image takes it.
std::vector<std::byte> pack_texts(const std::vector<std::string>& texts);

/// The decoded code of a module with its variables in the memory of one context.
class instance {
 public:
  static CUresult make(const ptx::module_ptr& source, memory& store, std::shared_ptr<const instance>& out,
                       std::string& why);
  explicit instance(memory& store) : store_(store) {}
  ~instance();
  const ptx::loaded_module_ptr& code() const { return code_; }

 private:
  memory& store_;
  std::vector<std::uint64_t> blocks_;
  ptx::loaded_module_ptr code_;
};
using instance_ptr = std::shared_ptr<const instance>;

/// What a program may set on a kernel.
struct function_settings {
  std::atomic<int> max_dynamic_shared{-1};  ///< -1: not set
  std::atomic<int> carveout{-1};
};

struct module_object {
  context_ptr owner;
  instance_ptr code;
  std::mutex mutex;
  std::map<std::string, std::uint64_t, std::less<>> functions;  ///< handles by name: one a name
  std::uint64_t handle = 0;
};

struct library_object {
  ptx::module_ptr source;
  std::uint64_t handle = 0;
  std::vector<std::uint64_t> kernels;  ///< handles in the module's order
  std::mutex mutex;
  std::map<std::uint64_t, instance_ptr> instances;  ///< by context id
  std::map<std::uint64_t, std::uint64_t> modules;   ///< module handle by context id

  CUresult in_context(const context_ptr& c, instance_ptr& out);
};

struct kernel_object {
  std::shared_ptr<library_object> library;
  const ptx::kernel_info* info = nullptr;
  std::shared_ptr<function_settings> settings;
  std::mutex mutex;
  std::map<std::uint64_t, std::uint64_t> functions;  ///< function handle by context id
};

struct function_object {
  std::uint64_t module = 0;  ///< handle
  context_ptr owner;
  instance_ptr code;
  const ptx::kernel_info* info = nullptr;
  std::shared_ptr<function_settings> settings;
};

struct link_object {
  std::vector<std::string> texts;
  std::vector<ptx::module_ptr> parts;  ///< the texts, parsed
  jit_options options;
  std::vector<std::byte> image;
};

/// A CUfunction or a CUkernel given as one, ready to launch in a context.
struct callable {
  instance_ptr code;
  const ptx::kernel_info* info = nullptr;
  std::shared_ptr<function_settings> settings;
};
/// Errors: 400 no such handle, or what instantiating said.
CUresult resolve(CUfunction handle, const context_ptr& c, callable& out);

/// The same without code, for questions that need no context; `keep` keeps `info` alive.
CUresult describe(std::uint64_t handle, const ptx::kernel_info*& info,
                  std::shared_ptr<function_settings>& settings, std::shared_ptr<const void>& keep);

CUresult function_attribute(CUfunction_attribute id, const ptx::kernel_info& info,
                            const function_settings& settings, int& out);
CUresult set_function_attribute(CUfunction_attribute id, const ptx::kernel_info& info,
                                function_settings& settings, int value);
/// Dynamic shared bytes that a launch may ask for.
int allowed_dynamic_shared(const ptx::kernel_info& info, const function_settings& settings);

}  // namespace outboard::device::cpu
