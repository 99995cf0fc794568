// A session as one worker gives it to the next: bytes, and the descriptors that they name by number. It
// crosses a socket pair between the two. Values; no thread rules.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/fd.hh"
#include "base/result.hh"
#include "marshal/fields.hh"
#include "transport/transport.hh"

namespace outboard::backend {

struct session_image {
  std::vector<std::byte> bytes;
  std::vector<unique_fd> descriptors;

  /// The number by which the bytes name it.
  std::uint32_t add(unique_fd descriptor) {
    descriptors.push_back(std::move(descriptor));
    return static_cast<std::uint32_t>(descriptors.size() - 1);
  }
  /// What add() was given; each once. Empty: there is none of this number.
  unique_fd take(std::uint32_t number) {
    return number < descriptors.size() ? std::move(descriptors[number]) : unique_fd();
  }
};

/// The part of the session itself, before that of what it speaks.
struct core_part {
  std::string scheme;                     ///< of its connection
  std::vector<std::uint32_t> connection;  ///< numbers of its descriptors
  std::vector<std::uint64_t> positions;   ///< where it stands
  std::uint64_t executed = 0;             ///< highest ticket
  std::vector<std::uint8_t> unread;       ///< bytes of the client that are off it, and not carried out
  OUTBOARD_FIELDS(scheme, connection, positions, executed, unread)
};

/// The connection, out of the part of the session itself. An error: the image is malformed.
result<transport::shared_stream> take_connection(session_image& image);

status send_image(transport::connection& to, const session_image& image, transport::deadline until);
result<session_image> receive_image(transport::connection& from, transport::deadline until);

/// A line of text in its place; empty: all is well.
status send_word(transport::connection& to, const std::string& word, transport::deadline until);
result<std::string> receive_word(transport::connection& from, transport::deadline until);

}  // namespace outboard::backend
