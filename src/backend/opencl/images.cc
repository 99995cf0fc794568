// Images as objects.
#include <algorithm>
#include <optional>

#include "backend/opencl/ends.hh"
#include "backend/opencl/places.hh"
#include "backend/opencl/questions.hh"
#include "backend/opencl/with_room.hh"

namespace outboard::backend::opencl {
namespace {

using namespace marshal::opencl;

/// Formats of a kind of image; more than any device has.
constexpr cl_uint most_formats = 1024;

std::uint64_t size_of(const api::opencl::function_table& table, cl_mem image, cl_image_info name) {
  return value_of<std::size_t>([&](std::size_t size, void* to, std::size_t* wanted) {
           return table.clGetImageInfo(image, name, size, to, wanted);
         })
      .value_or(0);
}

std::uint64_t bytes_held(const api::opencl::function_table& table, cl_mem image) {
  return size_of_memory(table, image).value_or(0);
}

/// Bytes of all pixels without gaps; nothing: more than a size can say.
std::optional<std::size_t> bytes_of(const cl_image_desc& about, std::size_t element) {
  std::size_t rows = 1, slices = 1;
  switch (about.image_type) {
    case CL_MEM_OBJECT_IMAGE2D:
      rows = about.image_height;
      break;
    case CL_MEM_OBJECT_IMAGE3D:
      rows = about.image_height, slices = about.image_depth;
      break;
    case CL_MEM_OBJECT_IMAGE1D_ARRAY:
      slices = about.image_array_size;
      break;
    case CL_MEM_OBJECT_IMAGE2D_ARRAY:
      rows = about.image_height, slices = about.image_array_size;
      break;
    default:
      break;
  }
  std::size_t bytes = element;
  for (const std::size_t n : {about.image_width, rows, slices}) {
    if (__builtin_mul_overflow(bytes, n, &bytes)) return std::nullopt;
  }
  return bytes;
}

/// One that shows no buffer. How much it takes is known once it is there, until then the least that it may.
cl_int create_counted(call& c, cl_context context, cl_mem_flags flags, const cl_image_format& format,
                      const cl_image_desc& about, cl_mem& made, std::shared_ptr<memory_ledger::hold>& held) {
  const api::opencl::function_table& table = own(c).table();
  const cl_int full = CL_MEM_OBJECT_ALLOCATION_FAILURE;
  std::uint64_t bytes = bytes_of(about, 1).value_or(~std::uint64_t{0});
  const auto attempt = [&] {
    cl_int code = CL_SUCCESS;
    made = table.clCreateImage(context, flags, &format, &about, nullptr, &code);
    if (code != CL_SUCCESS) return code;
    bytes = bytes_held(table, made);
    if ((held = own(c).count(context, bytes))) return code;
    table.clReleaseMemObject(made);
    return full;
  };
  return backend::with_room(c.core, full, attempt, [&] { return own(c).room_for(context, bytes); });
}

}  // namespace

namespace ends {

/// The contents are copied at once; the flags that speak of the client's memory mean the copy. How many bytes
/// the device would read is known of an image that is there: it is made without them first.
outcome clCreateImageWithProperties(call& c) {
  const auto body = marshal::take_body<image_body>(c.body);
  if (!c.body.ok()) return outcome::malformed();
  const auto contents = own(c).take_bytes(body.contents, c.body.rest());
  if (!contents) return outcome::malformed();
  const api::opencl::function_table& table = own(c).table();
  cl_context context = nullptr;
  cl_int code = resolve(c, body.context, context);
  const cl_image_format format{body.order, body.type};
  cl_image_desc about{};
  about.image_type = body.kind;
  about.image_width = body.width;
  about.image_height = body.height;
  about.image_depth = body.depth;
  about.image_array_size = body.layers;
  // Pitches speak of the client's memory, or of the buffer that the image shows.
  about.image_row_pitch = body.memory ? body.row_pitch : 0;
  about.image_slice_pitch = body.memory ? body.slice_pitch : 0;
  about.num_mip_levels = body.levels;
  about.num_samples = body.samples;
  if (code == CL_SUCCESS && body.memory) code = resolve(c, body.memory, about.mem_object);
  if (code == CL_SUCCESS && body.memory && body.contents.present) code = CL_INVALID_VALUE;
  const cl_mem_flags flags =
      body.flags & ~static_cast<cl_mem_flags>(CL_MEM_USE_HOST_PTR | CL_MEM_COPY_HOST_PTR);
  cl_mem made = nullptr;
  std::shared_ptr<memory_ledger::hold> held;
  if (code == CL_SUCCESS && !table.clCreateImage) code = CL_INVALID_OPERATION;
  if (code == CL_SUCCESS && body.memory) {
    made = table.clCreateImage(context, flags, &format, &about, nullptr, &code);
    if (code == CL_SUCCESS && (code = check_shown(table, made, about)) != CL_SUCCESS)
      table.clReleaseMemObject(made);
  } else if (code == CL_SUCCESS) {
    code = create_counted(c, context, flags, format, about, made, held);
  }
  if (code == CL_SUCCESS && body.contents.present) {
    const auto wanted = bytes_of(about, size_of(table, made, CL_IMAGE_ELEMENT_SIZE));
    table.clReleaseMemObject(made);
    if (wanted != contents->size()) return outcome::malformed();
    about.image_row_pitch = about.image_slice_pitch = 0;
    made = table.clCreateImage(context, flags | CL_MEM_COPY_HOST_PTR, &format, &about,
                               const_cast<std::byte*>(contents->data()), &code);
  }
  if (code == CL_SUCCESS) {
    marshal::put_body(
        c.reply,
        image_reply{size_of(table, made, CL_IMAGE_ELEMENT_SIZE), size_of(table, made, CL_IMAGE_ROW_PITCH),
                    size_of(table, made, CL_IMAGE_SLICE_PITCH), bytes_held(table, made)});
  }
  return keep_counted(c, body.handle, made, code, std::move(held));
}

outcome clGetSupportedImageFormats(call& c) {
  formats_body body;
  if (!take_all(c, body)) return outcome::malformed();
  cl_context context = nullptr;
  cl_int code = resolve(c, body.context, context);
  std::vector<cl_image_format> formats(most_formats);
  cl_uint count = 0;
  if (code == CL_SUCCESS) {
    code = own(c).table().clGetSupportedImageFormats(context, body.flags, body.kind, most_formats,
                                                     formats.data(), &count);
  }
  formats.resize(std::min(count, most_formats));
  for (const cl_image_format& f : formats)
    c.reply.put(f.image_channel_order), c.reply.put(f.image_channel_data_type);
  return outcome::answer(code);
}

}  // namespace ends
}  // namespace outboard::backend::opencl
