// What a client is told of a program once it is built: all that programs ask about it and its kernels, so
// that their questions need not travel. Called without the turn; native objects only.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "api/opencl/table.hh"
#include "marshal/opencl/bodies.hh"

namespace outboard::backend::opencl {

/// Devices with the ids by which the client knows them.
using named_devices = std::vector<std::pair<cl_device_id, std::uint64_t>>;

std::vector<cl_device_id> devices_of(const api::opencl::function_table& table, cl_program program);

/// One a device. Some platforms compile all kernels to answer this.
std::vector<std::size_t> binary_sizes(const api::opencl::function_table& table, cl_program program);

/// Fills all but the reply's code. `kernels`: it is an executable, which has some.
void describe(const api::opencl::function_table& table, cl_program program, const named_devices& names,
              bool kernels, marshal::opencl::build_reply& reply);

}  // namespace outboard::backend::opencl
