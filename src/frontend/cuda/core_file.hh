// The file of one core dump of the GPU at a time: its bytes come from the server in pieces. Made where the
// program says, with the first piece; a file that cannot be made or written loses its dump and is told of
// once. The thread that reads the connection.
#pragma once

#include <string>
#include <string_view>

#include "base/fd.hh"
#include "frontend/cuda/coredump_environment.hh"

namespace outboard::frontend::cuda {

/// The name that a driver takes where the program gives none.
std::string standard_core_name(const process_facts& own);

class core_file {
 public:
  bool begun() const { return begun_; }
  void begin(const std::string& path);
  void add(std::string_view bytes);
  /// That was all. False: it is not on the disk, or not whole.
  bool end();

 private:
  void give_up(const char* what);
  std::string path_;
  unique_fd file_;
  bool begun_ = false;
};

}  // namespace outboard::frontend::cuda
