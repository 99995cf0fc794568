// What a client receives about a built program: everything that can be asked about it and its kernels, so
// that such questions need not travel. Called without the turn, so it uses native objects only.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "api/opencl/table.hh"
#include "marshal/opencl/bodies.hh"

namespace outboard::backend::opencl {

/// Pairs devices with the ids by which the client knows them.
using named_devices = std::vector<std::pair<cl_device_id, std::uint64_t>>;

std::vector<cl_device_id> devices_of(const api::opencl::function_table& table, cl_program program);

/// One for each device. Some platforms compile all kernels to answer this.
std::vector<std::size_t> binary_sizes(const api::opencl::function_table& table, cl_program program);

/// Fills in everything but the reply's code. `kernels`: the program is an executable, so it has kernels.
void describe(const api::opencl::function_table& table, cl_program program, const named_devices& names,
              bool kernels, marshal::opencl::build_reply& reply);

}  // namespace outboard::backend::opencl
