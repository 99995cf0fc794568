#include "ptx/run/reach.hh"

#include <vector>

namespace outboard::ptx {

namespace {

class search {
 public:
  explicit search(const program& p) : program_(p) {
    for (const auto& f : p.functions) {
      if (f.defined) by_name_.emplace(f.name, &f);
    }
  }

  std::set<const function*> run() {
    for (const auto& f : program_.functions) {
      if (f.kernel && f.defined) add(&f);
    }
    for (const auto& v : program_.variables) {
      for (const auto& r : v.relocations) name(r.symbol);
    }
    while (!todo_.empty()) {
      const function* f = todo_.back();
      todo_.pop_back();
      for (const auto& i : f->body) {
        for (const auto& o : i.operands) look_at(o);
      }
    }
    return std::move(reached_);
  }

 private:
  void add(const function* f) {
    if (reached_.insert(f).second) todo_.push_back(f);
  }
  void name(std::string_view symbol) {
    if (const auto alias = program_.aliases.find(symbol); alias != program_.aliases.end())
      symbol = alias->second;
    if (const auto found = by_name_.find(symbol); found != by_name_.end()) add(found->second);
  }
  void look_at(const operand& o) {
    if (!o.name.empty()) name(o.name);
    for (const auto& part : o.parts) look_at(part);
  }

  const program& program_;
  std::map<std::string_view, const function*> by_name_;
  std::set<const function*> reached_;
  std::vector<const function*> todo_;
};

}  // namespace

std::set<const function*> reached_functions(const program& p) { return search(p).run(); }

}  // namespace outboard::ptx
