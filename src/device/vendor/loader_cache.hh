// Looks a library up in the dynamic loader's cache (/etc/ld.so.cache) without loading it. Any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace outboard::device::vendor {

/// Every path that the cache has for this SONAME; empty if there is no cache or its format is unknown.
std::vector<std::string> loader_cache_paths(std::string_view soname,
                                            const std::string& cache = "/etc/ld.so.cache");

}  // namespace outboard::device::vendor
