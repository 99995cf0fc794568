#include "backend/daemon/probe.hh"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include <fmt/format.h>

#include <algorithm>

#include "base/errno_text.hh"
#include "base/hex.hh"
#include "marshal/cuda/driver_variables.hh"

namespace outboard::backend {
namespace {

/// A driver without persistence mode takes tens of seconds to initialise many GPUs.
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
    if (ready < 0) return failure(fmt::format("poll: {}", errno_text(errno)));
    if (ready == 0) return failure(fmt::format("no answer within {} s", patience.count()));
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
  arguments.insert(arguments.end(), {"--parent", fmt::to_string(::getpid()), "--device", kind, "--probe"});
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
    return failure(fmt::format("the process that opens the {} device failed: {}", kind,
                               why.empty() ? describe_exit(wait_status) : why));
  }
  if (answer->kind == control_kind::failed) {
    auto why = decode_text(answer->payload);
    return why.ok() ? failure(*why) : why.error();
  }
  auto facts = decode_facts(answer->payload);
  if (!facts.ok()) return std::move(facts).error();
  auto snapshot = marshal::decode_snapshot(facts->snapshot);
  if (!snapshot.ok()) return std::move(snapshot).error();
  return probed_device{std::move(facts->kind), std::move(facts->description), std::move(*snapshot), {}};
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

bool has_pageable_access(const probed_device& device, std::size_t ordinal) {
  constexpr std::size_t id = CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS;
  const auto& attributes = device.snapshot.devices[ordinal].attributes;
  return device.kind == "vendor" && id < attributes.size() && attributes[id].result == CUDA_SUCCESS &&
         attributes[id].value != 0;
}

status check_pageable_access(const config& c, const probed_device& device) {
  if (c.pageable != pageable_choice::refuse) return {};
  for (std::size_t i = 0; i < device.snapshot.devices.size(); ++i) {
    if (!has_pageable_access(device, i)) continue;
    return failure(fmt::format(
        "kernels on device {} ({}) can read and change all memory of the worker that runs them (HMM or ATS); "
        "load the driver with `options nvidia-uvm uvm_disable_hmm=1` in /etc/modprobe.d, or set "
        "worker.pageable to \"confine\" to rely on the confinement of workers",
        i, device.snapshot.devices[i].name));
  }
  return {};
}

confine_choice confine_cuda_of(const config& c, const probed_device& device) {
  bool pageable = false;
  for (std::size_t i = 0; i < device.snapshot.devices.size(); ++i)
    pageable = pageable || has_pageable_access(device, i);
  if (pageable && c.pageable == pageable_choice::confine) return confine_choice::required;
  // Nothing that the interpreter needs stands against it. A driver may have needs that nobody knows of yet.
  return c.confine_cuda.value_or(device.kind == "vendor" ? confine_choice::automatic
                                                         : confine_choice::required);
}

bool exclusive_compute_mode(const marshal::snapshot& snapshot) {
  return std::any_of(snapshot.devices.begin(), snapshot.devices.end(), [](const marshal::device_facts& d) {
    const std::size_t id = CU_DEVICE_ATTRIBUTE_COMPUTE_MODE;
    return id < d.attributes.size() && d.attributes[id].result == CUDA_SUCCESS &&
           d.attributes[id].value != CU_COMPUTEMODE_DEFAULT;
  });
}

}  // namespace outboard::backend
