#include "backend/session/session_image.hh"

#include <array>

#include "transport/send_whole.hh"

namespace outboard::backend {
namespace {

/// More than a worker may have open.
constexpr std::uint64_t most_descriptors = 1u << 20;
/// The images of modules are most of it.
constexpr std::uint64_t most_bytes = 16ull << 30;
constexpr std::uint64_t longest_word = 4096;
constexpr std::size_t step = 16u << 20;

status receive_all(transport::connection& from, std::span<std::byte> into, transport::deadline until) {
  const transport::io got = transport::receive_whole(from, into, until);
  return got == transport::io::done ? status() : status(transport::gone(got));
}

}  // namespace

result<transport::shared_stream> take_connection(session_image& image) {
  wire::reader from(image.bytes);
  auto part = marshal::take_body<core_part>(from);
  transport::shared_stream stream{std::move(part.scheme), {}, std::move(part.positions)};
  for (const std::uint32_t number : part.connection) {
    stream.descriptors.push_back(image.take(number));
    if (!stream.descriptors.back()) from.fail();
  }
  if (!from.ok() || stream.descriptors.empty()) return failure("the session came malformed");
  return stream;
}

status send_image(transport::connection& to, const session_image& image, transport::deadline until) {
  const std::array<std::uint64_t, 2> sizes{image.bytes.size(), image.descriptors.size()};
  OUTBOARD_TRY(transport::send_whole(to, std::as_bytes(std::span(sizes)), until));
  OUTBOARD_TRY(transport::send_whole(to, image.bytes, until));
  for (const unique_fd& descriptor : image.descriptors) OUTBOARD_TRY(to.send_descriptor(descriptor.get()));
  return {};
}

result<session_image> receive_image(transport::connection& from, transport::deadline until) {
  std::array<std::uint64_t, 2> sizes{};
  OUTBOARD_TRY(receive_all(from, std::as_writable_bytes(std::span(sizes)), until));
  if (sizes[0] > most_bytes || sizes[1] > most_descriptors) return failure("a session of impossible size");
  session_image image;
  while (image.bytes.size() < sizes[0]) {  // memory is taken as bytes come
    const std::size_t had = image.bytes.size(), more = std::min<std::size_t>(sizes[0] - had, step);
    image.bytes.resize(had + more);
    OUTBOARD_TRY(receive_all(from, std::span(image.bytes).subspan(had), until));
  }
  for (std::uint64_t i = 0; i < sizes[1]; ++i) {
    auto descriptor = from.receive_descriptor(until);
    if (!descriptor.ok()) return std::move(descriptor).error();
    image.descriptors.push_back(std::move(*descriptor));
  }
  return image;
}

status send_word(transport::connection& to, const std::string& word, transport::deadline until) {
  const std::string shown = word.substr(0, longest_word);
  const std::array<std::uint64_t, 1> size{shown.size()};
  OUTBOARD_TRY(transport::send_whole(to, std::as_bytes(std::span(size)), until));
  return shown.empty() ? status() : transport::send_whole(to, std::as_bytes(std::span(shown)), until);
}

result<std::string> receive_word(transport::connection& from, transport::deadline until) {
  std::array<std::uint64_t, 1> size{};
  OUTBOARD_TRY(receive_all(from, std::as_writable_bytes(std::span(size)), until));
  if (size[0] > longest_word) return failure("a word of impossible length");
  std::string word(size[0], '\0');
  if (!word.empty()) OUTBOARD_TRY(receive_all(from, std::as_writable_bytes(std::span(word)), until));
  return word;
}

}  // namespace outboard::backend
