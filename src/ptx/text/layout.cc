#include "ptx/text/layout.hh"

#include <algorithm>
#include <string>

namespace outboard::ptx {
namespace {

// A GPU thread has at most 512 KiB of local memory.
constexpr std::uint64_t max_frame = 512u << 10;
constexpr std::uint64_t max_shared_static = 1u << 20;

std::uint64_t aligned(std::uint64_t at, std::uint64_t align) { return (at + align - 1) & ~(align - 1); }

std::string_view callee_of(const instruction& i) {
  // call (ret), name, (args)  |  call name, (args)
  for (const auto& o : i.operands) {
    if (o.kind == operand_kind::list) continue;
    return o.kind == operand_kind::symbol ? o.name : std::string_view();
  }
  return {};
}

/// What a function's body names: shared variables of the module, and other functions.
struct uses {
  std::vector<const variable*> shared;
  std::set<const function*> functions;
  bool indirect = false;  ///< calls through a pointer: any function of the module
};

class shared_placer {
 public:
  explicit shared_placer(const program& p) : program_(p) {
    for (const auto& v : p.variables) {
      if (v.where != space::shared || v.size == 0) continue;
      const variable*& known = variables_[v.name];
      if (!known || known->link == linkage::external) known = &v;
    }
    for (const auto& f : p.functions) {
      if (f.defined) functions_.emplace(f.name, &f);
    }
    for (const auto& f : p.functions) {
      uses& u = uses_[&f];
      for (const instruction& i : f.body) {
        if (i.name == "call" && callee_of(i).empty()) u.indirect = true;
        for (const operand& o : i.operands) look_at(o, u);
      }
    }
  }

  result<shared_layout> run() {
    std::uint64_t at = 0;
    for (const auto& f : program_.functions) {
      if (f.kernel) continue;
      for (const variable* v : uses_[&f].shared) {
        if (!layout_.common.contains(v)) OUTBOARD_TRY(place(*v, at, layout_.common[v]));
      }
      for (const auto& v : f.variables) {
        if (v.where == space::shared && v.size != 0) OUTBOARD_TRY(place(v, at, layout_.common[&v]));
      }
    }
    for (const auto& f : program_.functions) {
      if (f.kernel && f.defined) OUTBOARD_TRY(place_kernel(f));
    }
    return std::move(layout_);
  }

 private:
  void look_at(const operand& o, uses& u) {
    if (o.kind == operand_kind::symbol || o.base == operand_kind::symbol) {
      std::string_view name = o.name;
      if (const auto v = variables_.find(name); v != variables_.end()) {
        if (std::find(u.shared.begin(), u.shared.end(), v->second) == u.shared.end())
          u.shared.push_back(v->second);
      }
      if (const auto a = program_.aliases.find(name); a != program_.aliases.end()) name = a->second;
      if (const auto g = functions_.find(name); g != functions_.end()) u.functions.insert(g->second);
    }
    for (const operand& part : o.parts) look_at(part, u);
  }

  status place(const variable& v, std::uint64_t& at, std::uint32_t& offset) {
    at = aligned(at, std::max(v.align, 1u));
    offset = static_cast<std::uint32_t>(at);
    if (v.size > max_shared_static || at + v.size > max_shared_static) {
      return failure("line " + std::to_string(v.line) + ": shared variables exceed " +
                     std::to_string(max_shared_static) + " bytes");
    }
    at += v.size;
    return {};
  }

  /// Device functions that the kernel can get to; kernels that it names are launched, not called.
  std::set<const function*> reached(const function& kernel) {
    std::set<const function*> seen = {&kernel};
    std::vector<const function*> todo = {&kernel};
    bool all = false;
    const auto add = [&](const function* g) {
      if (!g->kernel && seen.insert(g).second) todo.push_back(g);
    };
    while (!todo.empty()) {
      const uses& u = uses_[todo.back()];
      todo.pop_back();
      for (const function* g : u.functions) add(g);
      if (!u.indirect || all) continue;
      all = true;
      for (const auto& [name, g] : functions_) add(g);
    }
    return seen;
  }

  status place_kernel(const function& kernel) {
    std::uint64_t at = 0;
    const auto need = [&](const variable* v) {
      const auto found = layout_.common.find(v);
      if (found != layout_.common.end()) at = std::max(at, found->second + v->size);
    };
    for (const function* g : reached(kernel)) {
      for (const variable* v : uses_[g].shared) need(v);
      for (const variable& v : g->variables) need(&v);
    }
    for (const variable* v : uses_[&kernel].shared) {
      if (!layout_.common.contains(v)) OUTBOARD_TRY(place(*v, at, layout_.own[{&kernel, v}]));
    }
    for (const variable& v : kernel.variables) {
      if (v.where == space::shared && v.size != 0) OUTBOARD_TRY(place(v, at, layout_.own[{&kernel, &v}]));
    }
    layout_.kernel_bytes[&kernel] = static_cast<std::uint32_t>(at);
    return {};
  }

  const program& program_;
  std::map<std::string_view, const variable*> variables_;
  std::map<std::string_view, const function*> functions_;
  std::map<const function*, uses> uses_;
  shared_layout layout_;
};

}  // namespace

sequence lay_out(const std::vector<variable>& list, std::uint32_t start) {
  sequence s;
  std::uint64_t at = start;
  for (const auto& v : list) {
    if (v.where == space::reg) {
      s.offsets.push_back(0);
      continue;
    }
    at = aligned(at, std::max(v.align, 1u));
    s.offsets.push_back(static_cast<std::uint32_t>(at));
    at += v.size;
    if (at > max_frame) at = max_frame;  // callers refuse it
  }
  s.size = static_cast<std::uint32_t>(at);
  return s;
}

result<frame_layout> frame_of(const function& f) {
  frame_layout frame;
  std::uint64_t at = 0;
  const std::size_t signature = f.returns.size() + f.parameters.size();
  if (!f.kernel) {
    const auto returns = lay_out(f.returns), parameters = lay_out(f.parameters, returns.size);
    frame.offsets.assign(returns.offsets.begin(), returns.offsets.end());
    frame.offsets.insert(frame.offsets.end(), parameters.offsets.begin(), parameters.offsets.end());
    at = parameters.size;
  } else {
    frame.offsets.assign(signature, -1);
  }
  for (std::size_t n = signature; n < f.variables.size(); ++n) {
    const auto& v = f.variables[n];
    if (v.where != space::local && v.where != space::param) {
      frame.offsets.push_back(-1);
      continue;
    }
    at = aligned(at, std::max(v.align, 1u));
    frame.offsets.push_back(static_cast<std::int64_t>(at));
    if (v.size > max_frame || at + v.size > max_frame) {
      return failure("line " + std::to_string(v.line) + ": local variables of " + std::string(f.name) +
                     " exceed " + std::to_string(max_frame) + " bytes");
    }
    at += v.size;
  }
  if (at >= max_frame) return failure("frame of " + std::string(f.name) + " exceeds the limit");
  // A call costs stack even without variables, so that endless recursion ends.
  frame.size = static_cast<std::uint32_t>(aligned(f.kernel ? at : std::max<std::uint64_t>(at, 1), 16));
  return frame;
}

std::uint32_t shared_layout::offset(const function& f, const variable& v) const {
  const auto found = common.find(&v);
  return found != common.end() ? found->second : own.at({&f, &v});
}

result<shared_layout> shared_of(const program& p) { return shared_placer(p).run(); }

result<std::uint64_t> stack_of(const program& p, const function& start, bool& open_ended) {
  // Depth-first with an explicit stack: the call graph is the text's, its depth may be hostile.
  struct visit {
    const function* f;
    std::size_t next = 0;
    std::uint64_t own = 0, deepest = 0;
  };
  std::map<const function*, std::uint64_t> done;
  std::set<const function*> open;
  std::vector<visit> path;
  const auto enter = [&](const function& f) -> status {
    const auto frame = frame_of(f);
    if (!frame) return frame.error();
    open.insert(&f);
    path.push_back({&f, 0, frame->size, 0});
    return {};
  };
  OUTBOARD_TRY(enter(start));
  while (true) {
    visit& top = path.back();
    const function* callee = nullptr;
    while (top.next < top.f->body.size() && !callee) {
      const auto& i = top.f->body[top.next++];
      if (i.name == "alloca") open_ended = true;
      if (i.name != "call") continue;
      const auto name = callee_of(i);
      if (name.empty()) open_ended = true;
      callee = name.empty() ? nullptr : p.find_function(name);
      if (!callee || !callee->defined) {
        callee = nullptr;
      } else if (open.contains(callee)) {
        open_ended = true, callee = nullptr;
      } else if (const auto known = done.find(callee); known != done.end()) {
        top.deepest = std::max(top.deepest, known->second), callee = nullptr;
      }
    }
    if (callee) {
      OUTBOARD_TRY(enter(*callee));
      continue;
    }
    const std::uint64_t total = std::min(top.own + top.deepest, max_frame);
    done[top.f] = total;
    open.erase(top.f);
    path.pop_back();
    if (path.empty()) return total;
    path.back().deepest = std::max(path.back().deepest, total);
  }
}

}  // namespace outboard::ptx
