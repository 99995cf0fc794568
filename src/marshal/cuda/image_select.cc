// module_image::select: which entries of a fatbin a device can use, and the fatbin that holds only those.
#include <algorithm>
#include <optional>
#include <string>
#include <tuple>

#include "marshal/cuda/image.hh"
#include "marshal/cuda/image_entries.hh"
#include "marshal/cuda/image_fatbin.hh"
#include "wire/cursor.hh"

namespace outboard::marshal {
namespace {

std::uint32_t capability_of(const image_target& target) { return target.major * 10 + target.minor; }

/// sm_90a runs on 9.0 alone; machine code else on later minors of its major (family-specific code too).
bool cubin_fits(const fatbin_entry& e, const image_target& target) {
  const std::uint32_t device = capability_of(target);
  if (e.arch_specific) return e.capability == device;
  return e.capability / 10 == target.major && e.capability <= device;
}

/// PTX runs on everything later, unless it is specific.
bool ptx_fits(const fatbin_entry& e, const image_target& target) {
  if (e.arch_specific || e.family_specific) return cubin_fits(e, target);
  return e.capability <= capability_of(target);
}

/// Higher is better: newer first, then what was made for exactly this device.
std::pair<std::uint32_t, int> rank(const fatbin_entry& e) {
  return {e.capability, e.arch_specific ? 2 : e.family_specific ? 1 : 0};
}

/// The interpreter has no architecture: what fits before what is too new, then near before far, plain before
/// specific.
std::tuple<bool, std::int64_t, int> interpreter_rank(const fatbin_entry& e, const image_target& target) {
  const bool fits = e.capability <= capability_of(target);
  const std::int64_t capability = e.capability;
  return {fits, fits ? capability : -capability, -(int{e.arch_specific} + int{e.family_specific})};
}

template <class Fits, class Rank>
const fatbin_entry* best(std::span<const fatbin_entry> entries, entry_kind kind, Fits fits, Rank rank_of) {
  const fatbin_entry* found = nullptr;
  for (const fatbin_entry& e : entries) {
    if (e.kind != kind || !fits(e)) continue;
    if (!found || rank_of(e) > rank_of(*found)) found = &e;
  }
  return found;
}

std::string describe(std::span<const fatbin_entry> entries) {
  std::string text;
  for (const fatbin_entry& e : entries) {
    if (text.size() > 200) return text + " …";
    const char* const name = e.kind == entry_kind::ptx     ? "compute_"
                             : e.kind == entry_kind::cubin ? "sm_"
                             : e.kind == entry_kind::lto   ? "lto_"
                                                           : "unknown_";
    text += (text.empty() ? "" : " ") + std::string(name) + std::to_string(e.capability) +
            (e.arch_specific     ? "a"
             : e.family_specific ? "f"
                                 : "");
  }
  return text.empty() ? "nothing" : text;
}

error nothing_fits(std::span<const fatbin_entry> entries, const image_target& target) {
  return {action::fall_back, "the image holds " + describe(entries) +
                                 ", none of which a device of capability " + std::to_string(target.major) +
                                 "." + std::to_string(target.minor) +
                                 (target.wants_ptx ? " that needs PTX can use" : " can use")};
}

std::vector<std::byte> rebuild(std::initializer_list<const fatbin_entry*> entries) {
  std::vector<std::byte> bytes;
  wire::writer to(bytes);
  to.put(fatbin_magic);
  to.put(std::uint16_t{1});
  to.put(static_cast<std::uint16_t>(fatbin_header_bytes));
  to.put(std::uint64_t{0});
  for (const fatbin_entry* e : entries)
    if (e) to.bytes(e->whole);
  to.patch<std::uint64_t>(8, bytes.size() - fatbin_header_bytes);
  return bytes;
}

}  // namespace

chosen_entries choose_entries(std::span<const fatbin_entry> entries, const image_target& target) {
  chosen_entries chosen;
  if (target.wants_ptx) {
    chosen.ptx = best(
        entries, entry_kind::ptx, [](const fatbin_entry&) { return true; },
        [&](const fatbin_entry& e) { return interpreter_rank(e, target); });
    return chosen;
  }
  chosen.cubin = best(
      entries, entry_kind::cubin, [&](const fatbin_entry& e) { return cubin_fits(e, target); }, rank);
  chosen.ptx = best(
      entries, entry_kind::ptx, [&](const fatbin_entry& e) { return ptx_fits(e, target); }, rank);
  return chosen;
}

result<module_image> module_image::select(const image_view& from, const image_target& target) {
  if (from.parts.empty()) return failure("an image without bytes");
  if (target.whole) return pack(from, false);
  if (from.kind == image_kind::elf && target.wants_ptx)
    return error{action::fall_back, "the image is a cubin, and the device needs PTX"};
  if (from.kind != image_kind::fatbin) return pack(from, false);

  std::vector<std::vector<std::byte>> kept;
  std::vector<fatbin_entry> seen;
  const auto keep = [&](std::span<const std::byte> part) -> status {
    const auto entries = fatbin_entries(part);
    if (!entries) return entries.error();
    const chosen_entries chosen = choose_entries(*entries, target);
    if (chosen.cubin || chosen.ptx) kept.push_back(rebuild({chosen.cubin, chosen.ptx}));
    seen.insert(seen.end(), entries->begin(), entries->end());
    return {};
  };

  image_view view{image_kind::fatbin, false, {}};
  // Machine code linked at build time makes the objects superfluous.
  if (!from.linked || !target.wants_ptx) OUTBOARD_TRY(keep(from.parts[0]));
  if (kept.empty() && from.linked) {
    // The device's side links the objects; the linked part is asked for by the container only.
    view.linked = true;
    kept.push_back(rebuild({}));
    for (std::size_t n = 1; n < from.parts.size(); ++n) OUTBOARD_TRY(keep(from.parts[n]));
    if (kept.size() == 1) kept.clear();
  }
  if (kept.empty()) return nothing_fits(seen, target);
  for (const auto& part : kept) view.parts.emplace_back(part);
  return pack(view, view.size() != from.size());
}

}  // namespace outboard::marshal
