#include "backend/daemon/probe.hh"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>

#include "base/errno_text.hh"
#include "base/hex.hh"
#include "base/log.hh"
#include "marshal/cuda/driver_variables.hh"

namespace outboard::backend {
namespace {

/// A driver that initialises many GPUs without persistence takes tens of seconds.
constexpr std::chrono::seconds patience{120};

/// The probe sees what the operator lets the daemon see.
variables operators_variables(const variable_source& own) {
  variables list;
  for (const std::string_view name : marshal::driver_variables) {
    const char* value = own(name.data());
    if (value) list.emplace_back(name, value);
  }
  return list;
}

result<control_message> wait_for_answer(int control) {
  pollfd wait{control, POLLIN, 0};
  const auto until = std::chrono::steady_clock::now() + patience;
  while (true) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now()).count();
    const int ready = ::poll(&wait, 1, static_cast<int>(std::max<std::int64_t>(left, 0)));
    if (ready < 0 && errno == EINTR) continue;
    if (ready < 0) return failure("poll: " + errno_text(errno));
    if (ready == 0) return failure("no answer within " + std::to_string(patience.count()) + " s");
    auto message = receive_control(control, false);
    if (!message.ok()) return std::move(message).error();
    if (!*message) return failure("");  // the exit status says more
    return std::move(**message);
  }
}

}  // namespace

result<probed_device> probe_device(const worker_command& command, const std::string& kind,
                                   const variable_source& own_environment) {
  std::vector<std::string> arguments = command.arguments;
  arguments.insert(arguments.end(), {"--parent", std::to_string(::getpid()), "--device", kind, "--probe"});
  auto process = start_child(command.program, arguments,
                             worker_environment(operators_variables(own_environment), own_environment));
  if (!process.ok()) return std::move(process).error();
  auto answer = wait_for_answer(process->control.get());
  if (!answer.ok()) ::kill(process->process, SIGKILL);
  int wait_status = 0;
  while (::waitpid(process->process, &wait_status, 0) < 0 && errno == EINTR) {
  }
  if (!answer.ok()) {
    const std::string& why = answer.error().message;
    return failure("the " + kind +
                   " device could not be asked: " + (why.empty() ? describe_exit(wait_status) : why));
  }
  if (answer->kind == control_kind::failed) {
    auto why = decode_text(answer->payload);
    return why.ok() ? failure(*why) : why.error();
  }
  auto facts = decode_facts(answer->payload);
  if (!facts.ok()) return std::move(facts).error();
  auto snapshot = marshal::decode_snapshot(facts->snapshot);
  if (!snapshot.ok()) return std::move(snapshot).error();
  return probed_device{std::move(facts->kind), std::move(facts->description), std::move(*snapshot),
                       std::move(facts->no_profiles)};
}

result<probed_device> choose_device(const worker_command& command, device_choice choice,
                                    const variable_source& own_environment) {
  if (choice != device_choice::automatic) {
    return probe_device(command, std::string(name(choice)), own_environment);
  }
  auto vendor = probe_device(command, "vendor", own_environment);
  if (vendor.ok() && !vendor->snapshot.devices.empty()) return vendor;
  auto cpu = probe_device(command, "cpu", own_environment);
  if (cpu.ok()) cpu->no_gpu = vendor.ok() ? "the driver has no device" : vendor.error().message;
  return cpu;
}

std::string format_uuid(const std::array<std::byte, 16>& uuid, std::string_view prefix) {
  return std::string(prefix) + uuid_text(uuid);
}

std::vector<std::string> uuids_of(const marshal::snapshot& snapshot) {
  std::vector<std::string> list;
  for (const marshal::device_facts& d : snapshot.devices)
    list.push_back(d.uuid == d.uuid_v2 ? format_uuid(d.uuid) : format_uuid(d.uuid_v2, "MIG-"));
  return list;
}

namespace {

/// What devices answer of an attribute, of those that know it.
bool any_answers(const marshal::snapshot& snapshot, CUdevice_attribute which, bool (*wanted)(int value)) {
  return std::ranges::any_of(snapshot.devices, [&](const marshal::device_facts& d) {
    const auto id = static_cast<std::size_t>(which);
    return id < d.attributes.size() && d.attributes[id].result == CUDA_SUCCESS &&
           wanted(d.attributes[id].value);
  });
}

}  // namespace

bool exclusive_compute_mode(const marshal::snapshot& snapshot) {
  return any_answers(snapshot, CU_DEVICE_ATTRIBUTE_COMPUTE_MODE,
                     [](int value) { return value != CU_COMPUTEMODE_DEFAULT; });
}

bool reaches_all_memory(const marshal::snapshot& snapshot) {
  return any_answers(snapshot, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS,
                     [](int value) { return value != 0; });
}

}  // namespace outboard::backend
