#include "base/icd_files.hh"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string_view>

namespace outboard {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view own_library = "libOutboardOpenCL.so.1";
constexpr const char* usual_folder = "/etc/OpenCL/vendors";

/// The library that an .icd file names: its first line.
std::string library_of(const fs::path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> icd_files(const char* said) {
  std::vector<std::pair<std::string, std::string>> found;
  const bool chosen = said && *said;
  const fs::path from = chosen ? said : usual_folder;
  std::error_code failed;
  if (fs::is_directory(from, failed)) {
    for (const auto& entry : fs::directory_iterator(from, failed)) {
      if (entry.path().extension() == ".icd")
        found.emplace_back(entry.path().filename().string(), library_of(entry.path()));
    }
  } else if (from.extension() == ".icd") {
    found.emplace_back(from.filename().string(), library_of(from));
  } else if (chosen) {
    found.emplace_back("chosen.icd", said);
  }
  std::erase_if(found, [](const auto& each) { return each.second.find(own_library) != std::string::npos; });
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace outboard
