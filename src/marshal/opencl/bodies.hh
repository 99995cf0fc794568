// The bodies of hand-written OpenCL requests and replies: one struct for each message. Handles are the ids
// that the front-end chose. Values; no thread rules.
#pragma once

#include "marshal/data_bodies.hh"
#include "marshal/fields.hh"

namespace outboard::marshal::opencl {

using ids = std::vector<std::uint64_t>;

/// A place in a transfer area; area 0: nowhere.
struct area_place {
  std::uint64_t area = 0, offset = 0;
  OUTBOARD_FIELDS(area, offset)
};

/// Bytes that belong to a request: behind its fields, uploaded earlier under this number, or (for a write) in
/// an area.
struct bytes_body {
  std::uint64_t upload = 0;  ///< 0: they follow
  std::uint64_t size = 0;
  bool present = false;
  OUTBOARD_FIELDS(upload, size, present)
};

/// service::open_area: opens memory that both ends share for commands of this context, under the client's
/// number. If an area has blocks (`block` bytes each; 0: none), the server tracks which of them are in use.
struct area_body {
  std::uint64_t number = 0, context = 0, size = 0, block = 0;
  OUTBOARD_FIELDS(number, context, size, block)
};

/// service::close_area.
struct close_area_body {
  std::uint64_t number = 0;
  OUTBOARD_FIELDS(number)
};

/// service::await_area: waits until the last command on the block is complete; without `patient` it waits
/// only for a moment.
struct await_area_body {
  std::uint64_t number = 0, block = 0;
  bool patient = false;
  OUTBOARD_FIELDS(number, block, patient)
};

/// The answer to await_area: a bit for each block that a command still uses, and for each whose last command
/// failed.
struct busy_blocks_body {
  std::uint64_t busy = 0, failed = 0;
  OUTBOARD_FIELDS(busy, failed)
};

/// service::upload: the bytes follow; the bytes under one number are concatenated in order of arrival.
struct upload_body {
  std::uint64_t number = 0;
  OUTBOARD_FIELDS(number)
};

/// The fields that every command has.
struct command_body {
  std::uint64_t queue = 0;
  ids waits;
  std::uint64_t event = 0;  ///< 0: the program wants none
  OUTBOARD_FIELDS(queue, waits, event)
};

/// clCreateSubDevices: the reply has up to `room` devices, or only their number. It names each device as the
/// snapshot does.
struct division_body {
  std::uint64_t device = 0;
  ids properties;  ///< without the final zero
  bool counted = false;
  std::uint64_t room = 0;
  OUTBOARD_FIELDS(device, properties, counted, room)
};

struct pipe_body {
  std::uint64_t handle = 0, context = 0, flags = 0;
  std::uint32_t packet_size = 0, packets = 0;
  OUTBOARD_FIELDS(handle, context, flags, packet_size, packets)
};

/// service::settle_memory: waits a moment for released objects that are still in use, until these devices
/// have room for so many bytes. The reply: how many bytes are still in use.
struct settle_body {
  ids devices;
  std::uint64_t wanted = 0;
  OUTBOARD_FIELDS(devices, wanted)
};
struct settle_reply {
  std::uint64_t dying = 0;
  OUTBOARD_FIELDS(dying)
};

struct shared_memory_body {
  std::uint64_t context = 0, flags = 0, size = 0;
  std::uint32_t alignment = 0;
  OUTBOARD_FIELDS(context, flags, size, alignment)
};

/// clSVMFree, and the reply to clSVMAlloc. A fine-grained block comes with the descriptor of a file; its
/// pages are the file's bytes from offset `address` on.
struct address_body {
  std::uint64_t address = 0;
  OUTBOARD_FIELDS(address)
};

/// clEnqueueSVMMemcpy between two places of shared memory.
struct shared_copy_body {
  command_body command;
  std::uint64_t to = 0, from = 0, size = 0;
  bool blocking = false;
  OUTBOARD_FIELDS(command, to, from, size, blocking)
};

struct shared_fill_body {
  command_body command;
  std::uint64_t address = 0, size = 0;
  std::vector<std::uint8_t> pattern;
  OUTBOARD_FIELDS(command, address, size, pattern)
};

/// clEnqueueSVMMap and clEnqueueSVMUnmap for memory whose pages both ends share: no bytes travel.
struct shared_map_body {
  command_body command;
  std::uint64_t flags = 0, address = 0, size = 0;
  bool blocking = false;
  OUTBOARD_FIELDS(command, flags, address, size, blocking)
};
struct shared_unmap_body {
  command_body command;
  std::uint64_t address = 0;
  OUTBOARD_FIELDS(command, address)
};

struct shared_migration_body {
  command_body command;
  std::uint64_t flags = 0;
  ids addresses, sizes;  ///< as many as `addresses`; a size of zero: the whole block
  OUTBOARD_FIELDS(command, flags, addresses, sizes)
};

/// clSetKernelArgSVMPointer (`index`) and clSetKernelExecInfo with CL_KERNEL_EXEC_INFO_SVM_PTRS.
struct kernel_addresses_body {
  std::uint64_t kernel = 0;
  std::uint32_t index = 0;
  ids addresses;
  OUTBOARD_FIELDS(kernel, index, addresses)
};

struct context_body {
  std::uint64_t handle = 0, platform = 0;
  ids devices;
  ids properties;  ///< names and values, without that of the platform
  OUTBOARD_FIELDS(handle, platform, devices, properties)
};

struct queue_body {
  std::uint64_t handle = 0, context = 0, device = 0;
  ids properties;  ///< names and values
  OUTBOARD_FIELDS(handle, context, device, properties)
};

struct buffer_body {
  std::uint64_t handle = 0, context = 0, flags = 0, size = 0;
  std::uint64_t shared = 0;  ///< the shared memory behind the buffer; 0: none
  bytes_body contents;
  OUTBOARD_FIELDS(handle, context, flags, size, shared, contents)
};

/// cl_image_format and cl_image_desc; the contents travel without gaps between rows.
struct image_body {
  std::uint64_t handle = 0, context = 0, flags = 0;
  std::uint32_t order = 0, type = 0, kind = 0, levels = 0, samples = 0;
  std::uint64_t width = 0, height = 0, depth = 0, layers = 0, row_pitch = 0, slice_pitch = 0;
  std::uint64_t memory = 0;  ///< the buffer or image that the image shows; 0: none
  bytes_body contents;
  OUTBOARD_FIELDS(handle, context, flags, order, type, kind, levels, samples, width, height, depth, layers,
                  row_pitch, slice_pitch, memory, contents)
};

/// The image's properties as the device made it.
struct image_reply {
  std::uint64_t element_size = 0, row_pitch = 0, slice_pitch = 0, size = 0;
  OUTBOARD_FIELDS(element_size, row_pitch, slice_pitch, size)
};

struct formats_body {
  std::uint64_t context = 0, flags = 0;
  std::uint32_t kind = 0;
  OUTBOARD_FIELDS(context, flags, kind)
};

struct sub_buffer_body {
  std::uint64_t handle = 0, buffer = 0, flags = 0, origin = 0, size = 0;
  OUTBOARD_FIELDS(handle, buffer, flags, origin, size)
};

/// clCreateProgramWithSource, clCreateProgramWithIL.
struct source_body {
  std::uint64_t handle = 0, context = 0;
  bytes_body text;
  OUTBOARD_FIELDS(handle, context, text)
};

/// clCreateProgramWithBinary: the binaries one after the other; the reply says for each whether it was
/// accepted.
struct binary_body {
  std::uint64_t handle = 0, context = 0;
  ids devices, lengths;
  bytes_body binaries;
  OUTBOARD_FIELDS(handle, context, devices, lengths, binaries)
};

struct build_body {
  std::uint64_t program = 0;
  ids devices;  ///< empty: all devices of the program
  bool has_options = false;
  std::string options;
  OUTBOARD_FIELDS(program, devices, has_options, options)
};

/// clCompileProgram: each header is a program, with the name by which sources include it.
struct compile_body {
  build_body build;
  ids headers;
  std::vector<std::string> names;
  OUTBOARD_FIELDS(build, headers, names)
};

/// clLinkProgram; the reply is a link_reply.
struct link_body {
  std::uint64_t handle = 0, context = 0;
  ids devices, programs;
  bool has_options = false;
  std::string options;
  OUTBOARD_FIELDS(handle, context, devices, programs, has_options, options)
};

/// clCreateProgramWithBuiltInKernels; the reply is a build_reply.
struct built_in_body {
  std::uint64_t handle = 0, context = 0;
  ids devices;
  std::string names;
  OUTBOARD_FIELDS(handle, context, devices, names)
};

struct device_build {
  std::uint64_t device = 0;
  std::int32_t status = 0;
  std::uint32_t binary_type = 0;
  std::uint64_t global_variables = 0;
  std::string options, log;
  OUTBOARD_FIELDS(device, status, binary_type, global_variables, options, log)
};

/// The facts that clGetKernelArgInfo returns, if it returns any (`known`).
struct argument_facts {
  bool known = false;
  std::uint32_t address = 0, access = 0;
  std::uint64_t type_qualifier = 0;
  std::string type, name;
  OUTBOARD_FIELDS(known, address, access, type_qualifier, type, name)
};

/// What clGetKernelWorkGroupInfo returns for one device.
struct work_group_facts {
  std::uint64_t size = 0, multiple = 0, local_memory = 0, private_memory = 0;
  ids compiled;  ///< three numbers
  OUTBOARD_FIELDS(size, multiple, local_memory, private_memory, compiled)
};

struct kernel_facts {
  std::string name, attributes;
  std::vector<argument_facts> arguments;
  std::vector<work_group_facts> devices;  ///< in the order of the build's devices
  OUTBOARD_FIELDS(name, attributes, arguments, devices)
};

/// The result of clBuildProgram. `code` is the function's own.
struct build_reply {
  std::int32_t code = 0;
  std::vector<device_build> devices;
  std::vector<kernel_facts> kernels;
  OUTBOARD_FIELDS(code, devices, kernels)
};

struct link_reply {
  bool made = false;  ///< true: the handle names a program, linked or not
  build_reply built;
  OUTBOARD_FIELDS(made, built)
};

struct kernel_body {
  std::uint64_t handle = 0, program = 0;
  std::string name;
  OUTBOARD_FIELDS(handle, program, name)
};

enum class argument_form : std::uint8_t { value = 0, handle = 1, local = 2 };

struct argument_body {
  std::uint64_t kernel = 0;
  std::uint32_t index = 0;
  argument_form form = argument_form::value;
  std::uint64_t size = 0;    ///< size of local memory
  std::uint64_t handle = 0;  ///< 0: a null memory object
  std::vector<std::uint8_t> value;
  OUTBOARD_FIELDS(kernel, index, form, size, handle, value)
};

/// Where the bytes of a command are: in a row of a buffer, in a box of rows there, in an image (a region of
/// pixels), or in shared memory (the offset is an address).
enum class place_form : std::uint8_t { row = 0, box = 1, image = 2, shared = 3 };
struct place_body {
  std::uint64_t memory = 0;
  place_form form = place_form::row;
  std::uint64_t offset = 0, size = 0;  ///< in a row
  std::uint64_t origin[3] = {}, region[3] = {}, row_pitch = 0, slice_pitch = 0;
  OUTBOARD_FIELDS(memory, form, offset, size, origin[0], origin[1], origin[2], region[0], region[1],
                  region[2], row_pitch, slice_pitch)
};

/// clEnqueueReadBuffer, clEnqueueReadBufferRect, clEnqueueMapBuffer, clEnqueueSVMMap: the bytes come in data
/// frames, without gaps.
struct read_body {
  command_body command;
  place_body from;
  bool blocking = false;
  OUTBOARD_FIELDS(command, from, blocking)
};

/// service::read_into: like read_body, but the bytes are in the area when the command is complete.
struct read_into_body {
  read_body read;
  area_place into;
  OUTBOARD_FIELDS(read, into)
};

/// clEnqueueWriteBuffer, clEnqueueWriteBufferRect, clEnqueueUnmapMemObject, clEnqueueSVMUnmap: the bytes
/// travel without gaps.
struct write_body {
  command_body command;
  place_body to;
  bytes_body contents;
  OUTBOARD_FIELDS(command, to, contents)
};

/// service::write_from: like write_body, with bytes that stay in the area until the command is complete.
struct write_from_body {
  command_body command;
  place_body to;
  area_place from;
  std::uint64_t size = 0;
  OUTBOARD_FIELDS(command, to, from, size)
};

/// service::data_open: opens data connections for commands of this context. The reply is a data_open_reply.
struct connections_body {
  std::uint64_t context = 0;
  data_open_body opened;
  OUTBOARD_FIELDS(context, opened)
};

/// service::write_piece: the bytes are those of the frame with this number, which was sent earlier over a
/// data connection of the context.
struct write_piece_body {
  command_body command;
  place_body to;
  std::uint64_t context = 0, number = 0;
  OUTBOARD_FIELDS(command, to, context, number)
};

/// service::read_piece: see data_out_body.
struct read_piece_body {
  command_body command;
  place_body from;
  std::uint64_t number = 0;
  std::uint32_t connection = 0, pace = 0;
  OUTBOARD_FIELDS(command, from, number, connection, pace)
};

struct event_callback_body {
  std::uint64_t event = 0, number = 0;
  std::int32_t status = 0;
  OUTBOARD_FIELDS(event, number, status)
};

/// Asks for one value of an object; the reply is its bytes.
struct question_body {
  std::uint64_t object = 0, device = 0;
  std::uint32_t name = 0;
  std::vector<std::uint8_t> input;
  OUTBOARD_FIELDS(object, device, name, input)
};

}  // namespace outboard::marshal::opencl
