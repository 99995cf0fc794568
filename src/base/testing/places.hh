// Where tests find what lies in the checkout and in the build folder. The names of both are compiled into one
// small file, so that no other file differs from checkout to checkout and the compiler's cache serves them
// all. Any thread.
#pragma once

#include <string>
#include <string_view>

namespace outboard {

/// `path` is below the checkout, or below the build folder.
std::string in_checkout(std::string_view path);
std::string in_build(std::string_view path);

}  // namespace outboard
