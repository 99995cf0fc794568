#include "frontend/cuda/code/code.hh"
#include "frontend/cuda/code/local_code.hh"
#include "frontend/cuda/ends.hh"
#include "frontend/cuda/gate.hh"

namespace outboard::frontend::cuda {
namespace {

struct input {
  CUjitInputType type = CU_JIT_INPUT_CUBIN;
  std::span<const std::byte> data;
  const char* name = nullptr;
};

CUresult add(lane& own, CUlinkState state, const input& what, unsigned count, CUjit_option* options,
             void** values) {
  auto* link = find_object<link_info>(state);
  if (!link) return CUDA_ERROR_INVALID_HANDLE;
  if (!link->image.empty()) return CUDA_ERROR_INVALID_VALUE;  // it is complete
  if (what.data.size() > marshal::max_image_bytes) return CUDA_ERROR_OUT_OF_MEMORY;
  jit_options jit;
  if (const CUresult code = jit.take(count, options, values); code != CUDA_SUCCESS) return code;
  const auto turn = take_upload_turn();
  if (const CUresult code = upload(own, what.data, turn); code != CUDA_SUCCESS) return code;
  marshal::link_add_body body;
  body.state = value_of(state);
  body.size = what.data.size();
  body.type = what.type;
  if (what.name) body.name = what.name;
  body.options = jit.travelling();
  request_of<api::opcode::cuLinkAddData_v2> r(own, body);
  const CUresult code = r.call();
  if (r.reply().rest().empty()) return code;
  marshal::link_reply reply;
  if (const CUresult whole = r.read(reply); whole != CUDA_SUCCESS) return whole;
  link->options.deliver(reply.state);
  jit.deliver(reply.options);
  if (code == CUDA_SUCCESS) link->inputs.add(what.type, what.data, target_for(own, false));
  return code;
}

/// Asks for the image from `offset` on; the first asking links.
CUresult fetch(lane& own, CUlinkState state, link_info& link, std::uint64_t& size) {
  request_of<api::opcode::cuLinkComplete> r(own,
                                            marshal::link_complete_body{value_of(state), link.image.size()});
  const CUresult code = r.call();
  if (r.reply().rest().empty()) return code;
  marshal::link_complete_reply reply;
  if (const CUresult whole = r.read(reply); whole != CUDA_SUCCESS) return whole;
  link.options.deliver(reply.state);
  if (code != CUDA_SUCCESS) return code;
  const auto piece = std::as_bytes(std::span(reply.piece));
  if (piece.empty() || reply.image_size > marshal::max_image_bytes) return r.malformed();
  if (link.image.empty()) link.image.reserve(static_cast<std::size_t>(reply.image_size));
  link.image.insert(link.image.end(), piece.begin(), piece.end());
  size = reply.image_size;
  return CUDA_SUCCESS;
}

/// The program will load this image by its address alone, and sizes inside say how much lies there: it must
/// end where the server's bytes end. And its kernels must take what those of the inputs take.
CUresult check_linked(const lane& own, const link_info& link) {
  const auto view = marshal::image_extent(std::span<const std::byte>(link.image));
  bool good = view.ok();
  if (good) {
    const auto table = marshal::parse_kernels(*view, target_for(own, false));
    good = !table || link.inputs.agree(*table);
  }
  return good ? CUDA_SUCCESS : malformed_reply(api::opcode::cuLinkComplete);
}

}  // namespace

namespace ends {

CUresult cuLinkCreate_v2(unsigned count, CUjit_option* options, void** values, CUlinkState* state) {
  lane& own = this_lane();
  if (const CUresult code = gate<api::opcode::cuLinkCreate_v2>(own); code != CUDA_SUCCESS) return code;
  if (!state) return CUDA_ERROR_INVALID_VALUE;
  auto link = std::make_unique<link_info>();
  link->context = own.context_handle();
  if (const CUresult code = link->options.take(count, options, values); code != CUDA_SUCCESS) return code;
  marshal::link_create_body body;
  body.options = link->options.travelling();
  handle_table& table = process::instance().objects().handles(api::handle_kind::link_state);
  body.handle = table.reserve(std::move(link));
  if (!body.handle) return CUDA_ERROR_OUT_OF_MEMORY;
  request_of<api::opcode::cuLinkCreate_v2> r(own, body);
  if (const CUresult code = r.call(); code != CUDA_SUCCESS) return table.release(body.handle), code;
  *state = reinterpret_cast<CUlinkState>(body.handle);
  return CUDA_SUCCESS;
}

CUresult cuLinkCreate(unsigned count, CUjit_option* options, void** values, CUlinkState* state) {
  return ends::cuLinkCreate_v2(count, options, values, state);
}

CUresult cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void* data, std::size_t size,
                          const char* name, unsigned count, CUjit_option* options, void** values) {
  lane& own = this_lane();
  if (!state) return CUDA_ERROR_INVALID_HANDLE;  // even before cuInit
  if (const CUresult code = gate<api::opcode::cuLinkAddData_v2>(own); code != CUDA_SUCCESS) return code;
  if (!data || size == 0 || type < 0 || type >= CU_JIT_NUM_INPUT_TYPES) return CUDA_ERROR_INVALID_VALUE;
  return add(own, state, {type, {static_cast<const std::byte*>(data), size}, name}, count, options, values);
}

CUresult cuLinkAddData(CUlinkState state, CUjitInputType type, void* data, std::size_t size, const char* name,
                       unsigned count, CUjit_option* options, void** values) {
  return ends::cuLinkAddData_v2(state, type, data, size, name, count, options, values);
}

CUresult cuLinkAddFile_v2(CUlinkState state, CUjitInputType type, const char* path, unsigned count,
                          CUjit_option* options, void** values) {
  lane& own = this_lane();
  if (!state) return CUDA_ERROR_INVALID_HANDLE;  // even before cuInit
  if (const CUresult code = gate<api::opcode::cuLinkAddFile_v2>(own); code != CUDA_SUCCESS) return code;
  if (!path) return CUDA_ERROR_INVALID_VALUE;
  std::vector<std::byte> file;
  if (const CUresult code = read_file(path, file); code != CUDA_SUCCESS) return code;
  std::span<const std::byte> data = file;
  if (type != CU_JIT_INPUT_PTX) data = data.first(data.size() - 1);  // the NUL is for texts
  if (data.empty()) return CUDA_ERROR_INVALID_VALUE;
  return add(own, state, {type, data, path}, count, options, values);
}

CUresult cuLinkAddFile(CUlinkState state, CUjitInputType type, const char* path, unsigned count,
                       CUjit_option* options, void** values) {
  return ends::cuLinkAddFile_v2(state, type, path, count, options, values);
}

CUresult cuLinkComplete(CUlinkState state, void** image, std::size_t* size) {
  lane& own = this_lane();
  if (!state) return CUDA_ERROR_INVALID_HANDLE;  // even before cuInit
  if (const CUresult code = gate<api::opcode::cuLinkComplete>(own); code != CUDA_SUCCESS) return code;
  if (!image) return CUDA_ERROR_INVALID_VALUE;
  auto* link = find_object<link_info>(state);
  if (!link) return CUDA_ERROR_INVALID_HANDLE;
  if (!link->image.empty()) return CUDA_ERROR_INVALID_HANDLE;  // once only
  std::uint64_t all = 0;
  do {
    const CUresult code = fetch(own, state, *link, all);
    if (code != CUDA_SUCCESS) return link->image.clear(), code;
  } while (link->image.size() < all);
  if (const CUresult code = check_linked(own, *link); code != CUDA_SUCCESS) return link->image.clear(), code;
  *image = link->image.data();
  if (size) *size = link->image.size();
  return CUDA_SUCCESS;
}

CUresult cuLinkDestroy(CUlinkState state) {
  lane& own = this_lane();
  if (const CUresult code = gate<api::opcode::cuLinkDestroy>(own); code != CUDA_SUCCESS) return code;
  if (!find_object<link_info>(state)) return CUDA_ERROR_INVALID_HANDLE;
  request_of<api::opcode::cuLinkDestroy> r(own, marshal::handle_body{value_of(state)});
  const CUresult code = r.post();
  process::instance().objects().handles(api::handle_kind::link_state).release(value_of(state));
  return code;
}

}  // namespace ends
}  // namespace outboard::frontend::cuda
