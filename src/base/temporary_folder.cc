#include "base/temporary_folder.hh"

#include <errno.h>
#include <stdlib.h>

#include "base/errno_text.hh"

namespace outboard {

result<std::string> make_temporary_folder(std::string_view name, std::size_t longest) {
  const std::string form = "/" + std::string(name) + "-XXXXXX";
  const char* const base = ::getenv("TMPDIR");
  std::string folder = (base && base[0] == '/' ? base : "/tmp") + form;
  if (folder.size() > longest) folder = "/tmp" + form;
  if (!::mkdtemp(folder.data())) return failure("cannot make " + folder + ": " + errno_text(errno));
  return folder;
}

}  // namespace outboard
