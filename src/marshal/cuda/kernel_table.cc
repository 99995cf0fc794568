#include "marshal/cuda/kernel_table.hh"

#include <algorithm>

#include "marshal/cuda/image_entries.hh"
#include "marshal/cuda/image_fatbin.hh"
#include "wire/cursor.hh"

namespace outboard::marshal {
namespace {

// The largest cubin of CUDA 13's libraries unpacks to below 200 MB.
constexpr std::uint64_t max_unpacked_bytes = 1ull << 30;
constexpr std::uint64_t max_name_bytes = 1 << 20;  // C++ mangles to tens of kilobytes
constexpr std::uint32_t max_parameters = 32764;    // one byte each

std::string_view as_text(std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return text.substr(0, text.find('\0'));
}

void append(kernel_table& to, kernel_table&& from) {
  const bool first = to.source == kernel_source::none;
  to.prints = from.prints || (to.prints && !first);
  to.allocates = from.allocates || (to.allocates && !first);
  to.source = std::max(to.source, from.source);
  std::move(from.kernels.begin(), from.kernels.end(), std::back_inserter(to.kernels));
  std::move(from.variables.begin(), from.variables.end(), std::back_inserter(to.variables));
}

result<kernel_table> parse_fatbin(std::span<const std::byte> part, const image_target& target) {
  const auto entries = fatbin_entries(part);
  if (!entries) return entries.error();
  const chosen_entries chosen = choose_entries(*entries, target);
  const fatbin_entry* const entry = chosen.cubin ? chosen.cubin : chosen.ptx;
  if (!entry) return kernel_table{};
  if (entry->kind == entry_kind::cubin && entry->packing == entry_packing::none)
    return parse_cubin(entry->payload);
  const auto bytes = entry_unpack(*entry, max_unpacked_bytes);
  if (!bytes) return bytes.error();
  return entry->kind == entry_kind::cubin ? parse_cubin(*bytes) : parse_ptx(as_text(*bytes));
}

/// The device's side links the objects: registers, shared memory and versions are those of the result.
void forget_what_linking_changes(kernel_info& kernel) {
  kernel.max_threads = kernel.static_shared = kernel.constant_bytes = kernel.local_bytes = -1;
  kernel.registers = kernel.ptx_version = kernel.binary_version = -1;
}

template <class Item>
void sort_by_name(std::vector<Item>& items) {
  std::stable_sort(items.begin(), items.end(), [](auto& a, auto& b) { return a.name < b.name; });
  items.erase(std::unique(items.begin(), items.end(), [](auto& a, auto& b) { return a.name == b.name; }),
              items.end());
}

template <class Item>
const Item* find_by_name(const std::vector<Item>& items, std::string_view name) {
  const auto found = std::lower_bound(items.begin(), items.end(), name,
                                      [](const Item& item, std::string_view n) { return item.name < n; });
  return found != items.end() && found->name == name ? &*found : nullptr;
}

void put(wire::writer& to, const kernel_info& kernel) {
  to.text(kernel.name);
  to.put(kernel.layout_known);
  to.put(kernel.explicit_cluster);
  to.put(kernel.parameter_bytes);
  for (const std::int32_t value :
       {kernel.max_threads, kernel.static_shared, kernel.constant_bytes, kernel.local_bytes, kernel.registers,
        kernel.ptx_version, kernel.binary_version, kernel.max_cluster_rank})
    to.put(value);
  for (const std::int32_t value : kernel.required_block) to.put(value);
  for (const std::int32_t value : kernel.required_cluster) to.put(value);
  to.put(static_cast<std::uint32_t>(kernel.parameters.size()));
  for (const kernel_parameter& p : kernel.parameters) to.put(p.offset), to.put(p.size);
}

kernel_info get_kernel(wire::reader& from) {
  kernel_info kernel;
  kernel.name = from.text(max_name_bytes);
  kernel.layout_known = from.flag();
  kernel.explicit_cluster = from.flag();
  kernel.parameter_bytes = from.get<std::uint32_t>();
  for (std::int32_t* value :
       {&kernel.max_threads, &kernel.static_shared, &kernel.constant_bytes, &kernel.local_bytes,
        &kernel.registers, &kernel.ptx_version, &kernel.binary_version, &kernel.max_cluster_rank})
    *value = from.get<std::int32_t>();
  for (std::int32_t& value : kernel.required_block) value = from.get<std::int32_t>();
  for (std::int32_t& value : kernel.required_cluster) value = from.get<std::int32_t>();
  const auto count = from.get<std::uint32_t>();
  if (count > max_parameters || kernel.parameter_bytes > 1 << 16) return from.fail(), kernel;
  const auto raw = from.array<kernel_parameter>(count);
  std::uint64_t end = 0;
  for (std::uint32_t n = 0; from.ok() && n < count; ++n) {
    const auto p = load<kernel_parameter>(raw, n * sizeof(kernel_parameter));
    // Whoever packs a launch relies on this.
    if (p.offset < end || std::uint64_t{p.offset} + p.size > kernel.parameter_bytes)
      return from.fail(), kernel;
    end = std::uint64_t{p.offset} + p.size;
    kernel.parameters.push_back(p);
  }
  return kernel;
}

}  // namespace

const kernel_info* kernel_table::find_kernel(std::string_view name) const {
  return find_by_name(kernels, name);
}

const variable_info* kernel_table::find_variable(std::string_view name) const {
  return find_by_name(variables, name);
}

void sort_table(kernel_table& table) {
  sort_by_name(table.kernels);
  sort_by_name(table.variables);
}

result<kernel_table> parse_kernels(const image_view& image, const image_target& target) {
  if (image.parts.empty()) return failure("an image without bytes");
  if (image.kind == image_kind::elf) return parse_cubin(image.parts[0]);
  if (image.kind == image_kind::ptx) return parse_ptx(as_text(image.parts[0]));
  auto table = parse_fatbin(image.parts[0], target);
  if (!table || !image.linked || table->source != kernel_source::none) return table;
  for (std::size_t n = 1; n < image.parts.size(); ++n) {
    auto object = parse_fatbin(image.parts[n], target);
    if (!object) return object;
    append(*table, *std::move(object));
  }
  for (kernel_info& kernel : table->kernels) forget_what_linking_changes(kernel);
  sort_table(*table);
  return table;
}

std::vector<std::byte> encode(const kernel_table& table) {
  std::vector<std::byte> bytes;
  wire::writer to(bytes);
  to.put(static_cast<std::uint8_t>(table.source));
  to.put(static_cast<std::uint32_t>(table.kernels.size()));
  for (const kernel_info& kernel : table.kernels) put(to, kernel);
  to.put(static_cast<std::uint32_t>(table.variables.size()));
  for (const variable_info& variable : table.variables) {
    to.text(variable.name);
    to.put(static_cast<std::uint8_t>(variable.space));
    to.put(variable.size);
  }
  return bytes;
}

result<kernel_table> decode_kernel_table(std::span<const std::byte> bytes) {
  // The vectors grow with what was really read; no count is believed.
  wire::reader from(bytes);
  kernel_table table;
  const auto source = from.get<std::uint8_t>();
  if (source > 2) return failure("kernel table from source " + std::to_string(source));
  table.source = static_cast<kernel_source>(source);
  const auto kernels = from.get<std::uint32_t>();
  for (std::uint32_t n = 0; from.ok() && n < kernels; ++n) table.kernels.push_back(get_kernel(from));
  const auto variables = from.get<std::uint32_t>();
  for (std::uint32_t n = 0; from.ok() && n < variables; ++n) {
    variable_info variable;
    variable.name = from.text(max_name_bytes);
    const auto space = from.get<std::uint8_t>();
    variable.size = from.get<std::uint64_t>();
    if (space > 2) from.fail();
    variable.space = static_cast<variable_space>(space);
    table.variables.push_back(std::move(variable));
  }
  if (!from.finished()) return failure("damaged kernel table");
  const auto by_name = [](auto& a, auto& b) { return !(a.name < b.name); };
  if (std::adjacent_find(table.kernels.begin(), table.kernels.end(), by_name) != table.kernels.end() ||
      std::adjacent_find(table.variables.begin(), table.variables.end(), by_name) != table.variables.end())
    return failure("kernel table out of order");
  return table;
}

}  // namespace outboard::marshal
