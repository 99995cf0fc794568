// Images: made while the program waits, because only the device knows its formats and limits; then as
// buffers.
#include "frontend/opencl/image_shape.hh"

#include "frontend/opencl/answer.hh"
#include "frontend/opencl/ends.hh"
#include "frontend/opencl/message.hh"
#include "frontend/opencl/transfer/transfer.hh"
#include "marshal/opencl/widths.hh"

namespace outboard::frontend::opencl::ends {
namespace {

using marshal::opencl::image_body;
using marshal::opencl::image_reply;
using marshal::opencl::size_here;

bool is_image(cl_mem_object_type type) { return type != CL_MEM_OBJECT_BUFFER && type != CL_MEM_OBJECT_PIPE; }

bool wants_host(cl_mem_flags flags) { return (flags & (CL_MEM_USE_HOST_PTR | CL_MEM_COPY_HOST_PTR)) != 0; }

image_body body_of(cl_context context, cl_mem_flags flags, const cl_image_format& format,
                   const cl_image_desc& shape) {
  image_body body;
  body.context = id_of(context);
  body.flags = flags;
  body.order = format.image_channel_order, body.type = format.image_channel_data_type;
  body.kind = shape.image_type, body.levels = shape.num_mip_levels, body.samples = shape.num_samples;
  body.width = shape.image_width, body.height = shape.image_height, body.depth = shape.image_depth;
  body.layers = shape.image_array_size;
  body.row_pitch = shape.image_row_pitch, body.slice_pitch = shape.image_slice_pitch;
  body.memory = id_of(shape.mem_object);
  return body;
}

/// Asks the device for the image; `contents` are its bytes without gaps, if there are any.
cl_int ask_for(image_body& body, std::uint64_t id, std::span<const std::byte> contents, bool present,
               image_reply& made) {
  body.handle = id;
  sent_bytes sent;
  if (present) {
    if (const cl_int code = send_bytes(contents, sent); code != CL_SUCCESS) return code;
  }
  body.contents = sent.about;
  message m(opcode::clCreateImageWithProperties);
  marshal::put_body(m.body(), body);
  if (const cl_int code = m.call(sent.rest); code != CL_SUCCESS) return code;
  wire::reader reply = m.reply();
  made = marshal::take_body<image_reply>(reply);
  return reply.finished() ? CL_SUCCESS : m.malformed();
}

/// Whatever its format.
std::uint64_t most_bytes(const cl_image_desc& shape) {
  constexpr std::uint64_t most = 1ull << 62;
  std::uint64_t bytes = 16;
  for (const std::size_t n : extent_of(shape)) {
    if (__builtin_mul_overflow(bytes, std::uint64_t{n}, &bytes)) return most;
  }
  return std::min(bytes, most);
}

/// How large a pixel is, from such an image without contents: needed before the program's rows can be read.
cl_int element_size(image_body body, std::size_t& size) {
  body.flags &= ~static_cast<cl_mem_flags>(CL_MEM_USE_HOST_PTR | CL_MEM_COPY_HOST_PTR);
  auto probe = std::make_unique<memory_info>();
  cl_int code = CL_SUCCESS;
  image_reply made;
  const cl_mem one = create<cl_mem>(std::move(probe), &code,
                                    [&](std::uint64_t id) { return ask_for(body, id, {}, false, made); });
  if (one) (void)release(one);
  size = size_here(made.element_size);
  return code;
}

cl_mem make_image(cl_context context, std::vector<cl_mem_properties> properties, cl_mem_flags flags,
                  const cl_image_format* format, const cl_image_desc* shape, void* host,
                  cl_int* errcode_ret) {
  if (!alive(context)) return fail(errcode_ret, CL_INVALID_CONTEXT);
  if (!format) return fail(errcode_ret, CL_INVALID_IMAGE_FORMAT_DESCRIPTOR);
  if (!shape) return fail(errcode_ret, CL_INVALID_IMAGE_DESCRIPTOR);
  if (wants_host(flags) != (host != nullptr)) return fail(errcode_ret, CL_INVALID_HOST_PTR);
  if (shape->mem_object && !alive(shape->mem_object)) return fail(errcode_ret, CL_INVALID_IMAGE_DESCRIPTOR);
  if (!host && !shape->mem_object && (shape->image_row_pitch || shape->image_slice_pitch))
    return fail(errcode_ret, CL_INVALID_IMAGE_DESCRIPTOR);
  auto info = std::make_unique<memory_info>();
  memory_info& image = *info;
  image.context = needed(context);
  image.parent = needed(shape->mem_object);
  image.type = shape->image_type;
  image.flags = (flags & (CL_MEM_READ_WRITE | CL_MEM_WRITE_ONLY | CL_MEM_READ_ONLY))
                    ? flags
                    : flags | CL_MEM_READ_WRITE;
  image.format = *format;
  image.shape = *shape;
  image.properties = std::move(properties);
  const auto& in = *find<context_info>(context);
  if (!shape->mem_object) memory_claim::make_room(in, most_bytes(*shape));
  image_body body = body_of(context, flags, *format, *shape);
  std::vector<std::byte> contents;
  if (host) {
    std::size_t element = 0;
    if (const cl_int code = element_size(body, element); code != CL_SUCCESS) return fail(errcode_ret, code);
    image.made.element_size = element;
    const auto whole = extent_of(*shape);
    box b;
    if (!set_box(b, image, whole.data(), shape->image_row_pitch, shape->image_slice_pitch))
      return fail(errcode_ret, CL_INVALID_IMAGE_DESCRIPTOR);
    const std::size_t region[3] = {whole[0] * element, whole[1], whole[2]};
    contents = gather(rows_of(b, host, region));
    if (flags & CL_MEM_USE_HOST_PTR) {
      image.host = static_cast<std::byte*>(host);
      image.host_row = b.row, image.host_slice = b.slice;
    }
  }
  return create<cl_mem>(std::move(info), errcode_ret, [&](std::uint64_t id) {
    const cl_int code = ask_for(body, id, contents, host != nullptr, image.made);
    image.size = size_here(image.made.size);
    if (code == CL_SUCCESS && !shape->mem_object) image.claim = memory_claim::of_made(in, image.made.size);
    return code;
  });
}

/// A region of an image that a command names, and its bytes in the program's memory.
cl_int check_place(const command& c, cl_mem memory, const std::size_t* origin, const std::size_t* region,
                   cl_mem_flags refused, std::size_t row_pitch, std::size_t slice_pitch, place_body& place,
                   box& here) {
  if (const cl_int code = c.check(memory); code != CL_SUCCESS) return code;
  const auto& image = *find<memory_info>(memory);
  if (!is_image(image.type)) return CL_INVALID_MEM_OBJECT;
  if (const cl_int code = check_region(image, origin, region); code != CL_SUCCESS) return code;
  if (!set_box(here, image, region, row_pitch, slice_pitch)) return CL_INVALID_VALUE;
  if (image.flags & refused) return CL_INVALID_OPERATION;
  place.memory = id_of(memory);
  place.form = marshal::opencl::place_form::image;
  std::copy_n(origin, 3, place.origin);
  std::copy_n(region, 3, place.region);
  return CL_SUCCESS;
}

struct in_bytes {
  std::size_t region[3];
  in_bytes(cl_mem image, const std::size_t* pixels)
      : region{pixels[0] * static_cast<std::size_t>(find<memory_info>(image)->made.element_size), pixels[1],
               pixels[2]} {}
};

struct pitches {
  std::size_t row, slice;
};

/// What reads and writes check alike; `move` then has the place, its rows in the program's memory, and the
/// region in bytes.
template <class Move>
cl_int move_pixels(const command& c, cl_mem image, const std::size_t* origin, const std::size_t* region,
                   cl_mem_flags refused, pitches in_memory, const void* ptr, Move&& move) {
  if (c.code() != CL_SUCCESS) return c.code();
  place_body place;
  box here;
  if (const cl_int code =
          check_place(c, image, origin, region, refused, in_memory.row, in_memory.slice, place, here);
      code)
    return code;
  return ptr ? move(place, here, in_bytes(image, region).region) : CL_INVALID_VALUE;
}

cl_int check_image(const command& c, cl_mem memory, const std::size_t* origin, const std::size_t* region) {
  if (const cl_int code = c.check(memory); code != CL_SUCCESS) return code;
  const auto& image = *find<memory_info>(memory);
  return !is_image(image.type) ? CL_INVALID_MEM_OBJECT : check_region(image, origin, region);
}

/// Between a buffer and an image: are the region's bytes in the buffer?
cl_int check_buffer(const command& c, cl_mem buffer, std::size_t offset, cl_mem image,
                    const std::size_t* region) {
  if (const cl_int code = c.check(buffer); code != CL_SUCCESS) return code;
  const auto& info = *find<memory_info>(buffer);
  box b;
  if (info.type != CL_MEM_OBJECT_BUFFER) return CL_INVALID_MEM_OBJECT;
  if (!set_box(b, *find<memory_info>(image), region, 0, 0)) return CL_INVALID_VALUE;
  return b.bytes <= info.size && offset <= info.size - b.bytes ? CL_SUCCESS : CL_INVALID_VALUE;
}

}  // namespace

cl_mem clCreateImage(cl_context context, cl_mem_flags flags, const cl_image_format* format,
                     const cl_image_desc* shape, void* host, cl_int* errcode_ret) {
  return make_image(context, {}, flags, format, shape, host, errcode_ret);
}

cl_mem clCreateImageWithProperties(cl_context context, const cl_mem_properties* properties,
                                   cl_mem_flags flags, const cl_image_format* format,
                                   const cl_image_desc* shape, void* host, cl_int* errcode_ret) {
  if (properties && *properties) return fail(errcode_ret, CL_INVALID_PROPERTY);
  std::vector<cl_mem_properties> given;
  if (properties) given.push_back(0);
  return make_image(context, std::move(given), flags, format, shape, host, errcode_ret);
}

cl_mem clCreateImage2D(cl_context context, cl_mem_flags flags, const cl_image_format* format,
                       std::size_t width, std::size_t height, std::size_t row_pitch, void* host,
                       cl_int* errcode_ret) {
  cl_image_desc shape{};
  shape.image_type = CL_MEM_OBJECT_IMAGE2D;
  shape.image_width = width, shape.image_height = height, shape.image_row_pitch = row_pitch;
  return make_image(context, {}, flags, format, &shape, host, errcode_ret);
}

cl_mem clCreateImage3D(cl_context context, cl_mem_flags flags, const cl_image_format* format,
                       std::size_t width, std::size_t height, std::size_t depth, std::size_t row_pitch,
                       std::size_t slice_pitch, void* host, cl_int* errcode_ret) {
  cl_image_desc shape{};
  shape.image_type = CL_MEM_OBJECT_IMAGE3D;
  shape.image_width = width, shape.image_height = height, shape.image_depth = depth;
  shape.image_row_pitch = row_pitch, shape.image_slice_pitch = slice_pitch;
  return make_image(context, {}, flags, format, &shape, host, errcode_ret);
}

cl_int clGetSupportedImageFormats(cl_context context, cl_mem_flags flags, cl_mem_object_type type,
                                  cl_uint entries, cl_image_format* formats, cl_uint* count) {
  if (!alive(context)) return CL_INVALID_CONTEXT;
  if (entries == 0 && formats) return CL_INVALID_VALUE;
  message m(opcode::clGetSupportedImageFormats);
  marshal::put_body(m.body(), marshal::opencl::formats_body{id_of(context), flags, type});
  if (const cl_int code = m.call(); code != CL_SUCCESS) return code;
  wire::reader reply = m.reply();
  std::vector<cl_image_format> all(reply.rest().size() / sizeof(cl_image_format));
  for (cl_image_format& f : all)
    f.image_channel_order = reply.get<cl_uint>(), f.image_channel_data_type = reply.get<cl_uint>();
  if (formats) std::copy_n(all.begin(), std::min<std::size_t>(entries, all.size()), formats);
  if (count) *count = static_cast<cl_uint>(all.size());
  return CL_SUCCESS;
}

cl_int clGetImageInfo(cl_mem memory, cl_image_info name, std::size_t size, void* value, std::size_t* wanted) {
  const auto* const info = find<memory_info>(memory);
  if (!info || !is_image(info->type)) return CL_INVALID_MEM_OBJECT;
  const asked to{size, value, wanted};
  const cl_image_desc& shape = info->shape;
  const bool flat = shape.image_type != CL_MEM_OBJECT_IMAGE3D;
  const bool array =
      shape.image_type == CL_MEM_OBJECT_IMAGE1D_ARRAY || shape.image_type == CL_MEM_OBJECT_IMAGE2D_ARRAY;
  const bool line = shape.image_type == CL_MEM_OBJECT_IMAGE1D ||
                    shape.image_type == CL_MEM_OBJECT_IMAGE1D_ARRAY ||
                    shape.image_type == CL_MEM_OBJECT_IMAGE1D_BUFFER;
  switch (name) {
    case CL_IMAGE_FORMAT:
      return to.one(info->format);
    case CL_IMAGE_ELEMENT_SIZE:
      return to.one(size_here(info->made.element_size));
    case CL_IMAGE_ROW_PITCH:
      return to.one(size_here(info->host_row ? info->host_row : info->made.row_pitch));
    case CL_IMAGE_SLICE_PITCH:
      return to.one(
          size_here(info->host_slice && !(flat && !array) ? info->host_slice : info->made.slice_pitch));
    case CL_IMAGE_WIDTH:
      return to.one(shape.image_width);
    case CL_IMAGE_HEIGHT:
      return to.one(line ? std::size_t{0} : shape.image_height);
    case CL_IMAGE_DEPTH:
      return to.one(flat ? std::size_t{0} : shape.image_depth);
    case CL_IMAGE_ARRAY_SIZE:
      return to.one(array ? shape.image_array_size : std::size_t{0});
    case CL_IMAGE_BUFFER:
      return to.one(shape.mem_object);
    case CL_IMAGE_NUM_MIP_LEVELS:
      return to.one(shape.num_mip_levels);
    case CL_IMAGE_NUM_SAMPLES:
      return to.one(shape.num_samples);
    default:
      return CL_INVALID_VALUE;
  }
}

cl_int clEnqueueReadImage(cl_command_queue queue, cl_mem image, cl_bool blocking, const std::size_t* origin,
                          const std::size_t* region, std::size_t row_pitch, std::size_t slice_pitch,
                          void* ptr, cl_uint count, const cl_event* waits, cl_event* event) {
  command c(queue, count, waits, event, CL_COMMAND_READ_IMAGE);
  return move_pixels(c, image, origin, region, no_reads, {row_pitch, slice_pitch}, ptr,
                     [&](const place_body& place, const box& here, const std::size_t* bytes) {
                       return read(c, place, rows_of(here, ptr, bytes), blocking);
                     });
}

cl_int clEnqueueWriteImage(cl_command_queue queue, cl_mem image, cl_bool, const std::size_t* origin,
                           const std::size_t* region, std::size_t row_pitch, std::size_t slice_pitch,
                           const void* ptr, cl_uint count, const cl_event* waits, cl_event* event) {
  command c(queue, count, waits, event, CL_COMMAND_WRITE_IMAGE);
  return move_pixels(c, image, origin, region, no_writes, {row_pitch, slice_pitch}, ptr,
                     [&](const place_body& place, const box& here, const std::size_t* bytes) {
                       return write(c, place, rows_of(here, ptr, bytes));
                     });
}

void* clEnqueueMapImage(cl_command_queue queue, cl_mem image, cl_bool blocking, cl_map_flags flags,
                        const std::size_t* origin, const std::size_t* region, std::size_t* row_pitch,
                        std::size_t* slice_pitch, cl_uint count, const cl_event* waits, cl_event* event,
                        cl_int* errcode_ret) {
  command c(queue, count, waits, event, CL_COMMAND_MAP_IMAGE);
  if (c.code() != CL_SUCCESS) return fail(errcode_ret, c.code());
  if (!map_flags_fit(flags) || !row_pitch) return fail(errcode_ret, CL_INVALID_VALUE);
  auto* const known = find<memory_info>(image);
  const std::size_t host_row = known ? known->host_row : 0, host_slice = known ? known->host_slice : 0;
  mapping m;
  box here;
  if (const cl_int code =
          check_place(c, image, origin, region, refused_by(flags), host_row, host_slice, m.place, here);
      code)
    return fail(errcode_ret, code);
  const bool layered = known->type == CL_MEM_OBJECT_IMAGE3D || known->type == CL_MEM_OBJECT_IMAGE1D_ARRAY ||
                       known->type == CL_MEM_OBJECT_IMAGE2D_ARRAY;
  if (layered && !slice_pitch) return fail(errcode_ret, CL_INVALID_VALUE);
  m.flags = flags, m.waited = blocking;
  m.size = here.bytes, m.row = here.row, m.slice = here.slice;
  const bool rows_are_layers = known->type == CL_MEM_OBJECT_IMAGE1D_ARRAY;
  m.at = known->host ? known->host + origin[0] * known->made.element_size + origin[1] * here.row +
                           origin[2] * here.slice
                     : make_room(m);
  place_body fetched = m.place;
  landing land = rows_of(here, m.at, in_bytes(image, region).region);
  if (flags & CL_MAP_WRITE_INVALIDATE_REGION) {
    // As of a buffer: a first pixel stands for the order of things.
    std::fill_n(fetched.region, 3, 1);
    land = row_of(m.at, static_cast<std::size_t>(known->made.element_size));
  }
  const cl_int code = read(c, fetched, land, blocking);
  if (code != CL_SUCCESS) return fail(errcode_ret, code);
  *row_pitch = here.row;
  if (slice_pitch) *slice_pitch = !layered ? 0 : rows_are_layers ? here.row : here.slice;
  if (errcode_ret) *errcode_ret = CL_SUCCESS;
  const std::lock_guard lock(known->mutex);
  return known->mappings.emplace_back(std::move(m)).at;
}

/// The colour has four numbers, but of depth images, which have one.
cl_int clEnqueueFillImage(cl_command_queue queue, cl_mem image, const void* colour, const std::size_t* origin,
                          const std::size_t* region, cl_uint count, const cl_event* waits, cl_event* event) {
  command c(queue, count, waits, event, CL_COMMAND_FILL_IMAGE);
  if (c.code() != CL_SUCCESS) return c.code();
  if (const cl_int code = check_image(c, image, origin, region); code != CL_SUCCESS) return code;
  if (!colour) return CL_INVALID_VALUE;
  std::array<std::byte, 16> whole{};
  const bool depth = find<memory_info>(image)->format.image_channel_order == CL_DEPTH;
  std::memcpy(whole.data(), colour, depth ? sizeof(float) : whole.size());
  return c.done(remote<opcode::clEnqueueFillImage>(c.event(), queue, image,
                                                   static_cast<const void*>(whole.data()), origin, region,
                                                   count, wire_list(waits, count).data(), event));
}

cl_int clEnqueueCopyImage(cl_command_queue queue, cl_mem from, cl_mem to, const std::size_t* from_origin,
                          const std::size_t* to_origin, const std::size_t* region, cl_uint count,
                          const cl_event* waits, cl_event* event) {
  command c(queue, count, waits, event, CL_COMMAND_COPY_IMAGE);
  if (c.code() != CL_SUCCESS) return c.code();
  if (const cl_int code = check_image(c, from, from_origin, region); code != CL_SUCCESS) return code;
  if (const cl_int code = check_image(c, to, to_origin, region); code != CL_SUCCESS) return code;
  const auto &a = find<memory_info>(from)->format, &b = find<memory_info>(to)->format;
  if (a.image_channel_order != b.image_channel_order ||
      a.image_channel_data_type != b.image_channel_data_type)
    return CL_IMAGE_FORMAT_MISMATCH;
  bool apart = from != to;
  for (std::size_t i = 0; i < 3; ++i)
    apart = apart || from_origin[i] + region[i] <= to_origin[i] || to_origin[i] + region[i] <= from_origin[i];
  if (!apart) return CL_MEM_COPY_OVERLAP;
  return c.done(remote<opcode::clEnqueueCopyImage>(c.event(), queue, from, to, from_origin, to_origin, region,
                                                   count, wire_list(waits, count).data(), event));
}

cl_int clEnqueueCopyImageToBuffer(cl_command_queue queue, cl_mem image, cl_mem buffer,
                                  const std::size_t* origin, const std::size_t* region, std::size_t offset,
                                  cl_uint count, const cl_event* waits, cl_event* event) {
  command c(queue, count, waits, event, CL_COMMAND_COPY_IMAGE_TO_BUFFER);
  if (c.code() != CL_SUCCESS) return c.code();
  if (const cl_int code = check_image(c, image, origin, region); code != CL_SUCCESS) return code;
  if (const cl_int code = check_buffer(c, buffer, offset, image, region); code != CL_SUCCESS) return code;
  return c.done(remote<opcode::clEnqueueCopyImageToBuffer>(
      c.event(), queue, image, buffer, origin, region, offset, count, wire_list(waits, count).data(), event));
}

cl_int clEnqueueCopyBufferToImage(cl_command_queue queue, cl_mem buffer, cl_mem image, std::size_t offset,
                                  const std::size_t* origin, const std::size_t* region, cl_uint count,
                                  const cl_event* waits, cl_event* event) {
  command c(queue, count, waits, event, CL_COMMAND_COPY_BUFFER_TO_IMAGE);
  if (c.code() != CL_SUCCESS) return c.code();
  if (const cl_int code = check_image(c, image, origin, region); code != CL_SUCCESS) return code;
  if (const cl_int code = check_buffer(c, buffer, offset, image, region); code != CL_SUCCESS) return code;
  return c.done(remote<opcode::clEnqueueCopyBufferToImage>(
      c.event(), queue, buffer, image, offset, origin, region, count, wire_list(waits, count).data(), event));
}

}  // namespace outboard::frontend::opencl::ends
