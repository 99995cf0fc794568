#include "ptx/text/module.hh"

#include <algorithm>

#include "ptx/text/layout.hh"
#include "ptx/text/parser.hh"

namespace outboard::ptx {
namespace {

constexpr std::uint32_t max_parameter_bytes = 32764;
constexpr std::uint32_t register_file = 65536;  // of a multiprocessor, and what a block may take

/// Registers in units of 32 bits; ptxas reuses most of what nvcc's single-assignment text declares.
std::uint32_t register_estimate(const function& f, std::uint32_t max_threads) {
  std::uint64_t words = 0;
  for (const auto& r : f.registers) {
    if (r.kind == type::pred) continue;
    words += static_cast<std::uint64_t>(r.count) * (size_of(r.kind) == 8 ? 2 : 1);
  }
  const auto guess = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(words / 4 + 8, 16, 255));
  // Blocks of every size that may be launched are run, so occupancy has to find room for one.
  const auto most = std::min<std::uint32_t>(register_file / std::max(max_threads, 32u) & ~7u, 255);
  const auto fitting = std::min(guess, most);
  return f.max_registers != 0 ? std::min(fitting, f.max_registers) : fitting;
}

result<kernel_info> describe(const program& p, const function& f, const shared_layout& shared,
                             std::uint32_t constant_bytes) {
  kernel_info k;
  k.name = f.name;
  const auto where = [&] { return "line " + std::to_string(f.line) + ": kernel " + k.name + ": "; };
  const auto layout = lay_out(f.parameters);
  for (std::size_t n = 0; n < f.parameters.size(); ++n) {
    const auto& v = f.parameters[n];
    if (v.where != space::param) return failure(where() + "parameters must be in .param space");
    k.parameters.push_back(
        {std::string(v.name), layout.offsets[n], static_cast<std::uint32_t>(v.size), std::max(v.align, 1u)});
  }
  if (layout.size > max_parameter_bytes) {
    return failure(where() + std::to_string(layout.size) + " bytes of parameters, the limit is " +
                   std::to_string(max_parameter_bytes));
  }
  k.parameter_bytes = layout.size;
  k.static_shared_bytes = shared.kernel_bytes.at(&f);
  bool open_ended = false;
  const auto stack = stack_of(p, f, open_ended);
  if (!stack) return stack.error();
  k.local_bytes = static_cast<std::uint32_t>(*stack);
  k.constant_bytes = constant_bytes;
  const auto product = [](const std::uint32_t(&b)[3]) {
    return std::uint64_t{b[0]} * std::max(b[1], 1u) * std::max(b[2], 1u);
  };
  for (int n = 0; n < 3; ++n) k.required_block[static_cast<std::size_t>(n)] = f.required_block[n];
  if (const auto most = product(f.max_block))
    k.max_threads = static_cast<std::uint32_t>(std::min<std::uint64_t>(most, 1024));
  if (const auto exact = product(f.required_block)) {
    k.max_threads = static_cast<std::uint32_t>(std::min<std::uint64_t>(exact, 1024));
  }
  k.min_blocks = f.min_blocks;
  k.target = f.target;
  k.registers = register_estimate(f, k.max_threads);
  return k;
}

/// Tables for a finished tree.
result<module_ptr> finish(std::unique_ptr<program> tree) {
  const auto shared = shared_of(*tree);
  if (!shared) return shared.error();
  std::vector<variable_info> variables;
  std::uint64_t constant_bytes = 0;
  for (const auto& v : tree->variables) {
    if ((v.where != space::global && v.where != space::constant) || v.link == linkage::external) continue;
    const bool constant = v.where == space::constant;
    if (constant) constant_bytes += v.size;
    variables.push_back({std::string(v.name), constant ? variable_space::constant : variable_space::global,
                         v.size, std::max(v.align, 1u), v.managed, v.link == linkage::internal});
  }
  std::vector<kernel_info> kernels;
  for (const auto& f : tree->functions) {
    if (!f.kernel || !f.defined) continue;
    auto k = describe(*tree, f, *shared,
                      static_cast<std::uint32_t>(std::min<std::uint64_t>(constant_bytes, 0xffffffff)));
    if (!k) return std::move(k).error();
    kernels.push_back(*std::move(k));
  }
  return module_ptr(std::make_shared<module>(std::move(tree), std::move(kernels), std::move(variables)));
}

bool is_definition(const variable& v) { return v.link != linkage::external; }

/// Adds `v` of another module unless a definition is there already.
status merge_variable(program& into, const variable& v) {
  for (auto& known : into.variables) {
    if (known.name != v.name) continue;
    if (!is_definition(v)) return {};
    if (!is_definition(known) || known.link == linkage::weak || known.link == linkage::common) {
      if (!is_definition(known) || v.link == linkage::visible) known = v;
      return {};
    }
    if (v.link == linkage::weak || v.link == linkage::common) return {};
    return failure("line " + std::to_string(v.line) + ": variable " + std::string(v.name) +
                   " is defined twice");
  }
  into.variables.push_back(v);
  return {};
}

status merge_function(program& into, const function& f) {
  for (auto& known : into.functions) {
    if (known.name != f.name) continue;
    if (!f.defined) return {};
    if (!known.defined || (known.link == linkage::weak && f.link != linkage::weak)) {
      known = f;
      return {};
    }
    if (f.link == linkage::weak) return {};
    return failure("line " + std::to_string(f.line) + ": function " + std::string(f.name) +
                   " is defined twice");
  }
  into.functions.push_back(f);
  return {};
}

/// How many of the modules define or declare a name.
using name_counts = std::map<std::string_view, int>;

/// Names without linkage belong to their module alone: where another module has the same, they get a suffix
/// that no PTX name can have.
class renamer {
 public:
  renamer(const program& p, std::size_t number, const name_counts& counts)
      : suffix_("#" + std::to_string(number)) {
    for (const auto& v : p.variables) {
      if (v.link == linkage::internal && counts.at(v.name) > 1) add(v.name);
    }
    for (const auto& f : p.functions) {
      if (f.link == linkage::internal && !f.kernel && counts.at(f.name) > 1) add(f.name);
    }
  }
  void apply(std::string_view& name) const {
    if (const auto found = names_.find(name); found != names_.end()) name = *found->second;
  }
  void apply(operand& o) const {
    if (o.kind == operand_kind::symbol || o.base == operand_kind::symbol) apply(o.name);
    for (auto& part : o.parts) apply(part);
  }
  void apply(variable& v) const {
    apply(v.name);
    for (auto& r : v.relocations) apply(r.symbol);
  }
  void apply(function& f) const {
    apply(f.name);
    for (auto& i : f.body) {
      for (auto& o : i.operands) apply(o);
    }
  }
  const std::vector<std::shared_ptr<const std::string>>& texts() const { return texts_; }

 private:
  void add(std::string_view name) {
    auto& text = texts_.emplace_back(std::make_shared<const std::string>(std::string(name) + suffix_));
    names_.emplace(name, text.get());
  }
  std::string suffix_;
  std::map<std::string_view, const std::string*> names_;
  std::vector<std::shared_ptr<const std::string>> texts_;
};

}  // namespace

module::module(std::unique_ptr<const program> tree, std::vector<kernel_info> kernels,
               std::vector<variable_info> variables) :tree_(std::move(tree)),
    kernels_(std::move(kernels)), variables_(std::move(variables)) {}
module::~module() = default;

const kernel_info* module::find_kernel(std::string_view name) const {
  const auto found =
      std::find_if(kernels_.begin(), kernels_.end(), [&](const auto& k) { return k.name == name; });
  return found == kernels_.end() ? nullptr : &*found;
}

const variable_info* module::find_variable(std::string_view name) const {
  const auto found =
      std::find_if(variables_.begin(), variables_.end(), [&](const auto& v) { return v.name == name; });
  return found == variables_.end() ? nullptr : &*found;
}

bool module::uses_heap() const {
  return std::any_of(tree_->functions.begin(), tree_->functions.end(), [](const function& f) {
    return !f.defined && (f.name == "malloc" || f.name == "free");
  });
}

int module::ptx_version() const { return tree_->version; }

bool is_target(int capability) {
  static constexpr int all[] = {10, 11, 12, 13, 20, 21, 30, 32, 35, 37,  50,  52,  53,  60,  61, 62,
                                70, 72, 75, 80, 86, 87, 88, 89, 90, 100, 101, 103, 110, 120, 121};
  return std::find(std::begin(all), std::end(all), capability) != std::end(all);
}

result<module_ptr> parse(std::string_view text) {
  auto tree = parse_program(std::make_shared<const std::string>(text));
  if (!tree) return std::move(tree).error();
  return finish(*std::move(tree));
}

result<module_ptr> link(std::span<const module_ptr> modules) {
  if (modules.empty()) return failure("nothing to link");
  if (modules.size() == 1) return modules[0];
  auto out = std::make_unique<program>();
  out->text = std::make_shared<const std::string>();
  name_counts counts;
  for (const auto& m : modules) {
    std::set<std::string_view> mine;  // a forward declaration is no second owner
    for (const auto& v : m->tree().variables) mine.insert(v.name);
    for (const auto& f : m->tree().functions) mine.insert(f.name);
    for (const auto name : mine) ++counts[name];
  }
  for (std::size_t n = 0; n < modules.size(); ++n) {
    const program& from = modules[n]->tree();
    const renamer names(from, n, counts);
    out->version = std::max(out->version, from.version);
    out->more_texts.push_back(from.text);
    out->more_texts.insert(out->more_texts.end(), from.more_texts.begin(), from.more_texts.end());
    out->more_texts.insert(out->more_texts.end(), names.texts().begin(), names.texts().end());
    for (auto v : from.variables) {
      names.apply(v);
      OUTBOARD_TRY(merge_variable(*out, v));
    }
    for (auto f : from.functions) {
      names.apply(f);
      OUTBOARD_TRY(merge_function(*out, f));
    }
    for (const auto& [alias, target] : from.aliases) out->aliases[alias] = target;
  }
  return finish(std::move(out));
}

}  // namespace outboard::ptx
