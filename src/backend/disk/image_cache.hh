// Module images on disk, shared by all sessions and daemons that use one folder: a file for each, whose name
// follows from its bytes and from whose it is, so a file is right or it is thrown away, whoever wrote it and
// however it was cut short. Bounded: of the identity that has most, what was not used for longest goes first.
// One object a worker; find() and store() may be called from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.hh"
#include "base/result.hh"
#include "marshal/cuda/image_name.hh"

namespace outboard::backend {

/// Whose images they are: sessions of one identity share theirs, others do not meet them.
using image_scope = sha256_digest;

struct found_image {
  std::vector<std::byte> bytes;
  marshal::image_key key;
};

class image_cache {
 public:
  /// Makes the folder if it is not there. The error says why there is no cache: not ours, others may write,
  /// cannot be made.
  static result<image_cache> open(const std::string& folder, std::uint64_t most_bytes);

  /// The image of that name, verified; nothing: not there, or damaged and now gone.
  std::optional<found_image> find(const image_scope& scope, const marshal::image_name& name) const;

  /// Keeps it, if it fits at all, and lets others go for it. Gives up soon when `stop` is set, leaving
  /// nothing behind. An error is told once, in the log, and otherwise of no consequence.
  void store(const image_scope& scope, std::span<const std::byte> image, const std::atomic<bool>& stop);

 private:
  image_cache(unique_fd folder, std::string path, std::uint64_t most)
      : folder_(std::move(folder)), path_(std::move(path)), most_(most) {}
  status try_store(const std::string& file, std::span<const std::byte> image, const std::atomic<bool>& stop);
  status write_new(const std::string& file, std::span<const std::byte> image, const std::atomic<bool>& stop);
  status make_room(std::string_view file, std::uint64_t size);

  unique_fd folder_;
  std::string path_;
  std::uint64_t most_;
  bool told_ = false;
};

/// The file that keeps it.
std::string image_file(const image_scope& scope, const marshal::image_name& name);

}  // namespace outboard::backend
