// Values that belong to a log line beside its text, for logs that machines read: the server's JSON has each
// as a member of its line, other logs leave them out, so the text says all by itself. Any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace outboard::log {

using field_value = std::variant<std::int64_t, double, std::string>;
/// The name is a constant.
using field = std::pair<std::string_view, field_value>;

/// While it lives, the lines that this thread writes have these fields. A second one takes the place of the
/// first until it ends.
class with_fields {
 public:
  explicit with_fields(std::vector<field> own);
  ~with_fields();
  with_fields(const with_fields&) = delete;
  with_fields& operator=(const with_fields&) = delete;

 private:
  std::vector<field> own_;
  const std::vector<field>* before_;
};

/// Of all lines of this process from here on. Once, before there are other threads that write.
void set_lasting_fields(std::vector<field> of_process);

/// For a sink: those of the line that it has been given, the process's first.
std::vector<field> fields_of_line();

}  // namespace outboard::log
