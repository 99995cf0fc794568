// The file of one core dump of the GPU at a time: its bytes come from the server in pieces. The file is made
// where the program says, with the first piece. If it cannot be made or written, its dump is lost and this is
// logged once. The server decides how much comes, so writing stops while the disk still has room. For the
// thread that reads the connection.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/fd.hh"
#include "frontend/cuda/coredump/coredump_environment.hh"

namespace outboard::frontend::cuda {

/// The name that a driver takes where the program gives none.
std::string standard_core_name(const process_facts& own);

class core_file {
 public:
  /// More than the memory of any device.
  static constexpr std::uint64_t most_bytes = 1ull << 40;
  /// `most`: of one dump, if the file system is not filled to nine tenths of its room before.
  explicit core_file(std::uint64_t most = most_bytes) : most_(most) {}

  bool begun() const { return begun_; }
  /// No link is followed, and only this user may read the dump, as with the kernel's core files.
  void begin(const std::string& path);
  void add(std::string_view bytes);
  /// That was all. False: it is not on the disk, or not whole.
  bool end();

 private:
  void give_up(const std::string& why);
  const std::uint64_t most_;
  std::uint64_t room_ = 0;  ///< bytes that may still come
  std::string path_;
  unique_fd file_;
  bool begun_ = false;
};

}  // namespace outboard::frontend::cuda
