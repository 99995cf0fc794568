// A compressed piece of a large copy from a peer: any bytes either fill the piece or are refused.
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "marshal/data_bodies.hh"
#include "marshal/piece_packing.hh"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace marshal = outboard::marshal;
  const auto packed = std::as_bytes(std::span(data, size));
  const std::uint32_t whole = marshal::packed_size(packed);
  if (whole == 0 || whole > marshal::max_data_piece) return 0;
  std::vector<std::byte> piece(whole);
  marshal::unpack_piece(packed, piece);
  return 0;
}
