// What a server answers to NVML's questions: the front-end writes it into memory of the program, and must
// write nowhere else. Two bytes choose the function.
#include <array>
#include <span>
#include <vector>

#include "marshal/nvml/program_structs.hh"
#include "marshal/nvml/question.hh"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace outboard;
  using namespace api::nvml;
  wire::reader r({reinterpret_cast<const std::byte*>(data), size});
  const auto list = forms();
  const function_form& form = list[r.get<std::uint16_t>() % list.size()];
  // Allocates exactly as much memory as the line says, so that the sanitizer reports the first byte behind
  // it.
  std::array<std::vector<std::byte>, max_arguments> memory;
  marshal::nvml::program_structs structs;
  words arguments{};
  for (std::size_t i = 0; i < form.parameters.size(); ++i) {
    const parameter_form& p = form.parameters[i];
    const api::parameter& line = form.about->parameters[i];
    arguments[i] = 3;
    if (p.what != parameter_class::memory) continue;
    std::size_t n = line.count == api::count_kind::number ? line.number : 1;
    if (line.count == api::count_kind::parameter) {
      const bool told = form.about->parameters[line.count_index].dir != api::direction::out;
      n = told ? 3 : marshal::nvml::unsized_elements;
    }
    memory[i].assign(n * p.size, std::byte{0});
    const unsigned first = 3;  // of a count
    if (p.layout) {
      std::size_t there = 0;
      for (std::size_t e = 0; e < n; ++e)
        there = structs.lay_out(*p.layout(), memory[i].data() + e * p.size, first);
      if (n == 1) memory[i].resize(there), memory[i].shrink_to_fit();
    } else if (memory[i].size() >= sizeof first) {
      std::memcpy(memory[i].data(), &first, sizeof first);
    }
    arguments[i] = to_word(memory[i].data());
  }
  nvmlReturn_t code{};
  marshal::nvml::text_pool texts;
  (void)marshal::nvml::decode_answer(r, form, arguments, code, texts);
  return 0;
}
