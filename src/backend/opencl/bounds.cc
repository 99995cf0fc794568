#include "backend/opencl/bounds.hh"

#include "backend/opencl/questions.hh"

namespace outboard::backend::opencl {
namespace {

using api::opencl::function_table;
using marshal::opencl::box;
using marshal::opencl::lies_inside;

std::optional<cl_mem_object_type> type_of(const function_table& table, cl_mem memory) {
  return value_of<cl_mem_object_type>([&](std::size_t size, void* to, std::size_t* wanted) {
    return table.clGetMemObjectInfo(memory, CL_MEM_TYPE, size, to, wanted);
  });
}

std::size_t number_of_image(const function_table& table, cl_mem image, cl_image_info name) {
  return value_of<std::size_t>([&](std::size_t size, void* to, std::size_t* wanted) {
           return table.clGetImageInfo(image, name, size, to, wanted);
         })
      .value_or(0);
}

/// Returns how many bytes a buffer has; nothing if it is not a buffer.
std::optional<std::size_t> size_of_buffer(const function_table& table, cl_mem memory) {
  return type_of(table, memory) == CL_MEM_OBJECT_BUFFER ? size_of_memory(table, memory) : std::nullopt;
}

}  // namespace

cl_int check_row(const function_table& table, cl_mem buffer, std::size_t offset, std::size_t size) {
  const auto whole = size_of_buffer(table, buffer);
  if (!whole) return CL_INVALID_MEM_OBJECT;
  return lies_inside(*whole, offset, size) ? CL_SUCCESS : CL_INVALID_VALUE;
}

cl_int check_box(const function_table& table, cl_mem buffer, const std::size_t* origin,
                 const std::size_t* region, std::size_t row_pitch, std::size_t slice_pitch, box& made) {
  if (!made.set(origin, region, row_pitch, slice_pitch)) return CL_INVALID_VALUE;
  return check_row(table, buffer, made.first, made.extent);
}

cl_int check_region(const function_table& table, cl_mem image, const std::size_t* origin,
                    const std::size_t* region, std::size_t& bytes) {
  const auto type = type_of(table, image);
  if (!type || *type == CL_MEM_OBJECT_BUFFER || *type == CL_MEM_OBJECT_PIPE) return CL_INVALID_MEM_OBJECT;
  cl_image_desc shape{};
  shape.image_type = *type;
  shape.image_width = number_of_image(table, image, CL_IMAGE_WIDTH);
  shape.image_height = number_of_image(table, image, CL_IMAGE_HEIGHT);
  shape.image_depth = number_of_image(table, image, CL_IMAGE_DEPTH);
  shape.image_array_size = number_of_image(table, image, CL_IMAGE_ARRAY_SIZE);
  if (!lies_inside(marshal::opencl::extent_of(shape), origin, region)) return CL_INVALID_VALUE;
  bytes = number_of_image(table, image, CL_IMAGE_ELEMENT_SIZE);
  for (std::size_t i = 0; i < 3; ++i) {
    if (__builtin_mul_overflow(bytes, region[i], &bytes)) return CL_INVALID_VALUE;
  }
  return bytes ? CL_SUCCESS : CL_INVALID_VALUE;
}

cl_int check_shown(const function_table& table, cl_mem image, const cl_image_desc& about) {
  const auto whole = size_of_buffer(table, about.mem_object);
  if (!whole) return CL_SUCCESS;  // it shows another image, whose shape the device knows
  const bool in_rows = about.image_type == CL_MEM_OBJECT_IMAGE2D;
  if (!in_rows && about.image_type != CL_MEM_OBJECT_IMAGE1D_BUFFER) return CL_INVALID_IMAGE_DESCRIPTOR;
  constexpr std::size_t origin[3] = {};
  std::size_t region[3] = {0, in_rows ? about.image_height : 1, 1};
  const std::size_t pixel = number_of_image(table, image, CL_IMAGE_ELEMENT_SIZE);
  const std::size_t pitch = in_rows ? number_of_image(table, image, CL_IMAGE_ROW_PITCH) : 0;
  box rows;
  const bool inside = !__builtin_mul_overflow(about.image_width, pixel, &region[0]) &&
                      rows.set(origin, region, pitch, 0) && lies_inside(*whole, rows.first, rows.extent);
  return inside ? CL_SUCCESS : CL_INVALID_IMAGE_DESCRIPTOR;
}

}  // namespace outboard::backend::opencl
