#include "frontend/opencl/build/client_files.hh"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/fd.hh"
#include "frontend/opencl/build/build_options.hh"
#include "frontend/opencl/build/include_macros.hh"

namespace outboard::frontend::opencl {
namespace {

using marshal::opencl::most_build_file_bytes;
using marshal::opencl::most_build_files;
using marshal::opencl::set_digits;
using marshal::opencl::set_prefix;

/// The front-end's own bound on what names by macros may cost.
constexpr std::size_t most_computed = 20000;

/// A path without `.`, `..` and empty parts, as it leads where no folder is a link: so it is where the
/// compiler is. Folders that it leaves again are added to `through`.
std::string plain_path(std::string_view path, std::set<std::string>* through) {
  std::string made;
  while (!path.empty()) {
    const std::string_view part = path.substr(0, path.find('/'));
    path.remove_prefix(std::min(part.size() + 1, path.size()));
    if (part == "..") {
      if (through && !made.empty()) through->insert(made);
      made.erase(std::min(made.rfind('/'), made.size()));
    } else if (!part.empty() && part != ".") {
      made.append("/").append(part);
    }
  }
  return made.empty() ? "/" : made;
}

/// Where nothing can be read the folder is one that has nothing.
std::string current_folder() {
  char path[PATH_MAX] = "";
  return ::getcwd(path, sizeof path) && marshal::opencl::is_plain_path(path) ? path : "/nowhere";
}

/// Is it the file, or a folder above it?
bool leads_to(std::string_view path, std::string_view file) {
  return path.size() > 1 && file.starts_with(path) &&
         (file.size() == path.size() || file[path.size()] == '/');
}

bool leads_to_any(std::string_view path, const std::set<std::string>& files) {
  const std::string plain = plain_path(path, nullptr);
  const auto first = files.lower_bound(plain);
  return first != files.end() && leads_to(plain, *first);
}

/// A full path at the beginning of a macro's body, quoted or not. at: npos where there is none.
struct macro_path {
  std::string path;
  std::size_t at = std::string::npos;
};
macro_path path_of(const macro& m) {
  const std::size_t quote = !m.body.empty() && (m.body[0] == '"' || m.body[0] == '<') ? 1 : 0;
  if (m.function || m.body.size() < quote + 2 || m.body[quote] != '/') return {};
  return {m.body.substr(quote, m.body.find_first_of("\">", quote) - quote), m.at + quote};
}

/// In the place of a full path: one that the compiler looks for in the folder above all files.
insertion as_searched(std::size_t at) { return {at, std::string(marshal::opencl::client_files)}; }

bool is_full(std::string_view path) { return path.starts_with('/'); }

class finder {
 public:
  client_files run(const std::vector<std::string_view>& texts, const std::string& options) {
    result_.here = current_folder();
    for (const build_option& option : read_options(options)) {
      if (option.what == build_option::kind::definition) {
        macros_.add(macro_of(option));
      } else if (is_folder(option.path)) {
        folders_.push_back(option.path);
        (void)full(option.path);
      }
    }
    for (const std::string_view text : texts) read(text, {}, nullptr);
    look_up_computed();
    write_anew();
    result_.folders.assign(through_.begin(), through_.end());
    return std::move(result_);
  }

 private:
  struct computed_line {
    std::string text, folder;
    bool next;
  };
  /// A file as it was read, and what to do with its text.
  struct source_file {
    std::string text;
    std::vector<insertion> moved;
    std::vector<macro_path> paths;
  };

  static bool is_folder(const std::string& path) {
    struct stat about {};
    return ::stat(path.c_str(), &about) == 0 && S_ISDIR(about.st_mode);
  }

  std::string full(const std::string& path) {
    return plain_path(is_full(path) ? path : result_.here + "/" + path, &through_);
  }

  /// `folder`: of the file; empty for texts of the program.
  void read(std::string_view text, const std::string& folder, source_file* file) {
    include_scan found = scan_includes(text);
    for (macro& m : found.macros) {
      if (file) file->paths.push_back(path_of(m));
      grown_ |= macros_.add(std::move(m));
    }
    for (const include_line& line : found.includes) {
      if (line.form == include_form::computed) {
        computed_.push_back({line.name, folder, line.next});
        grown_ = true;
      } else {
        if (file && is_full(line.name)) file->moved.push_back(as_searched(line.at));
        look_up(line, folder);
      }
    }
    read_waiting();
  }

  /// One behind the other, not one within the other: a chain of headers may be long, and a program's thread
  /// may have little room.
  void read_waiting() {
    if (std::exchange(reading_, true)) return;
    while (!waiting_.empty()) {
      const std::string path = std::move(waiting_.back());
      waiting_.pop_back();
      source_file& file = files_[path];
      const std::string folder = std::move(folder_of_[path]);
      read(file.text, folder, &file);
    }
    reading_ = false;
  }

  /// Compilers differ in when they look into the current folder: it is always looked into, too.
  void look_up(const include_line& line, const std::string& folder) {
    if (line.name.empty() || line.name.size() >= PATH_MAX || line.name.find('\0') != line.name.npos) return;
    (void)take(line.name);
    if (is_full(line.name)) return;
    if (line.form == include_form::quoted && !folder.empty()) (void)take(folder + line.name);
    for (const std::string& each : folders_) {
      if (take(each + "/" + line.name) && !line.next) break;
    }
  }

  void look_up_computed() {
    std::size_t tries = 0;
    while (std::exchange(grown_, false)) {
      // What is found may bring further lines.
      for (std::size_t i = 0; i < computed_.size(); ++i) {
        const computed_line line = computed_[i];
        for (const std::string& expanded : macros_.expand(line.text)) {
          if (++tries > most_computed)
            return complain("its #include lines whose names are macros have more than " +
                            std::to_string(most_computed) + " meanings");
          include_line named;
          named.next = line.next;
          if (!read_header_name(expanded, named)) continue;
          if (is_full(named.name)) result_.full_names.insert(plain_path(named.name, nullptr));
          look_up(named, line.folder);
          read_waiting();
        }
      }
    }
  }

  /// True: there is such a file.
  bool take(const std::string& path) {
    if (missing_.count(path) || !result_.problem.empty()) return false;
    std::string name = plain_path(is_full(path) ? path : result_.here + "/" + path, nullptr);
    if (files_.count(name)) return (void)full(path), true;
    std::string text;
    if (!marshal::opencl::is_plain_path(name) || !load(path, text)) return missing_.insert(path), false;
    if (!result_.problem.empty()) return false;
    (void)full(path);
    folder_of_[name] = path.substr(0, path.rfind('/') + 1);
    files_[name].text = std::move(text);
    waiting_.push_back(std::move(name));
    if (files_.size() > most_build_files)
      complain("it may include more than " + std::to_string(most_build_files) + " files");
    return true;
  }

  /// Regular files alone: a pipe has no end.
  bool load(const std::string& path, std::string& to) {
    const unique_fd fd(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    struct stat about {};
    if (!fd || ::fstat(fd.get(), &about) != 0 || !S_ISREG(about.st_mode)) return false;
    for (;;) {
      const std::size_t done = to.size(), more = done ? done : static_cast<std::size_t>(about.st_size) + 1;
      if (bytes_ + done + more > most_build_file_bytes + 1) {
        complain("the files that it may include have more than " +
                 std::to_string(most_build_file_bytes >> 20) + " MiB");
        return true;
      }
      to.resize(done + more);
      const ssize_t got = ::read(fd.get(), to.data() + done, more);
      to.resize(done + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
      if (got < static_cast<ssize_t>(more)) break;
    }
    bytes_ += to.size();
    return true;
  }

  void write_anew() {
    for (auto& [path, file] : files_) {
      for (const macro_path& each : file.paths) {
        if (each.at != std::string::npos && leads_to_any(each.path, result_.full_names))
          file.moved.push_back(as_searched(each.at));
      }
      result_.files[path] = with_insertions(file.text, std::move(file.moved));
    }
  }

  void complain(std::string why) {
    if (result_.problem.empty()) result_.problem = std::move(why);
  }

  client_files result_;
  std::vector<std::string> folders_;  // of -I, as given
  macro_book macros_;
  std::vector<computed_line> computed_;
  bool grown_ = false;  // macros_ or computed_, since computed_ was looked through
  std::map<std::string, source_file> files_;
  std::map<std::string, std::string> folder_of_;  // as the compiler will call it, with a slash; none: empty
  std::vector<std::string> waiting_;              // of files_, to be read
  bool reading_ = false;
  std::set<std::string> missing_, through_;
  std::uint64_t bytes_ = 0;
};

std::size_t depth_of(std::string_view plain) {
  return plain == "/" ? 0 : static_cast<std::size_t>(std::count(plain.begin(), plain.end(), '/'));
}

}  // namespace

client_files find_client_files(const std::vector<std::string_view>& texts, const std::string& options) {
  return finder().run(texts, options);
}

std::string text_for_compiler(const std::string& source) {
  const include_scan found = scan_includes(source);
  std::vector<insertion> moved;
  macro_book macros;
  for (const macro& m : found.macros) macros.add(m);
  bool computed = false;
  std::set<std::string> names;
  std::size_t tries = 0;
  for (const include_line& line : found.includes) {
    if (line.form != include_form::computed) {
      if (is_full(line.name)) moved.push_back(as_searched(line.at));
      continue;
    }
    computed = true;
    if (++tries > most_computed / 64) continue;  // each has up to as many meanings
    for (const std::string& expanded : macros.expand(line.name)) {
      include_line named;
      if (read_header_name(expanded, named) && is_full(named.name))
        names.insert(plain_path(named.name, nullptr));
    }
  }
  // What options will define is not known yet, and may be what makes a name of this path.
  for (const macro& m : found.macros) {
    const macro_path its = path_of(m);
    if (its.at != std::string::npos &&
        (leads_to_any(its.path, names) || (computed && ::access(its.path.c_str(), F_OK) == 0)))
      moved.push_back(as_searched(its.at));
  }
  return moved.empty() ? source : with_insertions(source, std::move(moved));
}

std::string options_for_compiler(const std::string& options, const client_files& found,
                                 const std::string& set_name) {
  // From the current folder to the one above all files, by a name that only this set of files has.
  std::string above = "./";
  for (std::size_t i = 0; i <= depth_of(found.here); ++i) above += "../";
  above += set_name + "/..";
  std::vector<insertion> moved;
  for (const build_option& option : read_options(options)) {
    if (!is_full(option.path)) continue;
    if (option.what == build_option::kind::folder) {
      moved.push_back({option.at, above + "/" + std::string(marshal::opencl::client_files)});
    } else if (leads_to_any(option.path, found.full_names)) {
      moved.push_back(as_searched(option.at));
    }
  }
  // It is the first one, so that whatever the last one of the program's lacks it lacks still.
  return "-I " + above + (options.empty() ? "" : " ") + with_insertions(options, std::move(moved));
}

std::string log_for_program(std::string log) {
  const std::string marker = std::string(marshal::opencl::client_files) + "/";
  for (std::size_t at = 0; (at = log.find(marker, at)) != std::string::npos; ++at) {
    std::size_t first = at;
    const std::string_view before = std::string_view(log).substr(0, at);
    const std::size_t set = before.rfind(set_prefix);
    if (set != before.npos && before.size() == set + set_prefix.size() + set_digits + 4 &&
        before.ends_with("/../")) {
      first = set;
      while (before.substr(0, first).ends_with("../")) first -= 3;
      if (before.substr(0, first).ends_with("./")) first -= 2;
    }
    log.replace(first, at + marker.size() - first, "/");
    at = first;
  }
  return log;
}

}  // namespace outboard::frontend::opencl
