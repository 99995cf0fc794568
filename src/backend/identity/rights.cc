#include "backend/identity/rights.hh"

#include <array>

namespace outboard::backend {
namespace {

constexpr std::array every{right::run, right::list, right::list_all, right::suspend, right::administer};

}  // namespace

std::string_view word_of(right one) {
  switch (one) {
    case right::run:
      return "run";
    case right::list:
      return "list";
    case right::list_all:
      return "list-all";
    case right::suspend:
      return "suspend";
    case right::administer:
      return "administer";
  }
  return "";
}

rights rights::of(std::span<const std::string> words) {
  rights made;
  for (const std::string& word : words) {
    for (const right one : every) {
      if (word == word_of(one)) made.bits_ |= static_cast<unsigned>(one);
    }
  }
  return made;
}

std::string rights::text() const {
  std::string list;
  for (const right one : every) {
    if (has(one)) list.append(list.empty() ? "" : ", ").append(word_of(one));
  }
  return list.empty() ? "none" : list;
}

}  // namespace outboard::backend
