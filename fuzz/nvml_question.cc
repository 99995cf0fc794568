// What a client asks the helper that answers NVML: four bytes of the function's number, then the question.
// The mock answers, so the encoding of answers is covered too.
#include <memory>
#include <span>

#include "backend/nvml/visitor.hh"
#include "device/mock/nvml.hh"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace outboard;
  static backend::nvml::house house;
  static const auto device = device::mock::open_nvml();
  house.device = device.get();
  house.visible = {"0000:1B:00.0"};
  backend::nvml::visitor own(house, {});
  wire::reader r({reinterpret_cast<const std::byte*>(data), size});
  // Every number is mapped to a function, so that no input is wasted.
  const auto list = api::nvml::forms();
  const auto& form = list[r.get<std::uint32_t>() % list.size()];
  std::vector<std::byte> answer;
  (void)own.answer(static_cast<std::uint32_t>(form.code), r.rest(), answer);
  return 0;
}
