// A file into which the front-end reports what a program does (trace.hh, profile.hh), under the name that the
// user gave, with text that is written in large pieces. One thread at a time.
#pragma once

#include <string>
#include <string_view>

#include "base/fd.hh"

namespace outboard::frontend {

class report_file {
 public:
  /// Opens it; what cannot be opened is an error on stderr, which calls it a `what`. %p in the name is the
  /// process's number, - is stderr. Behind a + a file that is there already stays: the process's number is
  /// added to the name, and stderr is told.
  bool open(std::string_view name, std::string_view what);
  bool is_open() const { return file_.get() >= 0; }

  std::string& text() { return text_; }  ///< to be appended to
  /// Writes what has come together, if it is worth it. A disk that filled up is reported once.
  void flush_some();
  void flush();
  void close();

 private:
  unique_fd file_;
  std::string text_, what_;
  bool failed_ = false;
};

}  // namespace outboard::frontend
