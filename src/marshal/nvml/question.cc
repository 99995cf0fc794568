#include "marshal/nvml/question.hh"

#include <algorithm>

namespace outboard::marshal::nvml {
namespace {

using api::count_kind;
using api::direction;
using api::parameter;
using api::nvml::parameter_class;
using api::nvml::parameter_form;
using enum api::nvml::nvmlReturn_t;

bool carries_in(const parameter& p) { return p.dir == direction::in || p.dir == direction::inout; }
bool carries_out(const parameter& p) { return p.dir == direction::out || p.dir == direction::inout; }
bool brings_outputs(nvmlReturn_t code) {
  return code == NVML_SUCCESS || code == NVML_ERROR_INSUFFICIENT_SIZE;
}

const std::byte* memory_at(std::uint64_t word) { return reinterpret_cast<const std::byte*>(word); }

/// Returns the number in a counting parameter of the program: a value, or what a pointer points to.
std::uint64_t program_counter(const function_form& form, const words& arguments, std::size_t index) {
  if (form.parameters[index].what == parameter_class::value) return arguments[index];
  if (form.about->parameters[index].dir == direction::out) return unsized_elements;
  unsigned value = 0;
  if (arguments[index] != 0) std::memcpy(&value, memory_at(arguments[index]), sizeof value);
  return value;
}

/// Returns how many elements a pointer of the program points to.
std::uint64_t program_elements(const function_form& form, const words& arguments, std::size_t index) {
  const parameter& p = form.about->parameters[index];
  switch (p.count) {
    case count_kind::number:
      return p.number;
    case count_kind::parameter:
      return program_counter(form, arguments, p.count_index);
    default:
      return 1;
  }
}

/// After success the program reads as many elements as its counter says now: no more than it had room for.
template <class Rooms>
bool counts_fit(const function_form& form, const words& arguments, const Rooms& room) {
  for (std::size_t i = 0; i < form.parameters.size(); ++i) {
    const parameter& p = form.about->parameters[i];
    if (form.parameters[i].what != parameter_class::memory || arguments[i] == 0 || !carries_out(p) ||
        p.count != count_kind::parameter)
      continue;
    if (form.about->parameters[p.count_index].dir == direction::out) continue;  // the program has to know
    if (program_counter(form, arguments, p.count_index) > room[i]) return false;
  }
  return true;
}

}  // namespace

nvmlReturn_t check_arguments(const function_form& form, const words& arguments) {
  for (std::size_t i = 0; i < form.parameters.size(); ++i) {
    const parameter_form& shape = form.parameters[i];
    if (shape.what == parameter_class::value) continue;
    if (arguments[i] == 0) {
      if (form.about->parameters[i].may_be_null) continue;
      return NVML_ERROR_INVALID_ARGUMENT;
    }
    if (!shape.layout || size_is_possible(*shape.layout(), memory_at(arguments[i]))) continue;
    return shape.layout()->version != 0 ? NVML_ERROR_ARGUMENT_VERSION_MISMATCH : NVML_ERROR_INVALID_ARGUMENT;
  }
  return NVML_SUCCESS;
}

void encode_question(wire::writer& w, const function_form& form, const words& arguments) {
  for (std::size_t i = 0; i < form.parameters.size(); ++i) {
    const parameter_form& shape = form.parameters[i];
    const parameter& p = form.about->parameters[i];
    if (shape.what == parameter_class::handle) {
      w.put(arguments[i]);
      continue;
    }
    if (shape.what == parameter_class::value) {
      w.bytes(std::as_bytes(std::span(&arguments[i], 1)).first(shape.size));
      continue;
    }
    w.put(arguments[i] != 0);
    if (arguments[i] == 0) continue;
    const std::byte* at = memory_at(arguments[i]);
    if (p.count == count_kind::string) {
      const char* text = reinterpret_cast<const char*>(at);
      w.text({text, ::strnlen(text, max_text)});
      continue;
    }
    // The server needs the version of a versioned struct even if the struct is only an output.
    if (!carries_in(p)) continue;
    const std::uint64_t n = program_elements(form, arguments, i);
    w.put(static_cast<std::uint32_t>(std::min<std::uint64_t>(n, max_elements)));
    for (std::uint64_t e = 0; e < std::min<std::uint64_t>(n, max_elements); ++e) {
      if (shape.layout) {
        put_struct(w, *shape.layout(), at + e * shape.size);
      } else {
        w.bytes({at + e * shape.size, shape.size});
      }
    }
  }
}

bool decode_answer(wire::reader& r, const function_form& form, const words& arguments, nvmlReturn_t& code,
                   text_pool& texts) {
  code = static_cast<nvmlReturn_t>(r.get<std::int32_t>());
  if (!r.ok() || !brings_outputs(code)) return r.finished();
  // The count of a program's array is itself an output: read it before anything is written.
  std::array<std::uint64_t, api::nvml::max_arguments> room{};
  for (std::size_t i = 0; i < form.parameters.size(); ++i) room[i] = program_elements(form, arguments, i);
  for (std::size_t i = 0; i < form.parameters.size(); ++i) {
    const parameter_form& shape = form.parameters[i];
    if (shape.what != parameter_class::memory || arguments[i] == 0 || !carries_out(form.about->parameters[i]))
      continue;
    auto* at = reinterpret_cast<std::byte*>(arguments[i]);
    const auto n = r.get<std::uint32_t>();
    if (n > room[i]) return false;
    for (std::uint32_t e = 0; e < n && r.ok(); ++e) {
      std::byte* element = at + std::size_t{e} * shape.size;
      if (shape.layout) {
        if (!take_answer(r, *shape.layout(), element, texts)) return false;
      } else {
        const auto raw = r.bytes(shape.size);
        if (!raw.empty()) std::memcpy(element, raw.data(), raw.size());
      }
    }
    // The program reads a text up to its end.
    if (shape.text && n > 0) at[n - 1] = std::byte{0};
  }
  return r.finished() && (code != NVML_SUCCESS || counts_fit(form, arguments, room));
}

bool question::decode(wire::reader& r, const function_form& form, handle_book& handles) {
  form_ = &form;
  for (std::size_t i = 0; i < form.parameters.size(); ++i) {
    const parameter_form& shape = form.parameters[i];
    const parameter& p = form.about->parameters[i];
    if (shape.what == parameter_class::handle) {
      arguments_[i] = api::nvml::to_word(handles.find(shape.handle, r.get<std::uint64_t>()));
      if (arguments_[i] == 0) code_ = NVML_ERROR_INVALID_ARGUMENT;
    } else if (shape.what == parameter_class::value) {
      const auto raw = r.bytes(shape.size);
      if (!raw.empty()) std::memcpy(&arguments_[i], raw.data(), raw.size());
    } else {
      buffers_[i].present = r.flag();
      if (!buffers_[i].present) {
        if (!p.may_be_null) code_ = NVML_ERROR_INVALID_ARGUMENT;
      } else if ((carries_in(p) || p.count == count_kind::string) && !decode_elements(r, i, handles)) {
        return false;
      }
    }
  }
  return r.finished() && make_room(handles);
}

bool question::reserve(std::size_t index, std::uint64_t elements, std::uint32_t stride) {
  buffer& b = buffers_[index];
  if (elements > max_elements) return false;
  // Adds one zero element to what is promised to the device, so that text always ends.
  const std::size_t bytes = (static_cast<std::size_t>(elements) + 1) * stride;
  taken_ += bytes;
  if (taken_ > max_bytes) return false;
  b.capacity = static_cast<std::uint32_t>(elements);
  b.stride = stride;
  b.memory.assign(bytes / sizeof(std::uint64_t) + 1, 0);
  arguments_[index] = api::nvml::to_word(b.bytes());
  return true;
}

/// Allocates a list that a struct points to, and keeps it by its address for the answer.
std::byte* question::make_list(std::uint32_t elements, std::size_t stride) {
  const std::size_t bytes = (std::size_t{elements} + 1) * stride;
  taken_ += bytes;
  if (taken_ > max_bytes) return nullptr;
  buffer b{true, elements, static_cast<std::uint32_t>(stride), {}};
  b.memory.assign(bytes / sizeof(std::uint64_t) + 1, 0);
  std::byte* const at = b.bytes();
  lists_.emplace(at, std::move(b));
  return at;
}

bool question::decode_elements(wire::reader& r, std::size_t index, handle_book& handles) {
  const parameter_form& shape = form_->parameters[index];
  const parameter& p = form_->about->parameters[index];
  if (p.count == count_kind::string) {
    const auto text = r.text(max_text);
    if (!r.ok() || !reserve(index, text.size(), 1)) return false;
    std::memcpy(buffers_[index].bytes(), text.data(), text.size());
    return true;
  }
  const auto n = r.get<std::uint32_t>();
  // No element is smaller than a byte, so no room is made for elements that cannot be there.
  if (!r.ok() || n > r.rest().size() || n > max_elements) return false;
  if (p.count == count_kind::one && n != 1) return false;
  if (p.count == count_kind::number && n != p.number) return false;
  const std::uint32_t stride = shape.layout && shape.layout()->version != 0 ? max_struct : shape.size;
  if (!reserve(index, n, stride)) return false;
  for (std::uint32_t e = 0; e < n; ++e) {
    std::byte* at = buffers_[index].bytes() + std::size_t{e} * stride;
    if (!shape.layout) {
      const auto raw = r.bytes(shape.size);
      if (!raw.empty()) std::memcpy(at, raw.data(), raw.size());
      continue;
    }
    const auto make = [this](std::uint32_t elements, std::size_t of) { return make_list(elements, of); };
    if (!take_question(r, *shape.layout(), at, stride, make)) return false;
    struct scope {
      handle_book& handles;
    } here{handles};
    api::nvml::for_each_handle(
        *shape.layout(), at,
        [](void* context, handle_kind kind, void** value) {
          *value = static_cast<scope*>(context)->handles.find(kind, api::nvml::to_word(*value));
        },
        &here);
  }
  return r.ok();
}

std::uint64_t question::counter(std::size_t index) {
  if (form_->parameters[index].what == parameter_class::value) return arguments_[index];
  if (form_->about->parameters[index].dir == direction::out) return unsized_elements;
  unsigned value = 0;
  if (buffers_[index].present) std::memcpy(&value, buffers_[index].bytes(), sizeof value);
  return value;
}

/// Allocates pure outputs; reduces the counts that the device reads to the available room.
bool question::make_room(handle_book&) {
  for (std::size_t i = 0; i < form_->parameters.size(); ++i) {
    const parameter_form& shape = form_->parameters[i];
    const parameter& p = form_->about->parameters[i];
    if (shape.what != parameter_class::memory || !buffers_[i].present) continue;
    if (p.count != count_kind::parameter) {
      if (!carries_in(p) && p.count != count_kind::string &&
          !reserve(i, p.count == count_kind::number ? p.number : 1, shape.size))
        return false;
      continue;
    }
    const std::size_t by = p.count_index;
    const std::uint64_t n = std::min<std::uint64_t>(counter(by), max_elements);
    if (carries_in(p)) {
      if (buffers_[i].capacity != counter(by)) return false;
      continue;
    }
    if (form_->parameters[by].what == parameter_class::value) {
      arguments_[by] = n;
    } else if (buffers_[by].present && form_->about->parameters[by].dir == direction::inout) {
      const auto cut = static_cast<unsigned>(n);
      std::memcpy(buffers_[by].bytes(), &cut, sizeof cut);
    }
    if (!reserve(i, n, shape.size)) return false;
  }
  return true;
}

/// Returns how many elements of this output the device has filled.
std::uint32_t question::filled(std::size_t index, nvmlReturn_t code) {
  const parameter& p = form_->about->parameters[index];
  buffer& b = buffers_[index];
  if (p.count == count_kind::one) return 1;
  if (code != NVML_SUCCESS) return 0;
  if (form_->parameters[index].text) {
    const std::size_t length = ::strnlen(reinterpret_cast<const char*>(b.bytes()), b.capacity);
    return static_cast<std::uint32_t>(std::min<std::size_t>(length + 1, b.capacity));
  }
  if (p.count != count_kind::parameter || form_->parameters[p.count_index].what == parameter_class::value)
    return b.capacity;
  unsigned said = 0;
  std::memcpy(&said, buffers_[p.count_index].bytes(), sizeof said);
  return std::min(said, b.capacity);
}

void question::encode_elements(wire::writer& w, std::size_t index, std::uint32_t count, nvmlReturn_t code,
                               handle_book& handles) {
  // Like arrays: "insufficient size" returns no elements. A list that the device has put in place of ours is
  // not read.
  const auto listed = [&](const std::byte* list, std::uint32_t said) -> std::optional<std::uint32_t> {
    const auto known = lists_.find(list);
    if (known == lists_.end()) return std::nullopt;
    return code == NVML_SUCCESS ? std::min(said, known->second.capacity) : 0;
  };
  const parameter_form& shape = form_->parameters[index];
  buffer& b = buffers_[index];
  w.put(count);
  for (std::uint32_t e = 0; e < count; ++e) {
    std::byte* at = b.bytes() + std::size_t{e} * b.stride;
    if (shape.handle != handle_kind::none) {
      void* object = nullptr;
      std::memcpy(&object, at, sizeof object);
      w.put(handles.handle_of(shape.handle, object));
    } else if (shape.layout) {
      api::nvml::for_each_handle(
          *shape.layout(), at,
          [](void* context, handle_kind kind, void** value) {
            *value = reinterpret_cast<void*>(static_cast<handle_book*>(context)->handle_of(kind, *value));
          },
          &handles);
      put_answer(w, *shape.layout(), at, listed);
    } else {
      w.bytes({at, shape.size});
    }
  }
}

void question::encode_answer(wire::writer& w, nvmlReturn_t code, handle_book& handles) {
  w.put(static_cast<std::int32_t>(code));
  if (!brings_outputs(code)) return;
  for (std::size_t i = 0; i < form_->parameters.size(); ++i) {
    if (!buffers_[i].present || !carries_out(form_->about->parameters[i])) continue;
    encode_elements(w, i, filled(i, code), code, handles);
  }
}

}  // namespace outboard::marshal::nvml
