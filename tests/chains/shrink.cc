#include "shrink.hh"

#include <algorithm>
#include <sstream>

#include "model.hh"

namespace chains {
namespace {

bool uses_graph(const operation& o) {
  return o.what == verb::launch || o.what == verb::change || o.what == verb::update || o.what == verb::drop;
}

/// What used this graph goes; those behind it get other numbers.
void leave_out_graph(chain& c, int gone) {
  std::erase_if(c.operations, [&](const operation& o) { return uses_graph(o) && o.graph == gone; });
  for (operation& o : c.operations) {
    if ((uses_graph(o) || o.what == verb::graph) && o.graph > gone) --o.graph;
  }
}

bool allowed(const chain& c) {
  model order(c);
  return std::all_of(c.operations.begin(), c.operations.end(),
                     [&](const operation& o) { return order.step(o); });
}

chain without(const chain& c, std::size_t at) {
  chain less = c;
  const operation gone = c.operations[at];
  less.operations.erase(less.operations.begin() + static_cast<std::ptrdiff_t>(at));
  if (gone.what == verb::graph) leave_out_graph(less, gone.graph);
  return less;
}

/// A part of a graph goes, and who came after it comes after what it came after.
void leave_out_part(operation& o, std::size_t at) {
  if (o.what == verb::graph) {
    const std::vector<int> before = o.after[at];
    for (auto& after : o.after) {
      const bool was = std::erase(after, static_cast<int>(at)) != 0;
      if (was) after.insert(after.end(), before.begin(), before.end());
      std::sort(after.begin(), after.end());
      after.erase(std::unique(after.begin(), after.end()), after.end());
      for (int& j : after) j -= j > static_cast<int>(at);
    }
    o.after.erase(o.after.begin() + static_cast<std::ptrdiff_t>(at));
  }
  o.parts.erase(o.parts.begin() + static_cast<std::ptrdiff_t>(at));
}

/// And out of what changes or updates the graph.
chain without_part(const chain& c, std::size_t operation_at, std::size_t part) {
  chain less = c;
  leave_out_part(less.operations[operation_at], part);
  const operation& made = c.operations[operation_at];
  if (made.what != verb::graph) return less;
  const int gone = static_cast<int>(part);
  std::erase_if(less.operations, [&](const operation& o) {
    return o.what == verb::change && o.graph == made.graph && o.node == gone;
  });
  for (operation& o : less.operations) {
    if (o.graph != made.graph) continue;
    if (o.what == verb::change) o.node -= o.node > gone;
    if (o.what == verb::update) {
      o.parts.erase(o.parts.begin() + gone);
      o.after = less.operations[operation_at].after;
    }
  }
  return less;
}

void name_blocks(operation& o, int gone) {
  o.to.block -= o.to.block > gone, o.from.block -= o.from.block > gone;
  for (operation& part : o.parts) name_blocks(part, gone);
  for (operation& b : o.beside) name_blocks(b, gone);
}
bool touches(const operation& o, int block) {
  const auto any = [&](const std::vector<operation>& all) {
    return std::any_of(all.begin(), all.end(), [&](const operation& p) { return touches(p, block); });
  };
  return o.to.block == block || o.from.block == block || any(o.parts) || any(o.beside);
}

}  // namespace

chain shrink(chain c, const std::function<bool(const chain&)>& fails) {
  const auto better = [&](const chain& less) {
    if (!allowed(less) || !fails(less)) return false;
    c = less;
    return true;
  };
  for (bool smaller = true; smaller;) {
    smaller = false;
    for (std::size_t i = c.operations.size(); i-- > 0;) {
      if (i < c.operations.size() && better(without(c, i))) smaller = true;
    }
    for (std::size_t i = 0; i < c.operations.size(); ++i) {
      for (std::size_t k = c.operations[i].parts.size(); k-- > 0 && c.operations[i].parts.size() > 1;) {
        if (better(without_part(c, i, k))) smaller = true;
      }
      if (i >= c.operations.size()) break;
      for (std::size_t k = c.operations[i].beside.size(); k-- > 0;) {
        chain less = c;
        less.operations[i].beside.erase(less.operations[i].beside.begin() + static_cast<std::ptrdiff_t>(k));
        if (better(less)) smaller = true;
      }
    }
  }
  for (int b = static_cast<int>(c.blocks.size()); b-- > 0;) {
    if (std::any_of(c.operations.begin(), c.operations.end(),
                    [&](const operation& o) { return touches(o, b); }))
      continue;
    chain less = c;
    less.blocks.erase(less.blocks.begin() + b);
    for (operation& o : less.operations) name_blocks(o, b);
    (void)better(less);  // what a block begins with is by its number
  }
  return c;
}

namespace {

std::string stream_name(int number) {
  static const char* const kinds[] = {"legacy",    "per_thread",   "blocking",
                                      "blocking2", "non_blocking", "non_blocking2"};
  return std::string(kinds[number % streams_of_a_device]) + std::to_string(number / streams_of_a_device);
}

class printer {
 public:
  explicit printer(const chain& c) : chain_(c) {}

  std::string text() {
    for (std::size_t b = 0; b < chain_.blocks.size(); ++b) print_block(b);
    for (const operation& o : chain_.operations) print(o, "");
    out_ << "compare(every block with what the order of the calls makes of it);\n";
    return out_.str();
  }

 private:
  void print_block(std::size_t b) {
    static const char* const kinds[] = {"cuMemAlloc", "cuMemHostAlloc",
                                        "cuMemHostAlloc, cuMemHostGetDevicePointer",
                                        "malloc, cuMemHostRegister", "malloc"};
    const block& k = chain_.blocks[b];
    out_ << "auto b" << b << " = block(" << k.size << ");  // " << kinds[static_cast<int>(k.kind)];
    if (k.skew) out_ << ", " << k.skew << " bytes into a page";
    if (k.device) out_ << ", context " << k.device;
    out_ << '\n';
  }
  std::string at(const place& p) {
    std::string text = "b" + std::to_string(p.block);
    return p.offset ? text + " + " + std::to_string(p.offset) : text;
  }
  void print_copy(const operation& o) {
    const auto host = [&](const place& p) { return is_host(chain_.blocks[p.block].kind); };
    std::string name = o.how == form::peer      ? "cuMemcpyPeer"
                       : o.how == form::unified ? "cuMemcpy"
                       : host(o.to)             ? "cuMemcpyDtoH"
                       : host(o.from)           ? "cuMemcpyHtoD"
                                                : "cuMemcpyDtoD";
    if (o.what == verb::box) name = o.how == form::peer ? "cuMemcpy3DPeer" : "cuMemcpy3D";
    if (!o.synchronous) name += "Async";
    out_ << name << '(' << at(o.to) << ", " << at(o.from) << ", " << o.size;
    if (o.what == verb::box)
      out_ << " x " << o.rows << " x " << o.layers << ", pitches " << o.to.pitch << " and " << o.from.pitch;
    if (!o.synchronous) out_ << ", " << stream_name(o.stream);
    out_ << ");";
    if (o.device != stream_of(o.stream).device) out_ << "  // context " << o.device << " is current";
    out_ << '\n';
  }
  void print(const operation& o, const std::string& indent) {
    static const char* const orders[] = {"in the stream's order", "during the call", "in any order"};
    out_ << indent;
    const std::string stream = stream_name(o.stream);
    switch (o.what) {
      case verb::copy:
      case verb::box:
        return print_copy(o);
      case verb::fill:
        out_ << "cuMemsetD8Async(" << at(o.to) << ", " << +o.value << ", " << o.size << ", " << stream
             << ");\n";
        return;
      case verb::kernel:
      case verb::host_function:
        out_ << (o.what == verb::kernel ? "mix<<<" : "cuLaunchHostFunc(") << stream
             << (o.what == verb::kernel ? ">>>(" : ", mix, ") << at(o.to) << ", " << at(o.from) << ", "
             << o.size << ", " << +o.value << ");\n";
        return;
      case verb::spin:
        out_ << "spin<<<" << stream << ">>>(" << o.size << " us);\n";
        return;
      case verb::record:
        out_ << "cuEventRecord(e" << o.event << ", " << stream << ");\n";
        return;
      case verb::wait:
        out_ << "cuStreamWaitEvent(" << stream << ", e" << o.event << ");\n";
        return;
      case verb::join_stream:
        out_ << "cuStreamSynchronize(" << stream << ");\n";
        return;
      case verb::poll_stream:
        out_ << "while (cuStreamQuery(" << stream << ") == CUDA_ERROR_NOT_READY) continue;\n";
        return;
      case verb::join_context:
        out_ << "cuCtxSynchronize();  // of device " << o.device << '\n';
        return;
      case verb::join_event:
        out_ << "cuEventSynchronize(e" << o.event << ");\n";
        return;
      case verb::write:
        out_ << "write(" << at(o.to) << ", " << o.size << ", " << +o.value << ");\n";
        return;
      case verb::look:
        out_ << "compare(" << at(o.to) << ", " << o.size << ");\n";
        return;
      case verb::batch:
      case verb::box_batch:
        out_ << (o.what == verb::batch ? "cuMemcpyBatchAsync(" : "cuMemcpy3DBatchAsync(") << stream
             << ");  // of\n";
        for (const operation& part : o.parts) {
          out_ << "    /* " << orders[static_cast<int>(part.access)] << " */ ";
          print(part, "");
        }
        return;
      case verb::graph:
        out_ << "g" << o.graph << (o.captured ? " = captured in " : " = built for ") << stream << " of\n";
        for (std::size_t i = 0; i < o.parts.size(); ++i) {
          out_ << "    /* " << i << " after";
          for (const int j : o.after[i]) out_ << ' ' << j;
          out_ << " */ ";
          print(o.parts[i], "");
          if (i != 0) continue;
          for (const operation& b : o.beside) print(b, "    /* beside the capture */ ");
        }
        return;
      case verb::launch:
        out_ << "cuGraphLaunch(g" << o.graph << ", " << stream << ");\n";
        return;
      case verb::change:
        out_ << "change of g" << o.graph << ", part " << o.node << ", to ";
        print(o.parts[0], "");
        return;
      case verb::update:
        out_ << "cuGraphExecUpdate of g" << o.graph << " from a graph of\n";
        for (std::size_t i = 0; i < o.parts.size(); ++i) {
          out_ << "    /* " << i << " */ ";
          print(o.parts[i], "");
        }
        return;
      case verb::drop:
        out_ << "cuGraphExecDestroy, cuGraphDestroy of g" << o.graph << ";\n";
        return;
      case verb::count:
        return;
    }
  }

  const chain& chain_;
  std::ostringstream out_;
};

}  // namespace

std::string program(const chain& c) { return printer(c).text(); }

}  // namespace chains
