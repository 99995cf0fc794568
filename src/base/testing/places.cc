#include "base/testing/places.hh"

namespace outboard {

std::string in_checkout(std::string_view path) { return OUTBOARD_CHECKOUT "/" + std::string(path); }
std::string in_build(std::string_view path) { return OUTBOARD_BUILD_FOLDER "/" + std::string(path); }

}  // namespace outboard
