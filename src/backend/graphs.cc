#include <algorithm>

#include "backend/driver_call.hh"
#include "backend/ends.hh"

namespace outboard::backend::ends {

outcome cuGraphInstantiateWithFlags(call& c) {
  marshal::instantiate_body body;
  if (!take_all(c, body)) return outcome::malformed();
  if (c.refused != CUDA_SUCCESS) return outcome::answer(c.refused);
  CUgraph graph = nullptr;
  if (const CUresult code = c.objects().resolve(body.graph, graph); code != CUDA_SUCCESS) {
    return outcome::answer(code);
  }
  CUgraphExec exec = nullptr;
  const CUresult code = call_driver(c.driver().cuGraphInstantiateWithFlags, &exec, graph, body.flags);
  if (code != CUDA_SUCCESS) return outcome::answer(code);
  return c.objects().create(body.exec, exec, c.as_record()) ? outcome::answer(code) : outcome::malformed();
}

outcome cuGraphGetNodes(call& c) {
  constexpr std::uint64_t most = 1 << 20;  // a reply stays below a frame
  marshal::nodes_body body;
  if (!take_all(c, body)) return outcome::malformed();
  CUgraph graph = nullptr;
  if (const CUresult code = c.objects().resolve(body.graph, graph); code != CUDA_SUCCESS) {
    return outcome::answer(code);
  }
  std::size_t count = 0;
  if (const CUresult code = call_driver(c.driver().cuGraphGetNodes, graph, nullptr, &count);
      code != CUDA_SUCCESS) {
    return outcome::answer(code);
  }
  marshal::nodes_reply reply;
  reply.count = count;
  if (std::size_t n = std::min({body.capacity, std::uint64_t{count}, most})) {
    std::vector<CUgraphNode> nodes(n);
    if (const CUresult code = call_driver(c.driver().cuGraphGetNodes, graph, nodes.data(), &n);
        code != CUDA_SUCCESS) {
      return outcome::answer(code);
    }
    nodes.resize(std::min(n, nodes.size()));
    for (CUgraphNode node : nodes)
      reply.nodes.push_back(c.objects().mint(api::handle_kind::graph_node, node));
  }
  marshal::put_body(c.reply, reply);
  return outcome::answer(CUDA_SUCCESS);
}

}  // namespace outboard::backend::ends
