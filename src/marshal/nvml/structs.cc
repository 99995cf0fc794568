#include "marshal/nvml/structs.hh"

#include <algorithm>
#include <vector>

namespace outboard::marshal::nvml {
namespace {

using api::nvml::field_kind;
using api::nvml::field_layout;
using api::nvml::for_each_pointer;
using api::nvml::said_count;
using api::nvml::struct_layout;

std::byte* pointer_in(const field_layout& f, const std::byte* holder) {
  std::byte* value = nullptr;
  std::memcpy(&value, holder + f.offset, sizeof value);
  return value;
}

void set_pointer(const field_layout& f, std::byte* holder, const void* value) {
  std::memcpy(holder + f.offset, &value, sizeof value);
}

/// Writes the struct itself, without what it points to.
void put_bytes(wire::writer& w, const struct_layout& layout, const std::byte* at, std::uint32_t size) {
  w.put(size);
  std::vector<std::byte> copy(at, at + size);
  if (size == layout.size || tail_of(layout)) clear_padding(layout, copy.data(), size);
  for_each_pointer(layout, copy.data(), size, [](const field_layout& f, std::byte* holder) {
    return set_pointer(f, holder, nullptr), true;
  });
  w.bytes(copy);
}

template <class PutStruct>
void put_elements(wire::writer& w, const field_layout& list, const std::byte* at, std::uint32_t n,
                  PutStruct&& put_one) {
  w.put(n);
  if (!list.listed) return w.bytes({at, n * list.stride});
  for (std::uint32_t e = 0; e < n; ++e) put_one(*list.listed(), at + e * list.stride);
}

/// Reads `n` elements: plain values, or structs by take_one().
template <class TakeStruct>
bool take_elements(wire::reader& r, const field_layout& list, std::byte* at, std::uint32_t n,
                   TakeStruct&& take_one) {
  if (!list.listed) {
    const auto raw = r.bytes(std::uint64_t{n} * list.stride);
    if (!raw.empty()) std::memcpy(at, raw.data(), raw.size());
    return r.ok();
  }
  for (std::uint32_t e = 0; e < n; ++e) {
    if (!take_one(*list.listed(), at + e * list.stride)) return false;
  }
  return r.ok();
}

}  // namespace

std::uint32_t struct_size(const struct_layout& layout, const std::byte* at) {
  if (layout.version != 0) {
    unsigned version = 0;
    std::memcpy(&version, at, sizeof version);
    return api::nvml::size_said_by(version);
  }
  const field_layout* tail = tail_of(layout);
  if (!tail) return static_cast<std::uint32_t>(layout.size);
  const std::size_t there = std::min<std::size_t>(said_count(*tail, at), tail->elements);
  return static_cast<std::uint32_t>(tail->offset + there * (tail->size / tail->elements));
}

bool size_is_possible(const struct_layout& layout, const std::byte* at) {
  if (const field_layout* tail = tail_of(layout)) return said_count(*tail, at) <= tail->elements;
  if (layout.version == 0) return true;
  const std::uint32_t size = struct_size(layout, at);
  // A version that we do not know may contain pointers where we would send bytes.
  const std::size_t most = leads_elsewhere(layout) ? layout.size : max_struct;
  return size >= sizeof(unsigned) && size <= most;
}

const char* text_pool::keep(std::string_view text) {
  auto known = texts_.find(text);
  if (known == texts_.end()) {
    if (texts_.size() >= most) return nullptr;
    known = texts_.emplace(text).first;
  }
  return known->c_str();
}

void put_struct(wire::writer& w, const struct_layout& layout, const std::byte* at) {
  const std::uint32_t size = struct_size(layout, at);
  put_bytes(w, layout, at, size);
  for_each_pointer(layout, at, size, [&](const field_layout& f, const std::byte* holder) {
    if (f.kind != field_kind::list) return true;
    const std::byte* list = pointer_in(f, holder);
    w.put(list != nullptr);
    if (!list) return true;
    const std::uint32_t n = std::min<std::uint32_t>(said_count(f, holder), max_elements);
    put_elements(w, f, list, n,
                 [&](const struct_layout& of, const std::byte* element) { put_struct(w, of, element); });
    return true;
  });
}

bool take_answer(wire::reader& r, const struct_layout& layout, std::byte* at, text_pool& texts) {
  const std::uint32_t size = struct_size(layout, at);
  const auto given = r.get<std::uint32_t>();
  if (!r.ok() || given > size) return false;
  const auto raw = r.bytes(given);
  if (!r.ok()) return false;
  // The program's own pointers and counts decide; those that arrived are ignored.
  std::vector<std::byte> fresh(at, at + size);
  if (!raw.empty()) std::memcpy(fresh.data(), raw.data(), raw.size());
  const bool fits = for_each_pointer(layout, at, size, [&](const field_layout& f, std::byte* holder) {
    std::byte* const mine = fresh.data() + (holder - at);
    const bool there = r.flag();
    if (f.kind == field_kind::text) {
      const std::string_view text = there ? r.text(max_text) : std::string_view{};
      return set_pointer(f, mine, there && r.ok() ? texts.keep(text) : nullptr), r.ok();
    }
    std::byte* const list = pointer_in(f, holder);
    set_pointer(f, mine, list);
    if (!there) return r.ok();
    const auto n = r.get<std::uint32_t>();
    if (!list || n > said_count(f, holder)) return false;
    return take_elements(r, f, list, n, [&](const struct_layout& of, std::byte* element) {
      return take_answer(r, of, element, texts);
    });
  });
  if (fits) std::memcpy(at, fresh.data(), size);
  return fits && r.ok();
}

bool take_question(wire::reader& r, const struct_layout& layout, std::byte* at, std::size_t room,
                   const make_list& make) {
  const auto size = r.get<std::uint32_t>();
  if (!r.ok() || size > room) return false;
  const auto raw = r.bytes(size);
  if (!raw.empty()) std::memcpy(at, raw.data(), raw.size());
  if (!r.ok() || !size_is_possible(layout, at)) return false;
  // Its own size field must match what was sent, because the answer has that size.
  if ((layout.version != 0 || tail_of(layout)) && struct_size(layout, at) != size) return false;
  return for_each_pointer(layout, at, size, [&](const field_layout& f, std::byte* holder) {
    set_pointer(f, holder, nullptr);
    if (f.kind == field_kind::text) return true;
    std::uint32_t n = 0;
    if (const bool there = r.flag(); there) {
      n = r.get<std::uint32_t>();
      // No element is smaller than a byte: allocate nothing for elements that cannot be there.
      if (!r.ok() || n > max_elements || n > r.rest().size() || n > said_count(f, holder)) return false;
      std::byte* const list = make(n, f.stride);
      if (!list || !take_elements(r, f, list, n, [&](const struct_layout& of, std::byte* element) {
            return take_question(r, of, element, f.stride, make);
          })) {
        return false;
      }
      set_pointer(f, holder, list);
    }
    // The device counts the elements that are there, not those that the struct claimed.
    std::memcpy(holder + f.count_at, &n, sizeof n);
    return r.ok();
  });
}

void put_answer(wire::writer& w, const struct_layout& layout, const std::byte* at,
                const list_elements& elements) {
  const std::uint32_t size = struct_size(layout, at);
  put_bytes(w, layout, at, size);
  for_each_pointer(layout, at, size, [&](const field_layout& f, const std::byte* holder) {
    const std::byte* target = pointer_in(f, holder);
    if (f.kind == field_kind::text) {
      w.put(target != nullptr);
      const char* text = reinterpret_cast<const char*>(target);
      if (text) w.text({text, ::strnlen(text, max_text)});
      return true;
    }
    const auto n = target ? elements(target, said_count(f, holder)) : std::nullopt;
    w.put(n.has_value());
    if (!n) return true;
    put_elements(w, f, target, *n, [&](const struct_layout& of, const std::byte* element) {
      put_answer(w, of, element, elements);
    });
    return true;
  });
}

}  // namespace outboard::marshal::nvml
