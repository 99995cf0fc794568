#include "device/mock/nvml.hh"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <vector>

#include "api/nvml/forms.hh"

namespace outboard::device::mock {
namespace {

using namespace api;
using namespace api::nvml;

/// Two boards; handles are addresses of these.
char boards[nvml_devices];
char others[static_cast<std::size_t>(handle_kind::count)];

void* object(handle_kind kind) {
  return kind == handle_kind::device ? &boards[0] : &others[static_cast<std::size_t>(kind)];
}

/// The number of elements of an output, by the values that the caller gave.
std::size_t elements(const function_form& form, const words& arguments, std::size_t i) {
  const parameter& p = form.about->parameters[i];
  if (p.count == count_kind::number) return p.number;
  if (p.count != count_kind::parameter) return 1;
  if (form.parameters[p.count_index].what == parameter_class::value) return arguments[p.count_index];
  if (form.about->parameters[p.count_index].dir == direction::out) return 2;
  unsigned n = 0;
  std::memcpy(&n, reinterpret_cast<void*>(arguments[p.count_index]), sizeof n);
  return n;
}

bool counts_another(const function_form& form, std::size_t i) {
  for (std::size_t k = 0; k < form.parameters.size(); ++k) {
    const parameter& p = form.about->parameters[k];
    if (p.count == count_kind::parameter && p.count_index == i) return true;
  }
  return false;
}

/// Fills everything except the version, counts and pointers; also fills what the pointers point to.
void fill_struct(opcode code, std::size_t parameter, const struct_layout& layout, std::byte* at,
                 std::size_t offset) {
  const field_layout* tail = tail_of(layout);
  const std::size_t size =
      tail ? tail->offset + elements_there(*tail, at, layout.size) * tail->size / tail->elements
           : layout.size;
  const std::vector<std::byte> before(at, at + size);
  for (std::size_t b = layout.version != 0 ? sizeof(unsigned) : 0; b < size; ++b)
    at[b] = static_cast<std::byte>(nvml_byte(code, parameter, offset + b));
  const auto restore = [&](const std::byte* was, std::size_t bytes) {
    std::memcpy(at + (was - before.data()), was, bytes);
  };
  if (tail) restore(before.data() + tail->count_at, sizeof(unsigned));
  for_each_pointer(layout, before.data(), size, [&](const field_layout& f, const std::byte* holder) {
    if (f.kind == field_kind::text) {
      std::memcpy(at + (holder - before.data()) + f.offset, &nvml_text, sizeof nvml_text);
      return true;
    }
    restore(holder + f.offset, f.size);
    restore(holder + f.count_at, sizeof(unsigned));
    std::byte* list = nullptr;
    std::memcpy(&list, holder + f.offset, sizeof list);
    for (unsigned e = 0; list && e < said_count(f, holder); ++e) {
      std::byte* const element = list + e * f.stride;
      if (f.listed) {
        fill_struct(code, parameter, *f.listed(), element, e * f.stride);
      } else {
        for (std::size_t b = 0; b < f.stride; ++b)
          element[b] = static_cast<std::byte>(nvml_byte(code, parameter, e * f.stride + b));
      }
    }
    return true;
  });
}

void fill_element(const function_form& form, std::size_t i, std::byte* at, std::size_t offset) {
  const parameter_form& shape = form.parameters[i];
  if (shape.handle != handle_kind::none) {
    void* value = object(shape.handle);
    std::memcpy(at, &value, sizeof value);
    return;
  }
  if (!shape.layout) {
    for (std::size_t b = 0; b < shape.size; ++b)
      at[b] = static_cast<std::byte>(nvml_byte(form.code, i, offset + b));
    return;
  }
  fill_struct(form.code, i, *shape.layout(), at, offset);
  for_each_handle(
      *shape.layout(), at, [](void*, handle_kind kind, void** handle) { *handle = object(kind); }, nullptr);
}

nvmlReturn_t fill(const function_form& form, const words& arguments) {
  for (std::size_t i = 0; i < form.parameters.size(); ++i) {
    const parameter& p = form.about->parameters[i];
    if (form.parameters[i].what != parameter_class::memory || arguments[i] == 0) continue;
    if (p.dir == direction::in || counts_another(form, i)) continue;
    const parameter_form& shape = form.parameters[i];
    auto* at = reinterpret_cast<std::byte*>(arguments[i]);
    const std::size_t n = elements(form, arguments, i);
    for (std::size_t e = 0; e < n; ++e) fill_element(form, i, at + e * shape.size, e * shape.size);
    if (shape.text && n > 0) at[n - 1] = std::byte{0};
  }
  // An array for which the caller gave no size has two elements.
  for (std::size_t i = 0; i < form.parameters.size(); ++i) {
    if (!counts_another(form, i) || form.about->parameters[i].dir != direction::out || arguments[i] == 0)
      continue;
    const unsigned two = 2;
    std::memcpy(reinterpret_cast<void*>(arguments[i]), &two, sizeof two);
  }
  return NVML_SUCCESS;
}

template <opcode Op, class F>
struct entry;
template <opcode Op, class R, class... A>
struct entry<Op, R(A...)> {
  static R run(A... arguments) {
    return fill(*find_form(static_cast<std::uint32_t>(Op)), words{to_word(arguments)...});
  }
};

nvmlReturn_t get_count(unsigned* count) { return *count = nvml_devices, NVML_SUCCESS; }
nvmlReturn_t get_handle(unsigned index, nvmlDevice_t* device) {
  if (index >= nvml_devices) return NVML_ERROR_INVALID_ARGUMENT;
  *device = reinterpret_cast<nvmlDevice_t>(&boards[index]);
  return NVML_SUCCESS;
}
unsigned number_of(nvmlDevice_t device) {
  return static_cast<unsigned>(reinterpret_cast<char*>(device) - boards);
}
nvmlReturn_t get_uuid(nvmlDevice_t device, char* uuid, unsigned length) {
  // The first board has the value of the mock driver's device.
  const int n =
      std::snprintf(uuid, length, "GPU-6d6f636b-0000-4000-8000-00000000000%u", number_of(device) + 1);
  return static_cast<unsigned>(n) < length ? NVML_SUCCESS : NVML_ERROR_INSUFFICIENT_SIZE;
}
nvmlReturn_t get_pci(nvmlDevice_t device, nvmlPciInfo_t* pci) {
  *pci = {};
  pci->bus = 0x1b + number_of(device);
  std::snprintf(pci->busId, sizeof pci->busId, "00000000:%02X:00.0", pci->bus);
  std::snprintf(pci->busIdLegacy, sizeof pci->busIdLegacy, "0000:%02X:00.0", pci->bus);
  return NVML_SUCCESS;
}
nvmlReturn_t get_serial(nvmlDevice_t device, char* serial, unsigned length) {
  std::snprintf(serial, length, "mock-%u", number_of(device));
  return NVML_SUCCESS;
}

nvmlReturn_t get_name(nvmlDevice_t, char* name, unsigned length) {
  // Like the mock of the driver.
  const int n = std::snprintf(name, length, "Outboard mock device");
  return static_cast<unsigned>(n) < length ? NVML_SUCCESS : NVML_ERROR_INSUFFICIENT_SIZE;
}

constexpr u64 total_memory = 80ull << 30, used_memory = 1ull << 30;

nvmlReturn_t get_memory(nvmlDevice_t, nvmlMemory_t* memory) {
  *memory = {total_memory, total_memory - used_memory, used_memory};
  return NVML_SUCCESS;
}
nvmlReturn_t get_memory_v2(nvmlDevice_t, nvmlMemory_v2_t* memory) {
  if (memory->version != version_of<nvmlMemory_v2_t>(2)) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  *memory = {memory->version, total_memory, 0, total_memory - used_memory, used_memory};
  return NVML_SUCCESS;
}
nvmlReturn_t get_utilisation(nvmlDevice_t, nvmlUtilization_t* busy) {
  *busy = {50, 25};
  return NVML_SUCCESS;
}

/// Returns three processes; the helper decides what a visitor sees of processes that are not its own.
nvmlReturn_t get_processes(nvmlDevice_t, nvmlProcessesUtilizationInfo_v1_t* info) {
  constexpr unsigned processes[] = {100, 101, 102};
  const unsigned room = info->procUtilArray ? info->processSamplesCount : 0;
  info->processSamplesCount = 3;
  if (room < 3) return NVML_ERROR_INSUFFICIENT_SIZE;
  for (unsigned i = 0; i < 3; ++i)
    info->procUtilArray[i] = {info->lastSeenTimeStamp + 1, processes[i], 10 * i, 0, 0, 0, 0, 0};
  return NVML_SUCCESS;
}

/// Reports both boards as newly added.
nvmlReturn_t wait_for_system(nvmlSystemEventSetWaitRequest_v1_t* request) {
  constexpr u64 bound = 2;
  request->numEvent = std::min(request->dataSize, nvml_devices);
  for (unsigned i = 0; request->data && i < request->numEvent; ++i)
    request->data[i] = {bound, (0x1b + i) << 8};
  return NVML_SUCCESS;
}

/// Each sample gets its own handle.
nvmlReturn_t allocate_sample(nvmlGpmSample_t* sample) {
  static char samples[64];
  static std::atomic<unsigned> next{0};
  *sample = reinterpret_cast<nvmlGpmSample_t>(&samples[next.fetch_add(1) % sizeof samples]);
  return NVML_SUCCESS;
}

/// Each value is half of the metric's number; there is no metric 0.
nvmlReturn_t get_metrics(nvmlGpmMetricsGet_t* get) {
  if (get->version != 1 || !get->sample1 || !get->sample2) return NVML_ERROR_INVALID_ARGUMENT;
  for (unsigned i = 0; i < get->numMetrics; ++i) {
    nvmlGpmMetric_t& m = get->metrics[i];
    m.nvmlReturn = m.metricId == 0 ? NVML_ERROR_INVALID_ARGUMENT : NVML_SUCCESS;
    m.value = m.metricId / 2.0;
    m.metricInfo = {nvml_text, m.metricId == 0 ? nullptr : nvml_text, "%"};
  }
  return NVML_SUCCESS;
}

class mock_nvml final : public nvml_device {
 public:
  mock_nvml() {
#define CHAPTER(number, file)
#define OUTBOARD_LINE(how, symbol, ...) OUTBOARD_ENTRY_##how(symbol)
#define OUTBOARD_ENTRY_call(symbol) \
  table_.symbol = &entry<opcode::symbol, api::nvml::function<opcode::symbol>::prototype>::run;
#define OUTBOARD_ENTRY_custom OUTBOARD_ENTRY_call
#define OUTBOARD_ENTRY_local(symbol)
#define OUTBOARD_ENTRY_refused(symbol)
#include "api/nvml/expand.def"
#undef OUTBOARD_ENTRY_call
#undef OUTBOARD_ENTRY_custom
#undef OUTBOARD_ENTRY_local
#undef OUTBOARD_ENTRY_refused
#undef OUTBOARD_LINE
#undef CHAPTER
    table_.nvmlDeviceGetCount = table_.nvmlDeviceGetCount_v2 = get_count;
    table_.nvmlDeviceGetHandleByIndex = table_.nvmlDeviceGetHandleByIndex_v2 = get_handle;
    table_.nvmlDeviceGetUUID = get_uuid;
    table_.nvmlDeviceGetPciInfo_v3 = get_pci;
    table_.nvmlDeviceGetSerial = get_serial;
    table_.nvmlDeviceGetName = get_name;
    table_.nvmlDeviceGetMemoryInfo = get_memory;
    table_.nvmlDeviceGetMemoryInfo_v2 = get_memory_v2;
    table_.nvmlDeviceGetUtilizationRates = get_utilisation;
    table_.nvmlDeviceGetProcessesUtilizationInfo = get_processes;
    table_.nvmlSystemEventSetWait = wait_for_system;
    table_.nvmlGpmMetricsGet = get_metrics;
    table_.nvmlGpmSampleAlloc = allocate_sample;
  }
  std::string_view kind() const override { return "mock"; }
  std::string describe() const override { return "NVML expanded from the tables"; }
  const function_table& nvml() const override { return table_; }
  nvmlReturn_t absent() const override { return NVML_ERROR_NOT_SUPPORTED; }

 private:
  function_table table_;
};

}  // namespace

std::unique_ptr<nvml_device> open_nvml() { return std::make_unique<mock_nvml>(); }

}  // namespace outboard::device::mock
