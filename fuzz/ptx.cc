// PTX text to syntax tree.
#include <memory>
#include <string>

#include "ptx/text/parser.hh"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto text = std::make_shared<const std::string>(reinterpret_cast<const char*>(data), size);
  (void)outboard::ptx::parse_program(text).ok();
  return 0;
}
