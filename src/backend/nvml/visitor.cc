#include "backend/nvml/visitor.hh"

#include <algorithm>
#include <cctype>
#include <utility>

#include "base/check.hh"

namespace outboard::backend::nvml {
namespace {

using namespace api::nvml;

thread_local visitor* answering = nullptr;

/// How many objects of one kind a client may hold. It can make event sets and samples.
constexpr std::size_t most_objects = 1024;

/// A handle has a kind, a generation, a number from 1 on and four zero bits. It is never 0, and looks like no
/// address.
std::uint64_t make_handle(handle_kind kind, std::uint16_t generation, std::uint64_t number) {
  return std::uint64_t{0x4e4d} << 48 | static_cast<std::uint64_t>(kind) << 40 |
         std::uint64_t{generation} << 24 | number << 4;
}

template <class... A, std::size_t... I>
nvmlReturn_t run(nvmlReturn_t (*entry)(A...), [[maybe_unused]] const words& w, std::index_sequence<I...>) {
  return entry(from_word<A>(w[I])...);
}

/// Calls the entry that this client gets.
template <class... A>
nvmlReturn_t call(nvmlReturn_t (*own)(A...), nvmlReturn_t (*real)(A...), nvmlReturn_t absent,
                  const words& w) {
  auto* entry = own ? own : real;
  return entry ? run(entry, w, std::index_sequence_for<A...>()) : absent;
}

nvmlReturn_t dispatch(opcode code, const function_table& real, nvmlReturn_t absent, const words& w) {
  switch (code) {
#define CHAPTER(number, file)
#define OUTBOARD_LINE(how, symbol, ...) OUTBOARD_CASE_##how(symbol)
#define OUTBOARD_CASE_call(symbol) \
  case opcode::symbol:             \
    return call(shielded().symbol, real.symbol, absent, w);
#define OUTBOARD_CASE_custom OUTBOARD_CASE_call
#define OUTBOARD_CASE_local(symbol)
#define OUTBOARD_CASE_refused(symbol)
#include "api/nvml/expand.def"
#undef OUTBOARD_CASE_call
#undef OUTBOARD_CASE_custom
#undef OUTBOARD_CASE_local
#undef OUTBOARD_CASE_refused
#undef OUTBOARD_LINE
#undef CHAPTER
    default:
      return NVML_ERROR_FUNCTION_NOT_FOUND;
  }
}

/// "0000:1B:00.0", "00000000:1b:00.0" and "1B:00.0" name one device.
bool same_address(std::string_view a, std::string_view b) {
  const auto bare = [](std::string_view text) {
    const std::size_t first = text.find_first_not_of('0');
    return first == std::string_view::npos ? text : text.substr(first);
  };
  return std::ranges::equal(bare(a), bare(b),
                            [](char x, char y) { return std::toupper(x) == std::toupper(y); });
}

}  // namespace

visitor& current_visitor() {
  CHECK(answering != nullptr);
  return *answering;
}

visitor::visitor(house& where, identity who, unsigned process)
    : house_(where), who_(std::move(who)), process_(process) {
  find_devices();
}

visitor::~visitor() {
  // Frees what the client made and did not free.
  const function_table& table = real();
  const auto each = [this](handle_kind kind, auto&& free_one) {
    for (const auto& [object, number] : books_[static_cast<std::size_t>(kind)].numbers) free_one(object);
  };
  each(handle_kind::event_set, [&](void* set) {
    if (table.nvmlEventSetFree) table.nvmlEventSetFree(static_cast<nvmlEventSet_t>(set));
  });
  each(handle_kind::gpm_sample, [&](void* sample) {
    if (table.nvmlGpmSampleFree) table.nvmlGpmSampleFree(static_cast<nvmlGpmSample_t>(sample));
  });
  each(handle_kind::system_event_set,
       [&](void* set) { house_.events.free(static_cast<nvmlSystemEventSet_t>(set)); });
}

void visitor::find_devices() {
  const function_table& table = real();
  unsigned count = 0;
  std::vector<std::pair<std::ptrdiff_t, nvmlDevice_t>> found;
  if (!table.nvmlDeviceGetCount_v2 || table.nvmlDeviceGetCount_v2(&count) != NVML_SUCCESS) return;
  for (unsigned i = 0; i < count; ++i) {
    nvmlDevice_t device = nullptr;
    nvmlPciInfo_t pci{};
    if (table.nvmlDeviceGetHandleByIndex_v2(i, &device) != NVML_SUCCESS ||
        table.nvmlDeviceGetPciInfo_v3(device, &pci) != NVML_SUCCESS)
      continue;
    pci.busId[sizeof pci.busId - 1] = '\0';
    const auto lent = std::ranges::find_if(
        house_.visible, [&](const std::string& address) { return same_address(address, pci.busId); });
    if (lent == house_.visible.end()) continue;
    found.emplace_back(house_.in_order ? lent - house_.visible.begin() : 0, device);
  }
  std::ranges::stable_sort(found, {}, &std::pair<std::ptrdiff_t, nvmlDevice_t>::first);
  for (const auto& [place, device] : found) {
    devices_.push_back(device);
    handle_of(handle_kind::device, device);
  }
}

void* visitor::find(handle_kind kind, std::uint64_t handle) {
  const book& b = books_[static_cast<std::size_t>(kind)];
  const std::uint64_t number = (handle >> 4) & 0xfffff;
  if (number == 0 || number > b.slots.size()) return nullptr;
  const slot& s = b.slots[number - 1];
  return make_handle(kind, s.generation, number) == handle ? s.object : nullptr;
}

std::uint64_t visitor::handle_of(handle_kind kind, void* object) {
  if (!object) return 0;
  book& b = books_[static_cast<std::size_t>(kind)];
  const auto known = b.numbers.find(object);
  if (known != b.numbers.end())
    return make_handle(kind, b.slots[known->second - 1].generation, known->second);
  auto free_slot = std::ranges::find(b.slots, nullptr, &slot::object);
  if (free_slot == b.slots.end()) {
    if (is_full(kind)) return 0;
    free_slot = b.slots.insert(b.slots.end(), slot{});
  }
  free_slot->object = object;
  ++free_slot->generation;
  const auto number = static_cast<std::uint64_t>(free_slot - b.slots.begin()) + 1;
  b.numbers.emplace(object, number);
  return make_handle(kind, free_slot->generation, number);
}

bool visitor::is_full(handle_kind kind) const {
  return books_[static_cast<std::size_t>(kind)].numbers.size() >= most_objects;
}

void visitor::forget(handle_kind kind, void* object) {
  book& b = books_[static_cast<std::size_t>(kind)];
  const auto known = b.numbers.find(object);
  if (known == b.numbers.end()) return;
  b.slots[known->second - 1].object = nullptr;
  b.numbers.erase(known);
}

bool visitor::answer(std::uint32_t opcode, std::span<const std::byte> question,
                     std::vector<std::byte>& reply) {
  const function_form* form = find_form(opcode);
  if (!form) return false;
  wire::reader r(question);
  marshal::nvml::question q;
  if (!q.decode(r, *form, *this)) return false;
  nvmlReturn_t code = q.code();
  answering = this;
  if (code == NVML_SUCCESS) code = dispatch(form->code, real(), house_.device->absent(), q.arguments());
  answering = nullptr;
  wire::writer w(reply);
  q.encode_answer(w, code, *this);
  return true;
}

}  // namespace outboard::backend::nvml
