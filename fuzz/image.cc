// Module images as a back-end receives them: decode, select again, parse; also the bare parsers and the
// kernel table as a front-end receives it. The first byte chooses.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string_view>

#include "marshal/cuda/image.hh"
#include "marshal/cuda/kernel_table.hh"

using namespace outboard::marshal;

namespace {

void walk(const image_view& view) {
  for (const image_target& target : {image_target{9, 0, false, false}, image_target{8, 6, false, false},
                                     image_target{7, 5, true, false}, image_target{12, 0, false, true}}) {
    auto image = module_image::select(view, target);
    if (!image) continue;
    image->load_pointer();
    // A cubin or a text is not looked into when it is packed, so decode may still refuse it.
    if (const auto again = module_image::decode(image->encoded());
        again && again->encoded() != image->encoded())
      std::abort();
    if (const auto table = parse_kernels(image->view(), target);
        table && !decode_kernel_table(encode(*table)))
      std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto bytes = std::as_bytes(std::span(data, size)).subspan(1);
  switch (data[0] % 5) {
    case 0:
      if (const auto image = module_image::decode(bytes)) walk(image->view());
      break;
    case 1:
      if (const auto view = image_extent(bytes)) walk(*view);
      break;
    case 2:
      if (const auto table = parse_cubin(bytes); table && !decode_kernel_table(encode(*table))) std::abort();
      break;
    case 3: {
      const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      if (const auto table = parse_ptx(text); table && !decode_kernel_table(encode(*table))) std::abort();
      break;
    }
    case 4:
      if (const auto table = decode_kernel_table(bytes)) encode(*table);
      break;
  }
  return 0;
}
