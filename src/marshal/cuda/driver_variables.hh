// The environment variables that the driver itself reads: the client's values travel in the hello and decide,
// not the server's. An allow-list on both sides: the front-end sends no others, the worker takes no others.
// Left out on purpose: what names files or pipes on the machine of the driver (CUDA_CACHE_PATH, core dumps,
// MPS, CUDA_LOG_FILE), because a client chooses no path on a server. Constants.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace outboard::marshal {

inline constexpr std::array<std::string_view, 21> driver_variables{
    "CUDA_AUTO_BOOST",
    "CUDA_BINARY_LOADER_THREAD_COUNT",
    "CUDA_CACHE_DISABLE",
    "CUDA_CACHE_MAXSIZE",
    "CUDA_DEVICE_DEFAULT_PERSISTING_L2_CACHE_PERCENTAGE_LIMIT",
    "CUDA_DEVICE_MAX_CONNECTIONS",
    "CUDA_DEVICE_MAX_COPY_CONNECTIONS",
    "CUDA_DEVICE_ORDER",
    "CUDA_DISABLE_JIT",
    "CUDA_DISABLE_PERF_BOOST",
    "CUDA_DISABLE_PTX_JIT",
    "CUDA_FORCE_JIT",
    "CUDA_FORCE_PTX_JIT",
    "CUDA_GRAPHS_USE_NODE_PRIORITY",
    "CUDA_LAUNCH_BLOCKING",
    "CUDA_MANAGED_FORCE_DEVICE_ALLOC",
    "CUDA_MODULE_DATA_LOADING",
    "CUDA_MODULE_LOADING",
    "CUDA_SCALE_LAUNCH_QUEUES",
    "CUDA_VISIBLE_DEVICES",
    "NVIDIA_TF32_OVERRIDE",
};

constexpr bool is_driver_variable(std::string_view name) {
  return std::find(driver_variables.begin(), driver_variables.end(), name) != driver_variables.end();
}

}  // namespace outboard::marshal
