// ptx_refusals FILE...: loads each PTX text as a driver would and prints what is refused, then a table of the
// refused forms with the number of files and statements that need them. Exit 1 when anything is refused.
#include <cstdio>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include "ptx/run/code.hh"
#include "ptx/text/module.hh"

namespace {

using namespace outboard;

struct tally {
  std::set<std::string> files;
  std::size_t statements = 0;
};

/// "line 12: function f: why: add.s32 %r1, ..." -> "add.s32: why"
std::string form_of(const std::string& message) {
  const auto function = message.find(": function ");
  if (function == std::string::npos) return message;
  const auto why = message.find(": ", function + 11);
  const auto text = message.rfind(": ");
  if (why == std::string::npos || text <= why) return message;
  const auto opcode = message.substr(text + 2);
  return opcode.substr(0, opcode.find_first_of(" \t\n")) + ": " + message.substr(why + 2, text - why - 2);
}

/// All refusals of one text, a line each; empty when it loads.
std::string refusals(const std::string& text) {
  const auto parsed = ptx::parse(text);
  if (!parsed) return parsed.error().message;
  ptx::variable_addresses addresses;
  for (const auto& v : (*parsed)->tree().variables) {
    if (v.link != ptx::linkage::external) addresses[&v] = 0x1000;
  }
  const auto decoded = ptx::decode((*parsed)->tree(), addresses, 100000);
  return decoded ? "" : decoded.error().message;
}

}  // namespace

int main(int count, char** names) {
  std::map<std::string, tally> forms;
  int refused = 0;
  for (int n = 1; n < count; ++n) {
    std::ifstream file(names[n]);
    std::ostringstream text;
    text << file.rdbuf();
    std::istringstream lines(refusals(text.str()));
    bool any = false;
    for (std::string line; std::getline(lines, line); any = true) {
      std::printf("%s: %s\n", names[n], line.c_str());
      auto& t = forms[form_of(line)];
      t.files.insert(names[n]);
      ++t.statements;
    }
    refused += any;
  }
  std::printf("%d of %d files are refused\n", refused, count - 1);
  for (const auto& [form, t] : forms)
    std::printf("%5zu files %6zu times  %s\n", t.files.size(), t.statements, form.c_str());
  return refused != 0;
}
