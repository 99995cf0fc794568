// Questions and answers from end to end in one process: the program's side of each line, the helper's
// visitor, and the mock; and what a hostile peer may send.
#include "backend/nvml/visitor.hh"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <random>

#include "device/mock/nvml.hh"
#include "marshal/nvml/program_structs.hh"

namespace outboard::backend::nvml {
namespace {

using namespace api;
using namespace api::nvml;

class visitor_test : public testing::Test {
 protected:
  visitor_test() : device_(device::mock::open_nvml()) {
    house_.device = device_.get();
    house_.visible = {"0000:1B:00.0"};
    visitor_ = std::make_unique<visitor>(house_, identity{"user 1", "host"});
  }

  nvmlReturn_t ask(opcode code, const words& arguments) {
    const function_form& form = *find_form(static_cast<std::uint32_t>(code));
    std::vector<std::byte> question, answer;
    wire::writer w(question);
    marshal::nvml::encode_question(w, form, arguments);
    EXPECT_TRUE(visitor_->answer(static_cast<std::uint32_t>(code), question, answer));
    wire::reader r(answer);
    nvmlReturn_t result = NVML_ERROR_UNKNOWN;
    EXPECT_TRUE(marshal::nvml::decode_answer(r, form, arguments, result, texts_)) << name_of(code);
    return result;
  }

  static std::string_view name_of(opcode code) {
    return find_function(static_cast<std::uint32_t>(code))->name;
  }

  nvmlDevice_t device_handle() {
    nvmlDevice_t handle = nullptr;
    EXPECT_EQ(ask(opcode::nvmlDeviceGetHandleByIndex_v2, {0, to_word(&handle)}), NVML_SUCCESS);
    return handle;
  }

  /// Returns a handle as a client gets it.
  std::uint64_t handle(handle_kind kind) {
    if (kind == handle_kind::device) return to_word(device_handle());
    static char objects[8];
    return visitor_->handle_of(kind, &objects[static_cast<std::size_t>(kind)]);
  }

  std::unique_ptr<device::nvml_device> device_;
  house house_;
  std::unique_ptr<visitor> visitor_;
  marshal::nvml::text_pool texts_;
};

constexpr std::size_t room = 4096;
constexpr unsigned elements_asked = 3;

struct program_memory {
  std::array<std::vector<std::byte>, max_arguments> at;
  std::array<std::size_t, max_arguments> there{};  ///< how many bytes of a struct there are
  marshal::nvml::program_structs structs;
  words arguments{};
};

bool counts_another(const function_form& form, std::size_t i) {
  for (std::size_t k = 0; k < form.parameters.size(); ++k) {
    const parameter& p = form.about->parameters[k];
    if (p.count == count_kind::parameter && p.count_index == i) return true;
  }
  return false;
}

/// Arguments as programs pass them: counts of 3, structs with their version, memory filled with 0xee.
template <class Handle>
void prepare(const function_form& form, program_memory& m, Handle&& handle) {
  for (std::size_t i = 0; i < form.parameters.size(); ++i) {
    const parameter_form& p = form.parameters[i];
    if (p.what == parameter_class::handle) {
      m.arguments[i] = handle(p.handle);
    } else if (p.what == parameter_class::value) {
      m.arguments[i] = counts_another(form, i) ? elements_asked : 0;
    } else {
      m.at[i].assign(std::max<std::size_t>(room, p.size * 70), std::byte{0xee});
      m.arguments[i] = to_word(m.at[i].data());
      const unsigned first = counts_another(form, i) ? elements_asked : 0;
      if (form.about->parameters[i].count == count_kind::string) {
        std::memcpy(m.at[i].data(), "x", 2);
      } else if (p.layout && (p.layout()->version != 0 || leads_elsewhere(*p.layout()))) {
        m.there[i] = m.structs.lay_out(*p.layout(), m.at[i].data(), elements_asked);
      } else if (first != 0) {
        std::memcpy(m.at[i].data(), &first, sizeof first);
      }
    }
  }
}

/// Checks that what a struct points to comes from the mock, and that nothing behind its lists was touched.
void expect_listed(opcode code, std::size_t i, const struct_layout& layout, std::byte* at, std::size_t size) {
  const std::string name(find_function(static_cast<std::uint32_t>(code))->name);
  const bool whole = for_each_pointer(layout, at, size, [&](const field_layout& f, std::byte* holder) {
    std::byte* target = nullptr;
    std::memcpy(&target, holder + f.offset, sizeof target);
    if (!target) return false;
    if (f.kind == field_kind::text)
      return std::string_view(reinterpret_cast<const char*>(target)) == device::mock::nvml_text;
    EXPECT_EQ(said_count(f, holder), elements_asked) << name;
    for (unsigned e = 0; e < elements_asked; ++e) {
      std::byte* const element = target + e * f.stride;
      if (f.listed && leads_elsewhere(*f.listed())) {
        expect_listed(code, i, *f.listed(), element, f.stride);
        continue;
      }
      for (std::size_t b = 0; b < f.stride; ++b) {
        const auto wanted = static_cast<std::byte>(device::mock::nvml_byte(code, i, e * f.stride + b));
        if (element[b] != wanted)
          return ADD_FAILURE() << name << "." << f.name << " " << e << " " << b, false;
      }
    }
    EXPECT_EQ(target[elements_asked * f.stride], marshal::nvml::program_structs::untouched)
        << name << ": written behind " << f.name;
    return true;
  });
  EXPECT_TRUE(whole) << name;
}

/// Checks that the bytes of an output come from the mock, and that nothing behind them was touched.
void expect_filled(const function_form& form, std::size_t i, program_memory& m) {
  const parameter_form& p = form.parameters[i];
  const parameter& line = form.about->parameters[i];
  const std::string name(find_function(static_cast<std::uint32_t>(form.code))->name);
  if (p.layout && leads_elsewhere(*p.layout())) {
    expect_listed(form.code, i, *p.layout(), m.at[i].data(), m.there[i]);
    EXPECT_EQ(m.at[i][m.there[i]], std::byte{0xee}) << name << ": written behind output " << i;
    return;
  }
  std::size_t n = 1;
  if (line.count == count_kind::number) n = line.number;
  if (line.count == count_kind::parameter) {
    n = form.about->parameters[line.count_index].dir == direction::out ? 2 : elements_asked;
  }
  if (p.handle != handle_kind::none) {
    std::uint64_t first = 0;
    std::memcpy(&first, m.at[i].data(), sizeof first);
    EXPECT_NE(first, 0u) << name;
    EXPECT_NE(first, 0xeeeeeeeeeeeeeeee) << name;
  } else if (p.text) {
    EXPECT_EQ(m.at[i][0], static_cast<std::byte>(device::mock::nvml_byte(form.code, i, 0))) << name;
  } else {
    std::vector<std::byte> wanted(n * p.size);
    for (std::size_t b = 0; b < wanted.size(); ++b)
      wanted[b] = static_cast<std::byte>(device::mock::nvml_byte(form.code, i, b));
    for (std::size_t e = 0; e < n; ++e) {
      std::byte* at = wanted.data() + e * p.size;
      if (!p.layout) continue;
      const unsigned version = p.size | p.layout()->version << 24;
      if (p.layout()->version != 0) std::memcpy(at, &version, sizeof version);
      clear_padding(*p.layout(), at);
    }
    bool has_handles = false;
    if (p.layout) {
      for_each_handle(
          *p.layout(), wanted.data(),
          [](void* seen, handle_kind, void**) { *static_cast<bool*>(seen) = true; }, &has_handles);
    }
    if (!has_handles) {
      EXPECT_EQ(std::memcmp(wanted.data(), m.at[i].data(), wanted.size()), 0) << name << " " << i;
    }
  }
  EXPECT_EQ(m.at[i][n * p.size], std::byte{0xee}) << name << ": written behind output " << i;
}

// Functions that the helper answers itself have tests of their own.
bool is_shielded(opcode code) {
  switch (code) {
#define CHAPTER(number, file)
#define OUTBOARD_LINE(how, symbol, ...) OUTBOARD_TEST_##how(symbol)
#define OUTBOARD_TEST_call(symbol) \
  case opcode::symbol:             \
    return shielded().symbol != nullptr;
#define OUTBOARD_TEST_custom OUTBOARD_TEST_call
#define OUTBOARD_TEST_local(symbol)
#define OUTBOARD_TEST_refused(symbol)
#include "api/nvml/expand.def"
    default:
      return false;
  }
}

TEST_F(visitor_test, every_line_brings_its_outputs_back) {
  int asked = 0;
  for (const function_form& form : forms()) {
    if (is_shielded(form.code) || device::mock::has_values(form.code)) continue;
    program_memory m;
    prepare(form, m, [&](handle_kind kind) { return handle(kind); });
    EXPECT_EQ(marshal::nvml::check_arguments(form, m.arguments), NVML_SUCCESS) << name_of(form.code);
    ASSERT_EQ(ask(form.code, m.arguments), NVML_SUCCESS) << name_of(form.code);
    ++asked;
    for (std::size_t i = 0; i < form.parameters.size(); ++i) {
      const parameter& p = form.about->parameters[i];
      if (form.parameters[i].what != parameter_class::memory || counts_another(form, i)) continue;
      if (p.dir == direction::out || p.dir == direction::inout) expect_filled(form, i, m);
    }
  }
  EXPECT_GT(asked, 245);
}

TEST_F(visitor_test, only_devices_that_are_lent_are_there) {
  unsigned count = 0;
  EXPECT_EQ(ask(opcode::nvmlDeviceGetCount_v2, {to_word(&count)}), NVML_SUCCESS);
  EXPECT_EQ(count, 1u);
  nvmlDevice_t device = nullptr;
  EXPECT_EQ(ask(opcode::nvmlDeviceGetHandleByIndex_v2, {1, to_word(&device)}), NVML_ERROR_INVALID_ARGUMENT);
  // The mock has a second board, which is not lent.
  EXPECT_EQ(ask(opcode::nvmlDeviceGetHandleByUUID,
                {to_word("GPU-6d6f636b-0000-4000-8000-000000000002"), to_word(&device)}),
            NVML_ERROR_NOT_FOUND);
  EXPECT_EQ(ask(opcode::nvmlDeviceGetHandleByUUID,
                {to_word("GPU-6d6f636b-0000-4000-8000-000000000001"), to_word(&device)}),
            NVML_SUCCESS);
  EXPECT_EQ(ask(opcode::nvmlDeviceGetHandleByPciBusId_v2, {to_word("0000:1C:00.0"), to_word(&device)}),
            NVML_ERROR_NOT_FOUND);
  EXPECT_EQ(ask(opcode::nvmlDeviceGetHandleBySerial, {to_word("mock-1"), to_word(&device)}),
            NVML_ERROR_NOT_FOUND);
  EXPECT_EQ(ask(opcode::nvmlDeviceGetHandleBySerial, {to_word("mock-0"), to_word(&device)}), NVML_SUCCESS);
}

TEST_F(visitor_test, a_uuid_may_come_as_bytes) {
  nvmlUUID_v1_t uuid{};
  uuid.version = version_of<nvmlUUID_v1_t>(9);
  nvmlDevice_t device = nullptr;
  EXPECT_EQ(ask(opcode::nvmlDeviceGetHandleByUUIDV, {to_word(&uuid), to_word(&device)}),
            NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
  uuid.version = version_of<nvmlUUID_v1_t>(1);
  uuid.type = 2;
  const unsigned char bytes[16] = {0x6d, 0x6f, 0x63, 0x6b, 0, 0, 0x40, 0, 0x80, 0, 0, 0, 0, 0, 0, 1};
  std::memcpy(uuid.value.bytes, bytes, sizeof bytes);
  EXPECT_EQ(ask(opcode::nvmlDeviceGetHandleByUUIDV, {to_word(&uuid), to_word(&device)}), NVML_SUCCESS);
  uuid.type = 9;
  EXPECT_EQ(ask(opcode::nvmlDeviceGetHandleByUUIDV, {to_word(&uuid), to_word(&device)}),
            NVML_ERROR_INVALID_ARGUMENT);
}

TEST_F(visitor_test, handles_that_were_never_given_are_refused) {
  char name[64];
  const std::uint64_t good = to_word(device_handle());
  EXPECT_EQ(ask(opcode::nvmlDeviceGetName, {good, to_word(name), sizeof name}), NVML_SUCCESS);
  for (const std::uint64_t bad :
       {std::uint64_t{0}, std::uint64_t{1}, good + 16, good ^ std::uint64_t{1} << 40, good + 1, to_word(name),
        ~std::uint64_t{0}}) {
    EXPECT_EQ(ask(opcode::nvmlDeviceGetName, {bad, to_word(name), sizeof name}), NVML_ERROR_INVALID_ARGUMENT)
        << bad;
  }
}

TEST_F(visitor_test, what_was_freed_is_gone_and_its_handle_stays_dead) {
  nvmlEventSet_t first = nullptr, second = nullptr;
  ASSERT_EQ(ask(opcode::nvmlEventSetCreate, {to_word(&first)}), NVML_SUCCESS);
  EXPECT_EQ(ask(opcode::nvmlEventSetFree, {to_word(first)}), NVML_SUCCESS);
  EXPECT_EQ(ask(opcode::nvmlEventSetFree, {to_word(first)}), NVML_ERROR_INVALID_ARGUMENT);
  ASSERT_EQ(ask(opcode::nvmlEventSetCreate, {to_word(&second)}), NVML_SUCCESS);
  EXPECT_NE(first, second);
}

TEST_F(visitor_test, counts_beyond_all_reason_are_cut) {
  unsigned count = ~0u;
  std::vector<nvmlProcessInfo_t> list(16);
  EXPECT_EQ(ask(opcode::nvmlDeviceGetComputeRunningProcesses_v3,
                {to_word(device_handle()), to_word(&count), to_word(list.data())}),
            NVML_SUCCESS);
  EXPECT_EQ(count, 0u);
}

TEST_F(visitor_test, boards_stand_in_the_configurations_order) {
  house_.visible = {"0000:1C:00.0", "0000:1B:00.0"};
  house_.in_order = true;
  visitor_ = std::make_unique<visitor>(house_, identity{"user 1", "host"});
  nvmlPciInfo_t pci{};
  EXPECT_EQ(ask(opcode::nvmlDeviceGetPciInfo_v3, {to_word(device_handle()), to_word(&pci)}), NVML_SUCCESS);
  EXPECT_EQ(pci.bus, 0x1cu);
  unsigned index = 9;
  EXPECT_EQ(ask(opcode::nvmlDeviceGetIndex, {to_word(device_handle()), to_word(&index)}), NVML_SUCCESS);
  EXPECT_EQ(index, 0u);
}

TEST_F(visitor_test, name_and_memory_are_as_the_configuration_shapes_them) {
  house_.shape = {.visible = {}, .name = "Lab {name}", .memory = 8ull << 30};
  char name[96] = "";
  EXPECT_EQ(ask(opcode::nvmlDeviceGetName, {to_word(device_handle()), to_word(name), sizeof name}),
            NVML_SUCCESS);
  EXPECT_STREQ(name, "Lab Outboard mock device");
  EXPECT_EQ(ask(opcode::nvmlDeviceGetName, {to_word(device_handle()), to_word(name), 10}),
            NVML_ERROR_INSUFFICIENT_SIZE);
  // Two sessions of this user and host, one of them the asking process's own.
  auto own = own_activity::make(), other = own_activity::make();
  ASSERT_TRUE(own.ok() && other.ok());
  for (auto* page : {own->page, other->page}) page->boards[3].board = board_number("0000:1B:00.0");
  own->page->boards[3].bytes = 3ull << 30;
  other->page->boards[3].bytes = 1ull << 30;
  house_.sessions.began({.worker = 100, .client_process = 7, .peer = "user 1", .host = "host"},
                        own->descriptor);
  house_.sessions.began({.worker = 101, .client_process = 8, .peer = "user 1", .host = "host"},
                        other->descriptor);
  const auto used_by = [&](unsigned process) {
    visitor_ = std::make_unique<visitor>(house_, identity{"user 1", "host"}, process);
    nvmlMemory_t memory{};
    EXPECT_EQ(ask(opcode::nvmlDeviceGetMemoryInfo, {to_word(device_handle()), to_word(&memory)}),
              NVML_SUCCESS);
    EXPECT_EQ(memory.total, 8ull << 30);
    EXPECT_EQ(memory.free, memory.total - memory.used);
    return memory.used;
  };
  EXPECT_EQ(used_by(7), 3ull << 30);
  EXPECT_EQ(used_by(8), 1ull << 30);
  EXPECT_EQ(used_by(9), 4ull << 30);
}

TEST_F(visitor_test, processes_are_the_clients_own) {
  house_.sessions.began({.worker = 100, .client_process = 7, .peer = "user 1", .host = "host"}, unique_fd());
  house_.sessions.began({.worker = 101, .client_process = 8, .peer = "user 1", .host = "other"}, unique_fd());
  house_.sessions.began({.worker = 102, .client_process = 9, .peer = "user 2", .host = "host"}, unique_fd());
  const auto own = visitor_->processes();
  ASSERT_EQ(own.size(), 1u);
  EXPECT_EQ(own[0].worker, 100);
  EXPECT_EQ(own[0].client_process, 7u);
  house_.sessions.over(100);
  EXPECT_TRUE(visitor_->processes().empty());
}

TEST_F(visitor_test, use_of_boards_is_told_of_own_processes_alone) {
  house_.sessions.began({.worker = 100, .client_process = 7, .peer = "user 1", .host = "host"}, unique_fd());
  house_.sessions.began({.worker = 102, .client_process = 9, .peer = "user 1", .host = "host"}, unique_fd());
  house_.sessions.began({.worker = 101, .client_process = 8, .peer = "user 2", .host = "host"}, unique_fd());
  std::vector<nvmlProcessUtilizationInfo_v1_t> list(3);
  nvmlProcessesUtilizationInfo_v1_t info{version_of<nvmlProcessesUtilizationInfo_v1_t>(1), 0, 41, nullptr};
  const words arguments{to_word(device_handle()), to_word(&info)};
  EXPECT_EQ(ask(opcode::nvmlDeviceGetProcessesUtilizationInfo, arguments), NVML_ERROR_INSUFFICIENT_SIZE);
  EXPECT_EQ(info.processSamplesCount, 2u);
  EXPECT_EQ(info.procUtilArray, nullptr);
  info.procUtilArray = list.data();
  info.processSamplesCount = 3;
  EXPECT_EQ(ask(opcode::nvmlDeviceGetProcessesUtilizationInfo, arguments), NVML_SUCCESS);
  ASSERT_EQ(info.processSamplesCount, 2u);
  EXPECT_EQ(list[0].pid, 7u);
  EXPECT_EQ(list[1].pid, 9u);
  EXPECT_EQ(list[1].smUtil, 20u);
  EXPECT_EQ(list[1].timeStamp, 42u);
  EXPECT_EQ(list[2].pid, 0u);
  info.version = version_of<nvmlProcessesUtilizationInfo_v1_t>(2);
  EXPECT_EQ(ask(opcode::nvmlDeviceGetProcessesUtilizationInfo, arguments),
            NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
  house_.sessions.over(100);
  house_.sessions.over(102);
  info.version = version_of<nvmlProcessesUtilizationInfo_v1_t>(1);
  EXPECT_EQ(ask(opcode::nvmlDeviceGetProcessesUtilizationInfo, arguments), NVML_ERROR_NOT_FOUND);
}

TEST_F(visitor_test, metrics_are_made_of_samples_that_the_server_holds) {
  nvmlGpmSample_t first = nullptr;
  ASSERT_EQ(ask(opcode::nvmlGpmSampleAlloc, {to_word(&first)}), NVML_SUCCESS);
  // As in a header that knows 4 metrics; the memory behind belongs to something else.
  std::vector<std::byte> memory(offsetof(nvmlGpmMetricsGet_t, metrics) + 5 * sizeof(nvmlGpmMetric_t),
                                std::byte{0xee});
  auto* get = reinterpret_cast<nvmlGpmMetricsGet_t*>(memory.data());
  get->version = 1;
  get->numMetrics = 4;
  get->sample1 = get->sample2 = first;
  for (unsigned i = 0; i < 4; ++i) get->metrics[i].metricId = i;
  EXPECT_EQ(ask(opcode::nvmlGpmMetricsGet, {to_word(get)}), NVML_SUCCESS);
  EXPECT_EQ(get->sample1, first);
  EXPECT_EQ(get->numMetrics, 4u);
  for (unsigned i = 1; i < 4; ++i) {
    EXPECT_EQ(get->metrics[i].metricId, i);
    EXPECT_EQ(get->metrics[i].nvmlReturn, NVML_SUCCESS);
    EXPECT_EQ(get->metrics[i].value, i / 2.0);
    EXPECT_STREQ(get->metrics[i].metricInfo.longName, device::mock::nvml_text);
    EXPECT_EQ(get->metrics[i].metricInfo.longName, get->metrics[1].metricInfo.shortName) << "kept once";
    EXPECT_STREQ(get->metrics[i].metricInfo.unit, "%");
  }
  EXPECT_EQ(get->metrics[0].nvmlReturn, NVML_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(get->metrics[0].metricInfo.longName, nullptr);
  EXPECT_EQ(get->metrics[4].metricId, 0xeeeeeeee);
  get->numMetrics = 478;
  const function_form& form = *find_form(static_cast<std::uint32_t>(opcode::nvmlGpmMetricsGet));
  EXPECT_EQ(marshal::nvml::check_arguments(form, {to_word(get)}), NVML_ERROR_INVALID_ARGUMENT);
  get->numMetrics = 4;
  for (nvmlGpmSample_t bad : {nvmlGpmSample_t{}, reinterpret_cast<nvmlGpmSample_t>(get),
                              reinterpret_cast<nvmlGpmSample_t>(device_handle())}) {
    get->sample2 = bad;
    EXPECT_EQ(ask(opcode::nvmlGpmMetricsGet, {to_word(get)}), NVML_ERROR_INVALID_ARGUMENT);
  }
  get->sample2 = first;
  EXPECT_EQ(ask(opcode::nvmlGpmSampleFree, {to_word(first)}), NVML_SUCCESS);
  EXPECT_EQ(ask(opcode::nvmlGpmMetricsGet, {to_word(get)}), NVML_ERROR_INVALID_ARGUMENT);
}

TEST_F(visitor_test, system_events_are_those_of_boards_that_are_lent) {
  nvmlSystemEventSetCreateRequest_v1_t made{7, nullptr};
  made.version = version_of<nvmlSystemEventSetCreateRequest_v1_t>(1);
  ASSERT_EQ(ask(opcode::nvmlSystemEventSetCreate, {to_word(&made)}), NVML_SUCCESS);
  ASSERT_NE(made.set, nullptr);
  nvmlSystemRegisterEventRequest_v1_t wanted{version_of<nvmlSystemRegisterEventRequest_v1_t>(1), 3, made.set};
  EXPECT_EQ(ask(opcode::nvmlSystemRegisterEvents, {to_word(&wanted)}), NVML_SUCCESS);
  wanted.set = reinterpret_cast<nvmlSystemEventSet_t>(&wanted);
  EXPECT_EQ(ask(opcode::nvmlSystemRegisterEvents, {to_word(&wanted)}), NVML_ERROR_INVALID_ARGUMENT);
  nvmlSystemEventData_v1_t events[2]{{9, 9}, {9, 9}};
  nvmlSystemEventSetWaitRequest_v1_t wait{
      version_of<nvmlSystemEventSetWaitRequest_v1_t>(1), 5, made.set, events, 2, 0};
  EXPECT_EQ(ask(opcode::nvmlSystemEventSetWait, {to_word(&wait)}), NVML_SUCCESS);
  EXPECT_EQ(wait.numEvent, 1u);
  EXPECT_EQ(events[0].gpuId, 0x1b00u);
  EXPECT_EQ(events[0].eventType, 2u);
  EXPECT_EQ(events[1].gpuId, 0u) << "of a board that is not lent";
  EXPECT_EQ(wait.timeoutms, 5u);
  nvmlSystemEventSetFreeRequest_v1_t gone{version_of<nvmlSystemEventSetFreeRequest_v1_t>(1), made.set};
  EXPECT_EQ(ask(opcode::nvmlSystemEventSetFree, {to_word(&gone)}), NVML_SUCCESS);
  EXPECT_EQ(gone.set, made.set);
  EXPECT_EQ(ask(opcode::nvmlSystemEventSetFree, {to_word(&gone)}), NVML_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(ask(opcode::nvmlSystemEventSetWait, {to_word(&wait)}), NVML_ERROR_INVALID_ARGUMENT);
}

TEST_F(visitor_test, events_of_other_boards_are_over_when_none_is_left) {
  house_.visible = {"0000:1D:00.0"};
  visitor_ = std::make_unique<visitor>(house_, identity{"user 1", "host"});
  nvmlSystemEventSetCreateRequest_v1_t made{version_of<nvmlSystemEventSetCreateRequest_v1_t>(1), nullptr};
  ASSERT_EQ(ask(opcode::nvmlSystemEventSetCreate, {to_word(&made)}), NVML_SUCCESS);
  nvmlSystemEventData_v1_t events[2]{};
  nvmlSystemEventSetWaitRequest_v1_t wait{
      version_of<nvmlSystemEventSetWaitRequest_v1_t>(1), 5, made.set, events, 2, 0};
  EXPECT_EQ(ask(opcode::nvmlSystemEventSetWait, {to_word(&wait)}), NVML_ERROR_TIMEOUT);
}

/// A driver lets a process register only once. If it must not wait, it returns success without events.
class strict : public device::nvml_device {
 public:
  explicit strict(const function_table& inner) : table_(inner) {
    table_.nvmlSystemRegisterEvents = [](nvmlSystemRegisterEventRequest_v1_t*) {
      return ++registered == 1 ? NVML_SUCCESS : NVML_ERROR_UNKNOWN;
    };
    table_.nvmlSystemEventSetWait = [](nvmlSystemEventSetWaitRequest_v1_t* request) {
      request->numEvent = pending ? 1 : 0;
      if (pending) request->data[0] = {pending, 0x1b00};
      return pending = 0, NVML_SUCCESS;  // also without events
    };
  }
  std::string_view kind() const override { return "strict"; }
  std::string describe() const override { return "registers once"; }
  const function_table& nvml() const override { return table_; }
  nvmlReturn_t absent() const override { return NVML_ERROR_NOT_SUPPORTED; }
  static inline int registered = 0;
  static inline unsigned long long pending = 0;

 private:
  function_table table_;
};

TEST_F(visitor_test, system_events_are_registered_for_once_and_told_to_all_who_watch) {
  const strict one(device_->nvml());
  house_.device = &one;
  const auto begin = [&](unsigned long long types) {
    nvmlSystemEventSetCreateRequest_v1_t made{version_of<nvmlSystemEventSetCreateRequest_v1_t>(1), nullptr};
    EXPECT_EQ(ask(opcode::nvmlSystemEventSetCreate, {to_word(&made)}), NVML_SUCCESS);
    nvmlSystemRegisterEventRequest_v1_t wanted{version_of<nvmlSystemRegisterEventRequest_v1_t>(1), types,
                                               made.set};
    EXPECT_EQ(ask(opcode::nvmlSystemRegisterEvents, {to_word(&wanted)}), NVML_SUCCESS);
    return made.set;
  };
  nvmlSystemEventData_v1_t events[2]{};
  const auto wait = [&](nvmlSystemEventSet_t set) {
    nvmlSystemEventSetWaitRequest_v1_t request{
        version_of<nvmlSystemEventSetWaitRequest_v1_t>(1), 5, set, events, 2, 0};
    return ask(opcode::nvmlSystemEventSetWait, {to_word(&request)});
  };
  const nvmlSystemEventSet_t first = begin(1);
  std::unique_ptr<visitor> left = std::exchange(
      visitor_, std::make_unique<visitor>(house_, identity{"user 2", "host"}));  // another client, beside it
  const nvmlSystemEventSet_t both = begin(3), other = begin(2);
  EXPECT_EQ(strict::registered, 1);
  EXPECT_EQ(wait(both), NVML_ERROR_TIMEOUT) << "a driver that is not to wait says success";
  strict::pending = 1;
  EXPECT_EQ(wait(other), NVML_ERROR_TIMEOUT) << "of a type that it does not watch";
  EXPECT_EQ(wait(both), NVML_SUCCESS);
  EXPECT_EQ(events[0].eventType, 1u);
  EXPECT_EQ(wait(both), NVML_ERROR_TIMEOUT) << "told once";
  visitor_ = std::make_unique<visitor>(house_, identity{"user 3", "host"});
  EXPECT_EQ(wait(begin(1)), NVML_ERROR_TIMEOUT) << "came before it watched";
  std::swap(visitor_, left);
  EXPECT_EQ(wait(first), NVML_SUCCESS) << "kept for the first";
  house_.device = device_.get();
}

TEST_F(visitor_test, operational_events_are_those_of_boards_that_are_lent) {
  nvmlEventSet_t set = nullptr;
  ASSERT_EQ(ask(opcode::nvmlEventSetCreate, {to_word(&set)}), NVML_SUCCESS);
  nvmlGpuOperationalEventConfig_v1_t config{"GPU-6d6f636b-0000-4000-8000-000000000001", 0, 0};
  const words arguments{to_word(set), to_word(&config)};
  EXPECT_EQ(ask(opcode::nvmlEventSetRegisterGpuOperationalEvents_v1, arguments), NVML_SUCCESS);
  config.uuid[39] = '2';
  EXPECT_EQ(ask(opcode::nvmlEventSetRegisterGpuOperationalEvents_v1, arguments), NVML_ERROR_INVALID_ARGUMENT);
  std::memset(config.uuid, 'x', sizeof config.uuid);
  EXPECT_EQ(ask(opcode::nvmlEventSetRegisterGpuOperationalEvents_v1, arguments), NVML_ERROR_INVALID_ARGUMENT);
  nvmlEventSetWait_v3_t wait{};
  wait.timeoutMs = 77;
  EXPECT_EQ(ask(opcode::nvmlEventSetWait_v3, {to_word(set), to_word(&wait)}), NVML_SUCCESS);
  EXPECT_EQ(wait.timeoutMs, 77u);
  EXPECT_EQ(wait.groupIndex, device::mock::nvml_byte(opcode::nvmlEventSetWait_v3, 1,
                                                     offsetof(nvmlEventSetWait_v3_t, groupIndex)));
}

/// A list that is not there, and one that is too short for the answer.
TEST_F(visitor_test, lists_that_are_absent_or_short_are_not_written) {
  nvmlVgpuTypeIdInfo_v1_t info{version_of<nvmlVgpuTypeIdInfo_v1_t>(1), 9, nullptr};
  const std::uint64_t instance = handle(handle_kind::gpu_instance);
  EXPECT_EQ(ask(opcode::nvmlGpuInstanceGetCreatableVgpus, {instance, to_word(&info)}), NVML_SUCCESS);
  EXPECT_EQ(info.vgpuTypeIds, nullptr);
  EXPECT_EQ(info.vgpuCount, 0u) << "the device must not count what is not there";
  // The first version of a struct is shorter, and has the same list.
  struct first_version {
    unsigned version, size, count;
    unsigned* ids;
    unsigned behind;
  };
  unsigned ids[3] = {1, 1, 0x5a5a5a5a};
  constexpr unsigned v1 = offsetof(first_version, behind) | 1u << 24;
  first_version old{v1, 0, 2, ids, 0x5a5a5a5a};
  EXPECT_EQ(
      ask(opcode::nvmlDeviceGetVgpuTypeSupportedPlacements, {to_word(device_handle()), 0, to_word(&old)}),
      NVML_SUCCESS);
  EXPECT_EQ(old.version, v1);
  EXPECT_EQ(old.ids, ids);
  EXPECT_NE(ids[1], 1u);
  EXPECT_EQ(ids[2], 0x5a5a5a5au);
  EXPECT_EQ(old.behind, 0x5a5a5a5au);
  // A struct of a version longer than any that we know may have pointers that we do not know.
  nvmlVgpuPlacementList_v2_t newer{};
  newer.version = (static_cast<unsigned>(sizeof newer) + 8) | 3u << 24;
  const function_form& form =
      *find_form(static_cast<std::uint32_t>(opcode::nvmlDeviceGetVgpuTypeSupportedPlacements));
  EXPECT_EQ(marshal::nvml::check_arguments(form, {to_word(device_handle()), 0, to_word(&newer)}),
            NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
}

/// A valid question with each bit flipped, and cut at each byte, gets an answer or a refusal, and does no
/// harm.
TEST_F(visitor_test, damaged_questions_do_no_harm) {
  for (const opcode code :
       {opcode::nvmlDeviceGetMemoryInfo_v2, opcode::nvmlDeviceGetFieldValues, opcode::nvmlDeviceGetSamples,
        opcode::nvmlDeviceGetHandleByUUIDV, opcode::nvmlDeviceGetNvLinkTelemetrySamples_v1,
        opcode::nvmlGpmMetricsGet, opcode::nvmlDeviceGetVgpuTypeSupportedPlacements}) {
    const function_form& form = *find_form(static_cast<std::uint32_t>(code));
    program_memory m;
    prepare(form, m, [&](handle_kind kind) { return handle(kind); });
    std::vector<std::byte> question, answer;
    wire::writer w(question);
    marshal::nvml::encode_question(w, form, m.arguments);
    int refused = 0;
    for (std::size_t bit = 0; bit < question.size() * 8; ++bit) {
      std::vector<std::byte> damaged = question;
      damaged[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
      answer.clear();
      refused += !visitor_->answer(static_cast<std::uint32_t>(code), damaged, answer);
    }
    EXPECT_GT(refused, 0) << name_of(code);
    for (std::size_t size = 0; size < question.size(); ++size) {
      answer.clear();
      EXPECT_FALSE(
          visitor_->answer(static_cast<std::uint32_t>(code), std::span(question).first(size), answer));
    }
  }
}

TEST_F(visitor_test, only_functions_that_travel_can_be_asked) {
  std::vector<std::byte> answer;
  for (const function_info& f : functions()) {
    if (f.about.how == kind::call || f.about.how == kind::custom) continue;
    EXPECT_FALSE(visitor_->answer(static_cast<std::uint32_t>(f.code), {}, answer)) << f.name;
  }
  EXPECT_FALSE(visitor_->answer(3000, {}, answer));
}

}  // namespace
}  // namespace outboard::backend::nvml
