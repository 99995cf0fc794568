// PTX text to syntax tree. One parser per text, one thread. The text may be hostile: nesting, sizes and
// counts are limited, errors carry the line.
#pragma once

#include <memory>
#include <string>

#include "base/result.hh"
#include "ptx/text/tree.hh"

namespace outboard::ptx {

result<std::unique_ptr<program>> parse_program(std::shared_ptr<const std::string> text);

}  // namespace outboard::ptx
