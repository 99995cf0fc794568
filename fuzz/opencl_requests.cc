#include "opencl_requests.hh"

#include "marshal/opencl/bodies.hh"
#include "marshal/opencl/build_files.hh"
#include "marshal/request.hh"
#include "opencl_world.hh"
#include "wire/handle.hh"

namespace outboard::fuzz {
namespace {

using namespace marshal::opencl;
using api::handle_kind;
using api::opencl::opcode;
using api::opencl::service;

std::uint64_t id(handle_kind kind, std::uint32_t index = 0) {
  return wire::handle::make(static_cast<std::uint8_t>(kind), index, 1).value;
}
const std::uint64_t platform_id = id(handle_kind::cl_platform), device_id = id(handle_kind::cl_device),
                    context_id = id(handle_kind::cl_context), queue_id = id(handle_kind::cl_command_queue),
                    program_id = id(handle_kind::cl_program), kernel_id = id(handle_kind::cl_kernel),
                    sampler_id = id(handle_kind::cl_sampler), gate_id = id(handle_kind::cl_event);
std::uint64_t memory_id(std::uint32_t index) { return id(handle_kind::cl_mem, index); }
std::uint64_t event_id(std::uint32_t index) { return id(handle_kind::cl_event, index); }

enum : std::uint32_t { one_buffer, other_buffer, part, image, shown_image, pipe };
constexpr std::uint64_t size = 4096, staging = 1, own_area = 2;
constexpr cl_image_format pixels{CL_RGBA, CL_UNSIGNED_INT8};

class collector {
 public:
  template <class Code, class Body>
  void add(Code code, const Body& body, std::span<const std::byte> rest = {}) {
    example made{static_cast<std::uint32_t>(code), {}};
    wire::writer w(made.body);
    marshal::put_body(w, body);
    w.bytes(rest);
    to.all.push_back(std::move(made));
  }
  /// Adds the request of one line of the tables.
  template <auto Op, class... A>
  void line(std::uint64_t made_id, A... arguments) {
    example made{static_cast<std::uint32_t>(Op), {}};
    wire::writer w(made.body);
    marshal::encode_request<Op>(w, made_id, arguments...);
    to.all.push_back(std::move(made));
  }
  examples to;
};

command_body command(std::uint64_t event = 0, ids waits = {}) { return {queue_id, std::move(waits), event}; }
place_body row(std::uint32_t memory, std::uint64_t offset, std::uint64_t bytes) {
  place_body p;
  p.memory = memory_id(memory), p.offset = offset, p.size = bytes;
  return p;
}
place_body shared(std::uint64_t offset, std::uint64_t bytes) {
  place_body p;
  p.form = place_form::shared, p.offset = shared_address(0) + offset, p.size = bytes;
  return p;
}
place_body region(place_form form, std::uint32_t memory, std::uint64_t wide, std::uint64_t high) {
  place_body p;
  p.form = form, p.memory = memory_id(memory);
  p.region[0] = wide, p.region[1] = high, p.region[2] = 1;
  p.origin[0] = 2;
  if (form == place_form::box) p.row_pitch = 64, p.slice_pitch = 512;
  return p;
}

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto all = std::as_bytes(std::span(text));
  return {all.begin(), all.end()};
}
bytes_body behind(std::span<const std::byte> bytes) { return {0, bytes.size(), true}; }

image_body image_of(std::uint32_t index, std::uint64_t wide, std::uint64_t high, std::uint64_t memory) {
  image_body b;
  b.handle = memory_id(index), b.context = context_id, b.flags = CL_MEM_READ_WRITE;
  b.order = pixels.image_channel_order, b.type = pixels.image_channel_data_type;
  b.kind = CL_MEM_OBJECT_IMAGE2D, b.width = wide, b.height = high, b.memory = memory;
  return b;
}

void add_objects(collector& c) {
  c.add(opcode::clCreateContext, context_body{context_id, platform_id, {device_id}, {}});
  c.add(opcode::clCreateCommandQueueWithProperties, queue_body{queue_id, context_id, device_id, {}});
  for (const std::uint32_t index : {one_buffer, other_buffer})
    c.add(opcode::clCreateBufferWithProperties,
          buffer_body{memory_id(index), context_id, CL_MEM_READ_WRITE, size, 0, {}});
  c.add(opcode::clCreateSubBuffer,
        sub_buffer_body{memory_id(part), memory_id(one_buffer), CL_MEM_READ_WRITE, 1024, 1024});
  c.add(opcode::clCreateImageWithProperties, image_of(image, 16, 16, 0));
  c.add(opcode::clCreateImageWithProperties, image_of(shown_image, 16, 16, memory_id(other_buffer)));
  c.add(opcode::clCreatePipe, pipe_body{memory_id(pipe), context_id, CL_MEM_READ_WRITE, 4, 16});
  const auto text = bytes_of("kernel");
  c.add(opcode::clCreateProgramWithSource, source_body{program_id, context_id, behind(text)}, text);
  c.add(opcode::clBuildProgram, build_body{program_id, {}, true, "-DX"});
  c.add(opcode::clCreateKernel, kernel_body{kernel_id, program_id, "all"});
  c.line<opcode::clCreateSampler>(sampler_id, wire::handle{context_id}, cl_bool{0}, cl_uint{0x1130},
                                  cl_uint{0x1140}, static_cast<cl_int*>(nullptr));
  c.line<opcode::clCreateUserEvent>(gate_id, wire::handle{context_id}, static_cast<cl_int*>(nullptr));
  c.add(opcode::clSVMAlloc, shared_memory_body{context_id, CL_MEM_READ_WRITE, size, 0});
  c.add(opcode::clSVMAlloc,
        shared_memory_body{context_id, CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER, size, 0});
  c.add(service::open_area, area_body{staging, context_id, 16 * size, size});
  c.add(service::open_area, area_body{own_area, context_id, size, 0});
}

void add_arguments(collector& c) {
  using form = argument_form;
  const std::vector<std::uint8_t> eight(8), four(4);
  const argument_body all[] = {
      {kernel_id, 0, form::handle, 0, memory_id(one_buffer), {}},
      {kernel_id, 1, form::handle, 0, sampler_id, {}},
      {kernel_id, 2, form::handle, 0, sampler_id, {}},
      {kernel_id, 3, form::value, 0, 0, eight},
      {kernel_id, 4, form::value, 0, 0, eight},
      {kernel_id, 5, form::value, 0, 0, four},
      {kernel_id, 6, form::local, 64, 0, {}},
      {kernel_id, 7, form::handle, 0, memory_id(image), {}},
      {kernel_id, 8, form::handle, 0, queue_id, {}},
  };
  for (const argument_body& each : all) c.add(opcode::clSetKernelArg, each);
}

void add_transfers(collector& c) {
  const std::vector<std::byte> some(64), picture(4 * 4 * 4);
  c.add(opcode::clEnqueueWriteBuffer, write_body{command(), row(one_buffer, 16, 64), behind(some)}, some);
  c.add(
      opcode::clEnqueueWriteBuffer,
      write_body{command(event_id(1), {gate_id}), region(place_form::box, other_buffer, 16, 4), behind(some)},
      some);
  c.add(opcode::clEnqueueWriteBuffer,
        write_body{command(), region(place_form::image, image, 4, 4), behind(picture)}, picture);
  c.add(opcode::clEnqueueWriteBuffer, write_body{command(), shared(8, 64), behind(some)}, some);
  c.add(opcode::clEnqueueReadBuffer, read_body{command(event_id(2)), row(one_buffer, 0, size), true});
  c.add(opcode::clEnqueueReadBuffer, read_body{command(0, {gate_id}), row(part, 0, 1024), false});
  c.add(opcode::clEnqueueReadBuffer, read_body{command(), region(place_form::box, one_buffer, 8, 8), false});
  c.add(opcode::clEnqueueReadBuffer, read_body{command(), region(place_form::image, image, 8, 8), true});
  c.add(opcode::clEnqueueReadBuffer, read_body{command(), shared(0, 128), true});
  c.add(service::write_from, write_from_body{command(), row(one_buffer, 0, size), {staging, size}, size});
  c.add(service::write_from,
        write_from_body{command(0, {gate_id}), row(other_buffer, 0, 64), {staging, 2 * size}, 64});
  c.add(service::read_into, read_into_body{{command(), row(one_buffer, 0, size), true}, {own_area, 0}});
  c.add(service::read_into,
        read_into_body{{command(0, {gate_id}), row(one_buffer, 0, 64), false}, {staging, 3 * size}});
  c.add(service::await_area, await_area_body{staging, 1, false});
  c.add(service::await_area, await_area_body{staging, 2, true});
  c.add(service::close_area, close_area_body{own_area});
  c.add(service::upload, upload_body{7}, some);
  c.add(opcode::clEnqueueWriteBuffer, write_body{command(), row(one_buffer, 0, 64), {7, 64, true}});
}

void add_commands_of_lines(collector& c) {
  using wire::handle;
  const handle queue{queue_id}, one{memory_id(one_buffer)}, other{memory_id(other_buffer)},
      picture{memory_id(image)}, kernel{kernel_id};
  const handle waits[] = {handle{gate_id}};
  const handle* const nobody = nullptr;
  const std::size_t zero[3] = {}, box[3] = {16, 4, 2}, pixel[3] = {4, 4, 1}, items[1] = {8};
  cl_event place = nullptr;
  cl_event* const none = nullptr;
  c.line<opcode::clEnqueueFillBuffer>(0, queue, one, "abcd", std::size_t{4}, std::size_t{0}, size, cl_uint{0},
                                      nobody, none);
  c.line<opcode::clEnqueueCopyBuffer>(event_id(3), queue, one, other, std::size_t{0}, std::size_t{64},
                                      std::size_t{128}, cl_uint{1}, waits, &place);
  c.line<opcode::clEnqueueCopyBufferRect>(0, queue, one, other, zero, zero, box, std::size_t{64},
                                          std::size_t{512}, std::size_t{64}, std::size_t{512}, cl_uint{0},
                                          nobody, none);
  c.line<opcode::clEnqueueFillImage>(0, queue, picture, "0123456789abcdef", zero, pixel, cl_uint{0}, nobody,
                                     none);
  c.line<opcode::clEnqueueCopyImage>(0, queue, picture, handle{memory_id(shown_image)}, zero, zero, pixel,
                                     cl_uint{0}, nobody, none);
  c.line<opcode::clEnqueueCopyImageToBuffer>(0, queue, picture, one, zero, pixel, std::size_t{128},
                                             cl_uint{0}, nobody, none);
  c.line<opcode::clEnqueueCopyBufferToImage>(0, queue, one, picture, std::size_t{64}, zero, pixel, cl_uint{0},
                                             nobody, none);
  const handle both[] = {one, other};
  c.line<opcode::clEnqueueMigrateMemObjects>(0, queue, cl_uint{2}, both, cl_mem_migration_flags{0},
                                             cl_uint{0}, nobody, none);
  c.line<opcode::clEnqueueNDRangeKernel>(event_id(4), queue, kernel, cl_uint{1}, zero, items, items,
                                         cl_uint{0}, nobody, &place);
  c.line<opcode::clEnqueueMarkerWithWaitList>(0, queue, cl_uint{1}, waits, none);
  c.line<opcode::clEnqueueBarrierWithWaitList>(0, queue, cl_uint{0}, nobody, none);
  c.line<opcode::clWaitForEvents>(0, cl_uint{1}, waits);
  c.line<opcode::clSetUserEventStatus>(0, waits[0], cl_int{CL_COMPLETE});
  c.line<opcode::clFlush>(0, queue);
  c.line<opcode::clFinish>(0, queue);
  c.line<opcode::clCloneKernel>(id(handle_kind::cl_kernel, 1), kernel, static_cast<cl_int*>(nullptr));
  c.line<opcode::clReleaseContext>(0, handle{context_id});
  c.line<opcode::clReleaseCommandQueue>(0, queue);
  c.line<opcode::clReleaseMemObject>(0, one);
  c.line<opcode::clReleaseSampler>(0, handle{sampler_id});
  c.line<opcode::clReleaseProgram>(0, handle{program_id});
  c.line<opcode::clReleaseKernel>(0, kernel);
  c.line<opcode::clReleaseEvent>(0, waits[0]);
  c.line<opcode::clReleaseDevice>(0, handle{id(handle_kind::cl_device, 1)});
}

void add_shared_memory(collector& c) {
  const std::uint64_t coarse = shared_address(0), fine = shared_address(1);
  c.add(opcode::clEnqueueSVMMemcpy, shared_copy_body{command(), fine, coarse, 256, true});
  c.add(opcode::clEnqueueSVMMemFill, shared_fill_body{command(), coarse, 64, {1, 2, 3, 4}});
  c.add(opcode::clEnqueueSVMMap, shared_map_body{command(), CL_MAP_READ, fine, 64, false});
  c.add(opcode::clEnqueueSVMUnmap, shared_unmap_body{command(), fine});
  c.add(opcode::clEnqueueSVMMigrateMem, shared_migration_body{command(), 0, {coarse, fine}, {0, 64}});
  c.add(opcode::clSetKernelArgSVMPointer, kernel_addresses_body{kernel_id, 0, {coarse}});
  c.add(opcode::clSetKernelExecInfo, kernel_addresses_body{kernel_id, 0, {coarse, fine}});
  c.add(opcode::clCreateBufferWithProperties,
        buffer_body{memory_id(6), context_id, CL_MEM_READ_WRITE, 1024, coarse, {}});
  c.add(opcode::clSVMFree, address_body{coarse});
}

void add_programs_and_questions(collector& c) {
  const auto text = bytes_of("binary"), file = bytes_of("int a;");
  const auto program = [](std::uint32_t index) { return id(handle_kind::cl_program, index); };
  c.add(opcode::clCreateProgramWithBinary,
        binary_body{program(1), context_id, {device_id}, {6}, behind(text)}, text);
  c.add(opcode::clCreateProgramWithIL, source_body{program(2), context_id, behind(text)}, text);
  c.add(opcode::clCreateProgramWithBuiltInKernels, built_in_body{program(3), context_id, {device_id}, "x"});
  c.add(opcode::clCompileProgram,
        compile_body{{program_id, {device_id}, true, "-I."}, {program(1)}, {"x.h"}});
  c.add(opcode::clLinkProgram, link_body{program(4), context_id, {}, {program_id}, false, ""});
  c.add(opcode::clGetProgramInfo, question_body{program_id, 0, CL_PROGRAM_BINARIES, {}});
  c.add(opcode::clGetProgramInfo, question_body{program_id, 0, CL_PROGRAM_BINARY_SIZES, {}});
  c.add(opcode::clGetKernelSubGroupInfo,
        question_body{kernel_id, device_id, 0x2033, {8, 0, 0, 0, 0, 0, 0, 0}});
  c.add(opcode::clGetEventInfo, question_body{gate_id, 0, 0, {}});
  c.add(opcode::clGetEventProfilingInfo, question_body{gate_id, 0, 0, {}});
  c.add(opcode::clSetEventCallback, event_callback_body{gate_id, 9, CL_COMPLETE});
  c.add(opcode::clGetSupportedImageFormats, formats_body{context_id, 1, CL_MEM_OBJECT_IMAGE2D});
  c.add(opcode::clCreateSubDevices,
        division_body{device_id, {CL_DEVICE_PARTITION_BY_COUNTS, 1, 1, 0}, false, 2});
  c.add(service::settle_memory, settle_body{{device_id}, 1 << 20});
  build_files_body files{
      "/home", {"/home/inc"}, {{"/home/inc/a.h", sha256(file), file.size(), file_bytes::kept}}, behind(file)};
  c.add(service::build_files, files, file);
  auto with_contents = image_of(7, 4, 4, 0);
  const std::vector<std::byte> picture(4 * 4 * 4);
  with_contents.contents = behind(picture);
  c.add(opcode::clCreateImageWithProperties, with_contents, picture);
  const std::vector<std::byte> filled(64);
  c.add(
      opcode::clCreateBufferWithProperties,
      buffer_body{memory_id(8), context_id, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, 64, 0, behind(filled)},
      filled);
}

/// Adds requests whose bytes would travel over data connections. Here there are none, and the last request
/// ends the session.
void add_pieces(collector& c) {
  c.add(service::data_open, connections_body{context_id, {1, {marshal::share_token{1}}, 0}});
  c.add(service::read_piece, read_piece_body{command(event_id(5)), row(one_buffer, 0, size), 1, 1, 0});
  c.to.all.push_back({static_cast<std::uint32_t>(service::catch_up), {}});
  c.add(service::write_piece, write_piece_body{command(), row(one_buffer, 0, size), context_id, 1});
}

}  // namespace

const examples& opencl_requests() {
  static const examples made = [] {
    collector c;
    add_objects(c);
    add_arguments(c);
    c.to.first = c.to.all.size();
    add_transfers(c);
    add_commands_of_lines(c);
    add_shared_memory(c);
    add_programs_and_questions(c);
    add_pieces(c);
    return std::move(c.to);
  }();
  return made;
}

}  // namespace outboard::fuzz
