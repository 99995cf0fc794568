#include "marshal/opencl/build_files.hh"

#include <algorithm>

#include "base/hex.hh"

namespace outboard::marshal::opencl {
namespace {

constexpr std::size_t longest_path = 4096, longest_part = 255;  // Linux's PATH_MAX and NAME_MAX

}  // namespace

bool is_plain_path(std::string_view path) {
  if (path == "/") return true;
  if (path.empty() || path.front() != '/' || path.size() >= longest_path || path.find('\0') != path.npos)
    return false;
  while (!path.empty()) {
    path.remove_prefix(1);
    const std::string_view part = path.substr(0, path.find('/'));
    if (part.empty() || part == "." || part == ".." || part.size() > longest_part) return false;
    path.remove_prefix(part.size());
  }
  return true;
}

bool well_formed(const build_files_body& body) {
  if (!is_plain_path(body.here) || body.files.size() > most_build_files ||
      body.folders.size() > most_build_files ||
      !std::all_of(body.folders.begin(), body.folders.end(), is_plain_path))
    return false;
  std::uint64_t left = most_build_file_bytes;
  for (const build_file& file : body.files) {
    if (!is_plain_path(file.path) || file.path == "/" || file.bytes > file_bytes::once || file.size > left)
      return false;
    left -= file.size;
  }
  return true;
}

std::string name_of_set(const build_files_body& body) {
  std::vector<std::byte> all;
  wire::writer to(all);
  to.text(body.here);
  to.put(static_cast<std::uint64_t>(body.folders.size()));
  for (const std::string& folder : body.folders) to.text(folder);
  for (const build_file& file : body.files) {
    to.text(file.path);
    to.put(file.digest);
  }
  const sha256_digest digest = sha256(all);
  return std::string(set_prefix) + hex(std::span(digest).first(set_digits / 2));
}

}  // namespace outboard::marshal::opencl
