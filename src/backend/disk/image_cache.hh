// Module images on disk, shared by all sessions and daemons that use one folder. Each image is a file whose
// name follows from its bytes and its identity. A file that does not match its name, for whatever reason, is
// removed. The size is bounded: the least recently used image goes first. Each worker has one object; find()
// and store() may be called from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.hh"
#include "base/result.hh"
#include "marshal/cuda/image_name.hh"

namespace outboard::backend {

/// Stands for the identity that owns the images: its sessions share them, and no others find them.
using image_scope = sha256_digest;

struct found_image {
  std::vector<std::byte> bytes;
  marshal::image_key key;
};

class image_cache {
 public:
  /// Makes the folder if it does not exist. An error says why there is no cache: the folder is not ours,
  /// others may write to it, or it cannot be made.
  static result<image_cache> open(const std::string& folder, std::uint64_t most_bytes);

  /// Returns the image of that name, verified; nothing if it is not there, or was damaged and is now removed.
  std::optional<found_image> find(const image_scope& scope, const marshal::image_name& name) const;

  /// Stores the image, unless it is larger than the whole cache, and removes others to make room. Stops soon
  /// after `stop` is set, and leaves nothing behind. An error is logged once and has no other effect.
  void store(const image_scope& scope, std::span<const std::byte> image, const std::atomic<bool>& stop);

 private:
  image_cache(unique_fd folder, std::string path, std::uint64_t most)
      : folder_(std::move(folder)), path_(std::move(path)), most_(most) {}
  status try_store(const std::string& file, std::span<const std::byte> image, const std::atomic<bool>& stop);
  status write_new(const std::string& file, std::span<const std::byte> image, const std::atomic<bool>& stop);
  status make_room(std::uint64_t size);

  unique_fd folder_;
  std::string path_;
  std::uint64_t most_;
  bool reported_ = false;
};

/// The name of the image's file.
std::string image_file(const image_scope& scope, const marshal::image_name& name);

}  // namespace outboard::backend
