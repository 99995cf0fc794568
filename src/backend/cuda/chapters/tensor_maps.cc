// Handlers of the chapter tensor map: arguments into the driver's arrays, the map's bytes back. The driver
// looks at numbers only, never at what an address leads to.
#include <cstring>

#include "backend/cuda/driver_call.hh"
#include "backend/cuda/ends.hh"
#include "marshal/cuda/resource_bodies.hh"

namespace outboard::backend {
namespace {

using marshal::tensor_map_body;

/// Lengths that the driver reads by the rank it is told.
bool well_formed(const tensor_map_body& body, bool tiled) {
  const std::size_t rank = body.sizes.size();
  if (rank == 0 || rank > marshal::max_tensor_rank || body.steps.size() != rank) return false;
  return body.strides.size() == rank - 1 && (!tiled || body.box.size() == rank);
}

struct arguments {
  explicit arguments(const tensor_map_body& body)
      : type(static_cast<CUtensorMapDataType>(body.data_type)),
        rank(static_cast<cuuint32_t>(body.sizes.size())),
        address(reinterpret_cast<void*>(body.address)),
        sizes(body.sizes.begin(), body.sizes.end()),
        strides(body.strides.begin(), body.strides.end()),
        interleave(static_cast<CUtensorMapInterleave>(body.options[0])),
        swizzle(static_cast<CUtensorMapSwizzle>(body.options[1])),
        promotion(static_cast<CUtensorMapL2promotion>(body.options[2])),
        fill(static_cast<CUtensorMapFloatOOBfill>(body.options[3])) {
    strides.resize(marshal::max_tensor_rank);  // of rank 1 the list is empty, but must be one
  }

  CUtensorMapDataType type;
  cuuint32_t rank;
  void* address;
  std::vector<cuuint64_t> sizes, strides;
  CUtensorMapInterleave interleave;
  CUtensorMapSwizzle swizzle;
  CUtensorMapL2promotion promotion;
  CUtensorMapFloatOOBfill fill;
};

outcome give(call& c, CUresult code, const CUtensorMap& map) {
  marshal::tensor_map_reply reply;
  std::memcpy(reply.map.data(), &map, reply.map.size());
  marshal::put_body(c.reply, reply);
  return outcome::answer(code);
}

}  // namespace

namespace ends {

outcome cuTensorMapEncodeTiled(call& c, const tensor_map_body& body) {
  if (!well_formed(body, true)) return outcome::malformed();
  const arguments a(body);
  CUtensorMap map{};
  const CUresult code = call_driver(c.driver().cuTensorMapEncodeTiled, &map, a.type, a.rank, a.address,
                                    a.sizes.data(), a.strides.data(), body.box.data(), body.steps.data(),
                                    a.interleave, a.swizzle, a.promotion, a.fill);
  return give(c, code, map);
}

outcome cuTensorMapEncodeIm2col(call& c, const tensor_map_body& body) {
  if (!well_formed(body, false)) return outcome::malformed();
  const std::size_t rank = body.sizes.size();
  if (rank < 3 || body.corners.size() != 2 * (rank - 2)) return outcome::malformed();
  const arguments a(body);
  CUtensorMap map{};
  const CUresult code =
      call_driver(c.driver().cuTensorMapEncodeIm2col, &map, a.type, a.rank, a.address, a.sizes.data(),
                  a.strides.data(), body.corners.data(), body.corners.data() + rank - 2, body.channels,
                  body.pixels, body.steps.data(), a.interleave, a.swizzle, a.promotion, a.fill);
  return give(c, code, map);
}

outcome cuTensorMapEncodeIm2colWide(call& c, const tensor_map_body& body) {
  if (!well_formed(body, false) || body.corners.size() != 2) return outcome::malformed();
  const arguments a(body);
  CUtensorMap map{};
  const CUresult code = call_driver(
      c.driver().cuTensorMapEncodeIm2colWide, &map, a.type, a.rank, a.address, a.sizes.data(),
      a.strides.data(), body.corners[0], body.corners[1], body.channels, body.pixels, body.steps.data(),
      a.interleave, static_cast<CUtensorMapIm2ColWideMode>(body.options[4]), a.swizzle, a.promotion, a.fill);
  return give(c, code, map);
}

outcome cuTensorMapReplaceAddress(call& c, const tensor_map_body& body) {
  CUtensorMap map{};
  std::memcpy(&map, body.map.data(), body.map.size());
  const CUresult code =
      call_driver(c.driver().cuTensorMapReplaceAddress, &map, reinterpret_cast<void*>(body.address));
  return give(c, code, map);
}

}  // namespace ends
}  // namespace outboard::backend
