// Parts of devices, contexts, queues, buffers and pipes.
#include <chrono>
#include <thread>

#include "backend/opencl/ends.hh"
#include "backend/opencl/places.hh"
#include "backend/opencl/with_room.hh"
#include "marshal/opencl/bodies.hh"

namespace outboard::backend::opencl::ends {

using namespace marshal::opencl;

namespace {

/// How long a client waits for memory that it has released: commands that use it may take any time.
constexpr std::chrono::seconds patience{2};

/// To what a queue of a profiled program is asked for. The client answers for its program whether the queue
/// has profiling. (Those on the device run what kernels give them, which no event tells of.)
void add_profiling(ids& properties) {
  for (std::size_t i = 0; i + 1 < properties.size(); i += 2) {
    if (properties[i] != CL_QUEUE_PROPERTIES) continue;
    if ((properties[i + 1] & CL_QUEUE_ON_DEVICE) == 0) properties[i + 1] |= CL_QUEUE_PROFILING_ENABLE;
    return;
  }
  properties.insert(properties.end(), {CL_QUEUE_PROPERTIES, CL_QUEUE_PROFILING_ENABLE});
}

}  // namespace

/// Other lanes go on; nothing of this one's is named after the turn was given up.
outcome settle_memory(call& c) {
  settle_body body;
  if (!take_all(c, body)) return outcome::malformed();
  std::vector<cl_device_id> devices;
  const cl_int code = resolve_all(c, body.devices, devices);
  if (code != CL_SUCCESS) return outcome::answer(code);
  const auto ledger = own(c).ledger();
  const auto on = ledger->places_of(devices);
  // What has not been given to the device yet would keep its memory for ever.
  for (const std::uint64_t id : own(c).objects().ids(api::handle_kind::cl_command_queue)) {
    cl_command_queue queue = nullptr;
    if (resolve(c, id, queue) == CL_SUCCESS) own(c).table().clFlush(queue);
  }
  c.give_up_turn();
  const auto until = std::chrono::steady_clock::now() + patience;
  while (ledger->dying() != 0 && !ledger->fits(on, body.wanted) && std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  marshal::put_body(c.reply, settle_reply{ledger->dying()});
  return outcome::answer(CL_SUCCESS);
}

outcome upload(call& c) {
  const auto body = marshal::take_body<upload_body>(c.body);
  if (!c.body.ok() || body.number == 0 || !own(c).upload(body.number, c.body.rest()))
    return outcome::malformed();
  return outcome::answer(CL_SUCCESS);
}

/// Parts of a device: as many as the device makes of it, known from then on as the devices of the snapshot
/// are.
outcome clCreateSubDevices(call& c) {
  division_body body;
  if (!take_all(c, body) || body.properties.empty()) return outcome::malformed();
  auto* const divide = own(c).table().clCreateSubDevices;
  cl_device_id device = nullptr;
  cl_int code = resolve(c, body.device, device);
  std::vector<cl_device_partition_property> properties(body.properties.begin(), body.properties.end());
  // Lists of counts end with a zero of their own, whatever the client thinks.
  properties.insert(properties.end(), 2, 0);
  cl_uint count = 0;
  if (code == CL_SUCCESS && !divide) code = CL_INVALID_OPERATION;
  if (code == CL_SUCCESS) code = divide(device, properties.data(), 0, nullptr, &count);
  if (code == CL_SUCCESS && !body.counted && body.room < count) code = CL_INVALID_VALUE;
  division_reply reply{count, {}};
  if (code == CL_SUCCESS && !body.counted) {
    std::vector<cl_device_id> parts(count);
    code = divide(device, properties.data(), count, parts.data(), nullptr);
    for (std::size_t i = 0; i < parts.size() && code == CL_SUCCESS; ++i)
      reply.devices.push_back(own(c).introduce(parts[i], device));
  }
  marshal::put_body(c.reply, reply);
  return outcome::answer(code);
}

outcome clCreateContext(call& c) {
  context_body body;
  if (!take_all(c, body) || body.properties.size() % 2 != 0) return outcome::malformed();
  cl_platform_id platform = nullptr;
  cl_int code = resolve(c, body.platform, platform);
  std::vector<cl_device_id> devices;
  if (code == CL_SUCCESS) code = resolve_all(c, body.devices, devices);
  std::vector<cl_context_properties> properties{CL_CONTEXT_PLATFORM,
                                                reinterpret_cast<cl_context_properties>(platform)};
  for (std::size_t i = 0; i + 1 < body.properties.size(); i += 2) {
    // Values of others are pointers that platforms follow.
    if (body.properties[i] != CL_CONTEXT_INTEROP_USER_SYNC) return outcome::malformed();
    properties.push_back(CL_CONTEXT_INTEROP_USER_SYNC);
    properties.push_back(body.properties[i + 1] != 0);
  }
  properties.push_back(0);
  cl_context made = nullptr;
  if (code == CL_SUCCESS) {
    made = own(c).table().clCreateContext(properties.data(), static_cast<cl_uint>(devices.size()),
                                          devices.data(), nullptr, nullptr, &code);
  }
  return keep(c, body.handle, made, code);
}

outcome clCreateCommandQueueWithProperties(call& c) {
  queue_body body;
  if (!take_all(c, body) || body.properties.size() % 2 != 0) return outcome::malformed();
  const api::opencl::function_table& table = own(c).table();
  cl_context context = nullptr;
  cl_device_id device = nullptr;
  cl_int code = resolve(c, body.context, context);
  if (code == CL_SUCCESS) code = resolve(c, body.device, device);
  cl_command_queue made = nullptr;
  if (own(c).records().on()) add_profiling(body.properties);
  const bool plain = body.properties.empty() ||
                     (body.properties.size() == 2 && body.properties[0] == CL_QUEUE_PROPERTIES &&
                      (body.properties[1] & (CL_QUEUE_ON_DEVICE | CL_QUEUE_ON_DEVICE_DEFAULT)) == 0);
  if (code == CL_SUCCESS && plain && table.clCreateCommandQueue) {
    // Every platform has this one; its bits are all that was asked for.
    const cl_command_queue_properties bits = body.properties.empty() ? 0 : body.properties[1];
    made = table.clCreateCommandQueue(context, device, bits, &code);
  } else if (code == CL_SUCCESS && table.clCreateCommandQueueWithProperties) {
    std::vector<cl_queue_properties> properties(body.properties.begin(), body.properties.end());
    properties.push_back(0);
    made = table.clCreateCommandQueueWithProperties(context, device, properties.data(), &code);
  } else if (code == CL_SUCCESS) {
    code = CL_INVALID_QUEUE_PROPERTIES;
  }
  return keep(c, body.handle, made, code);
}

/// What the client's memory held comes along; the flags that speak of that memory mean the copy.
outcome clCreateBufferWithProperties(call& c) {
  const auto body = marshal::take_body<buffer_body>(c.body);
  if (!c.body.ok()) return outcome::malformed();
  auto contents = own(c).take_bytes(body.contents, c.body.rest());
  if (!contents || (body.contents.present && (contents->size() != body.size || body.shared)))
    return outcome::malformed();
  cl_context context = nullptr;
  cl_int code = resolve(c, body.context, context);
  cl_mem_flags flags = body.flags & ~static_cast<cl_mem_flags>(CL_MEM_USE_HOST_PTR | CL_MEM_COPY_HOST_PTR);
  void* host = nullptr;
  if (body.contents.present) flags |= CL_MEM_COPY_HOST_PTR, host = contents->data();
  if (body.shared && !own(c).shared().holds(body.shared, body.size)) code = CL_INVALID_HOST_PTR;
  // Here, too, the buffer is that very memory.
  if (body.shared) flags |= CL_MEM_USE_HOST_PTR, host = reinterpret_cast<void*>(body.shared);
  cl_mem made = nullptr;
  std::shared_ptr<memory_ledger::hold> held;
  const auto create = [&] {
    made = own(c).table().clCreateBuffer(context, flags, body.size, host, &code);
    return code;
  };
  if (code == CL_SUCCESS) code = body.shared ? create() : with_room(c, context, body.size, held, create);
  return keep_counted(c, body.handle, made, code, std::move(held));
}

outcome clCreateSubBuffer(call& c) {
  sub_buffer_body body;
  if (!take_all(c, body)) return outcome::malformed();
  cl_mem buffer = nullptr, made = nullptr;
  cl_int code = resolve(c, body.buffer, buffer);
  const cl_buffer_region region{body.origin, body.size};
  if (code == CL_SUCCESS) code = check_row(own(c).table(), buffer, body.origin, body.size);
  if (code == CL_SUCCESS) {
    made = own(c).table().clCreateSubBuffer(buffer, body.flags, CL_BUFFER_CREATE_TYPE_REGION, &region, &code);
  }
  return keep(c, body.handle, made, code);
}

outcome clCreatePipe(call& c) {
  pipe_body body;
  if (!take_all(c, body)) return outcome::malformed();
  auto* const create = own(c).table().clCreatePipe;
  cl_context context = nullptr;
  cl_mem made = nullptr;
  cl_int code = resolve(c, body.context, context);
  if (code == CL_SUCCESS && !create) code = CL_INVALID_OPERATION;
  std::shared_ptr<memory_ledger::hold> held;
  if (code == CL_SUCCESS) {
    code = with_room(c, context, std::uint64_t{body.packet_size} * body.packets, held, [&] {
      made = create(context, body.flags, body.packet_size, body.packets, nullptr, &code);
      return code;
    });
  }
  return keep_counted(c, body.handle, made, code, std::move(held));
}

}  // namespace outboard::backend::opencl::ends
