// Chapter tensor map: the map's bytes are the driver's secret, so the driver makes them. Its checks of
// arguments are its own; here is only what cannot travel.
#include <algorithm>
#include <cstring>

#include "frontend/cuda/code/made_maps.hh"
#include "frontend/cuda/ends.hh"
#include "frontend/cuda/gate.hh"
#include "frontend/cuda/requests.hh"
#include "marshal/cuda/resource_bodies.hh"

namespace outboard::frontend::cuda {
namespace {

using api::opcode;

static_assert(sizeof(CUtensorMap) == sizeof(marshal::tensor_map_reply::map));

struct tensor {
  CUtensorMap* map;
  CUtensorMapDataType type;
  cuuint32_t rank;
  void* address;
  const cuuint64_t* sizes;
  const cuuint64_t* strides;
  const cuuint32_t* steps;
};

template <class T, class From>
void copy_to(std::vector<T>& to, const From* from, std::size_t count) {
  to.assign(from, from + count);
}

made_maps& made() {
  static made_maps* const all = new made_maps;  // never destroyed: threads may call as long as there are any
  return *all;
}

/// With the request in the lane's buffer.
std::string key_of(const lane& own, opcode code) {
  const std::uint64_t context = own.running_context();
  std::string key(reinterpret_cast<const char*>(own.request.data()), own.request.size());
  key.append(reinterpret_cast<const char*>(&context), sizeof context);
  key.append(reinterpret_cast<const char*>(&code), sizeof code);
  return key;
}

using encodes = opcode_for<marshal::tensor_map_body, marshal::tensor_map_reply>;

CUresult send(lane& own, encodes code, CUtensorMap* map, const marshal::tensor_map_body& body) {
  typed_request r(code, own, body);
  // The server must have pinned memory before a kernel finds it by a map, so it is asked for each of those.
  std::string key;
  if (!process::instance().memory().arena().holds(body.address)) {
    key = key_of(own, code);
    if (const auto known = made().find(key))
      return std::memcpy(map, known->data(), known->size()), CUDA_SUCCESS;
  }
  marshal::tensor_map_reply reply;
  if (const CUresult result = r.call(reply); result != CUDA_SUCCESS) return result;
  std::memcpy(map, reply.map.data(), reply.map.size());
  if (!key.empty()) made().keep(std::move(key), reply.map);
  return CUDA_SUCCESS;
}

/// What the three forms have in common. The innermost stride is not given: it is the element's size. The
/// driver wants the list even where it is empty.
CUresult fill(const tensor& t, marshal::tensor_map_body& body) {
  if (!t.map || !t.sizes || !t.strides || !t.steps || t.rank == 0 || t.rank > marshal::max_tensor_rank) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  body.data_type = t.type;
  body.address = reinterpret_cast<std::uint64_t>(t.address);
  copy_to(body.sizes, t.sizes, t.rank);
  copy_to(body.strides, t.strides, t.rank - 1);
  copy_to(body.steps, t.steps, t.rank);
  return CUDA_SUCCESS;
}

}  // namespace

#define OUTBOARD_GATE(symbol) \
  lane& own = this_lane();    \
  if (const CUresult refused = gate<opcode::symbol>(own); refused != CUDA_SUCCESS) return refused

CUresult ends::cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank,
                                      void* address, const cuuint64_t* sizes, const cuuint64_t* strides,
                                      const cuuint32_t* box, const cuuint32_t* steps,
                                      CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                      CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill oob) {
  OUTBOARD_GATE(cuTensorMapEncodeTiled);
  marshal::tensor_map_body body;
  if (const CUresult code = fill({map, type, rank, address, sizes, strides, steps}, body);
      code != CUDA_SUCCESS || !box) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  copy_to(body.box, box, rank);
  body.options = {interleave, swizzle, promotion, oob, 0};
  return send(own, opcode::cuTensorMapEncodeTiled, map, body);
}

CUresult ends::cuTensorMapEncodeIm2col(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank,
                                       void* address, const cuuint64_t* sizes, const cuuint64_t* strides,
                                       const int* lower, const int* upper, cuuint32_t channels,
                                       cuuint32_t pixels, const cuuint32_t* steps,
                                       CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                       CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill oob) {
  OUTBOARD_GATE(cuTensorMapEncodeIm2col);
  marshal::tensor_map_body body;
  if (const CUresult code = fill({map, type, rank, address, sizes, strides, steps}, body);
      code != CUDA_SUCCESS || !lower || !upper || rank < 3) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  body.corners.assign(lower, lower + rank - 2);
  body.corners.insert(body.corners.end(), upper, upper + rank - 2);
  body.channels = channels, body.pixels = pixels;
  body.options = {interleave, swizzle, promotion, oob, 0};
  return send(own, opcode::cuTensorMapEncodeIm2col, map, body);
}

CUresult ends::cuTensorMapEncodeIm2colWide(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank,
                                           void* address, const cuuint64_t* sizes, const cuuint64_t* strides,
                                           int lower, int upper, cuuint32_t channels, cuuint32_t pixels,
                                           const cuuint32_t* steps, CUtensorMapInterleave interleave,
                                           CUtensorMapIm2ColWideMode mode, CUtensorMapSwizzle swizzle,
                                           CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill oob) {
  OUTBOARD_GATE(cuTensorMapEncodeIm2colWide);
  marshal::tensor_map_body body;
  if (const CUresult code = fill({map, type, rank, address, sizes, strides, steps}, body);
      code != CUDA_SUCCESS) {
    return code;
  }
  body.corners = {lower, upper};
  body.channels = channels, body.pixels = pixels;
  body.options = {interleave, swizzle, promotion, oob, mode};
  return send(own, opcode::cuTensorMapEncodeIm2colWide, map, body);
}

CUresult ends::cuTensorMapReplaceAddress(CUtensorMap* map, void* address) {
  OUTBOARD_GATE(cuTensorMapReplaceAddress);
  if (!map) return CUDA_ERROR_INVALID_VALUE;
  marshal::tensor_map_body body;
  body.address = reinterpret_cast<std::uint64_t>(address);
  std::memcpy(body.map.data(), map, body.map.size());
  return send(own, opcode::cuTensorMapReplaceAddress, map, body);
}

}  // namespace outboard::frontend::cuda
