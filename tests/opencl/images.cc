// Images: created with and without contents, read, written, filled, copied, mapped, and sampled by a kernel;
// also a program created from its binary.
#include <cstring>

#include "program.hh"

static const char* const source = R"(
__kernel void mirror(__read_only image2d_t from, sampler_t how, __write_only image2d_t to) {
  int x = get_global_id(0), y = get_global_id(1), w = get_image_width(from);
  write_imageui(to, (int2)(w - 1 - x, y), read_imageui(from, how, (int2)(x, y)));
}
)";

static cl_program from_binary(const machine& m, cl_program program) {
  std::size_t size = 0;
  CHECK_CL(clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof size, &size, nullptr));
  REQUIRE(size > 0);
  std::vector<unsigned char> bytes(size);
  unsigned char* place = bytes.data();
  CHECK_CL(clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof place, &place, nullptr));
  const unsigned char* binary = bytes.data();
  cl_int code = CL_SUCCESS, status = 1;
  cl_program made = clCreateProgramWithBinary(m.context, 1, &m.device, &size, &binary, &status, &code);
  CHECK_CL(code);
  CHECK_CL(status);
  CHECK_CL(clBuildProgram(made, 0, nullptr, nullptr, nullptr, nullptr));
  return made;
}

int main() {
  const machine m;
  cl_uint formats = 0;
  CHECK_CL(
      clGetSupportedImageFormats(m.context, CL_MEM_READ_WRITE, CL_MEM_OBJECT_IMAGE2D, 0, nullptr, &formats));
  REQUIRE(formats > 0);
  const std::size_t w = 37, h = 11, gap = 3;
  // Rows with gaps between them.
  std::vector<cl_uint> rows((w + gap) * h);
  for (std::size_t y = 0; y < h; ++y)
    for (std::size_t x = 0; x < w; ++x)
      rows[y * (w + gap) + x] = static_cast<cl_uint>(0x01020304u * (x + 1) + y);
  const cl_image_format format{CL_RGBA, CL_UNSIGNED_INT8};
  cl_image_desc shape{};
  shape.image_type = CL_MEM_OBJECT_IMAGE2D;
  shape.image_width = w, shape.image_height = h, shape.image_row_pitch = (w + gap) * 4;
  cl_int code = CL_SUCCESS;
  cl_mem from =
      clCreateImage(m.context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, &format, &shape, rows.data(), &code);
  CHECK_CL(code);
  shape.image_row_pitch = 0;
  cl_mem to = clCreateImage(m.context, CL_MEM_READ_WRITE, &format, &shape, nullptr, &code);
  CHECK_CL(code);
  std::size_t value = 0;
  CHECK_CL(clGetImageInfo(to, CL_IMAGE_WIDTH, sizeof value, &value, nullptr));
  REQUIRE(value == w);
  CHECK_CL(clGetImageInfo(to, CL_IMAGE_ELEMENT_SIZE, sizeof value, &value, nullptr));
  REQUIRE(value == 4);
  const cl_uint black[4] = {1, 2, 3, 4};
  const std::size_t origin[3] = {}, whole[3] = {w, h, 1};
  CHECK_CL(clEnqueueFillImage(m.queue, to, black, origin, whole, 0, nullptr, nullptr));

  cl_program source_program = m.build(source), program = from_binary(m, source_program);
  cl_kernel mirror = m.kernel(program, "mirror");
  cl_sampler sampler =
      clCreateSampler(m.context, CL_FALSE, CL_ADDRESS_CLAMP_TO_EDGE, CL_FILTER_NEAREST, &code);
  CHECK_CL(code);
  set_arguments(mirror, from, sampler, to);
  const std::size_t global[] = {w, h};
  CHECK_CL(clEnqueueNDRangeKernel(m.queue, mirror, 2, nullptr, global, nullptr, 0, nullptr, nullptr));
  std::vector<cl_uint> seen((w + gap) * h, 7);
  CHECK_CL(clEnqueueReadImage(m.queue, to, CL_TRUE, origin, whole, (w + gap) * 4, 0, seen.data(), 0, nullptr,
                              nullptr));
  for (std::size_t y = 0; y < h; ++y) {
    for (std::size_t x = 0; x < w + gap; ++x)
      REQUIRE(seen[y * (w + gap) + x] == (x < w ? rows[y * (w + gap) + w - 1 - x] : 7));
  }

  // Changes one part with a map, another with a write, and reads both through a buffer.
  const std::size_t part_origin[3] = {5, 2, 0}, part[3] = {8, 4, 1};
  std::size_t pitch = 0;
  auto* mapped = static_cast<unsigned char*>(clEnqueueMapImage(m.queue, to, CL_TRUE,
                                                               CL_MAP_READ | CL_MAP_WRITE, part_origin, part,
                                                               &pitch, nullptr, 0, nullptr, nullptr, &code));
  CHECK_CL(code);
  REQUIRE(pitch >= 8 * 4);
  cl_uint first = 0;
  std::memcpy(&first, mapped, sizeof first);
  REQUIRE(first == seen[2 * (w + gap) + 5]);
  for (std::size_t y = 0; y < 4; ++y)
    for (std::size_t x = 0; x < 8; ++x) {
      const cl_uint pixel = static_cast<cl_uint>(1000 * y + x);
      std::memcpy(mapped + y * pitch + x * 4, &pixel, sizeof pixel);
    }
  CHECK_CL(clEnqueueUnmapMemObject(m.queue, to, mapped, 0, nullptr, nullptr));
  cl_mem buffer = clCreateBuffer(m.context, CL_MEM_READ_WRITE, 8 * 4 * 4, nullptr, &code);
  CHECK_CL(code);
  CHECK_CL(clEnqueueCopyImageToBuffer(m.queue, to, buffer, part_origin, part, 0, 0, nullptr, nullptr));
  CHECK_CL(clEnqueueCopyBufferToImage(m.queue, buffer, to, 0, origin, part, 0, nullptr, nullptr));
  std::vector<cl_uint> corner(8 * 4);
  CHECK_CL(clEnqueueReadImage(m.queue, to, CL_TRUE, origin, part, 0, 0, corner.data(), 0, nullptr, nullptr));
  for (std::size_t i = 0; i < corner.size(); ++i) REQUIRE(corner[i] == 1000 * (i / 8) + i % 8);
  const std::size_t beyond[3] = {w - 3, 0, 0};
  std::printf("beyond: %d\n", clEnqueueReadImage(m.queue, to, CL_TRUE, beyond, part, 0, 0, corner.data(), 0,
                                                 nullptr, nullptr));
  CHECK_CL(clReleaseSampler(sampler));
  CHECK_CL(clReleaseKernel(mirror));
  for (cl_program each : {source_program, program}) CHECK_CL(clReleaseProgram(each));
  for (cl_mem each : {from, to, buffer}) CHECK_CL(clReleaseMemObject(each));
  std::printf("images\n");
}
