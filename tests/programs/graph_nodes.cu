// Graphs built node by node: every common kind of node, their parameters, edges, clones, user objects, and
// changes of executable graphs.
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <string>

#include "common.hh"

__global__ void scale(int* x, int n, int a, int b) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = x[i] * a + b;
}

namespace {

constexpr int n = 1 << 10;
constexpr std::size_t bytes = n * sizeof(int);

struct kernel_arguments {
  int* x;
  int n, a, b;
  void* list[4] = {&x, &n, &a, &b};
  kernel_arguments(int* x_, int n_, int a_, int b_) : x(x_), n(n_), a(a_), b(b_) {}
  cudaKernelNodeParams parameters() {
    cudaKernelNodeParams p{};
    p.func = reinterpret_cast<void*>(scale);
    p.gridDim = dim3(n / 256);
    p.blockDim = dim3(256);
    p.kernelParams = list;
    return p;
  }
};

cudaGraphNode_t add_kernel(cudaGraph_t graph, std::vector<cudaGraphNode_t> before, int* x, int a, int b) {
  kernel_arguments arguments(x, n, a, b);
  const cudaKernelNodeParams p = arguments.parameters();
  cudaGraphNode_t node = nullptr;
  MUST(cudaGraphAddKernelNode(&node, graph, before.data(), before.size(), &p));
  return node;
}

cudaGraphNode_t add_fill(cudaGraph_t graph, std::vector<cudaGraphNode_t> before, int* x, unsigned value) {
  cudaMemsetParams p{};
  p.dst = x;
  p.elementSize = 4;
  p.value = value;
  p.width = n;
  p.height = 1;
  cudaGraphNode_t node = nullptr;
  MUST(cudaGraphAddMemsetNode(&node, graph, before.data(), before.size(), &p));
  return node;
}

std::vector<int> launch(cudaGraphExec_t exec, cudaStream_t s, const int* x) {
  MUST(cudaGraphLaunch(exec, s));
  MUST(cudaStreamSynchronize(s));
  std::vector<int> host(n);
  MUST(cudaMemcpy(host.data(), x, bytes, cudaMemcpyDeviceToHost));
  return host;
}

void all_are(const std::vector<int>& values, int expected) {
  for (int v : values) EXPECT(v == expected);
}

void CUDART_CB count(void* data) { ++*static_cast<std::atomic<int>*>(data); }

void built_by_hand(cudaStream_t s) {
  int *x, *y;
  MUST(cudaMalloc(&x, bytes));
  MUST(cudaMalloc(&y, bytes));
  std::vector<int> in(n, 4), out(n, 0);
  std::atomic<int> calls{0};
  cudaGraph_t graph;
  MUST(cudaGraphCreate(&graph, 0));
  cudaGraphNode_t up, empty, down, call, across;
  MUST(cudaGraphAddMemcpyNode1D(&up, graph, nullptr, 0, x, in.data(), bytes, cudaMemcpyHostToDevice));
  cudaGraphNode_t fill = add_fill(graph, {}, y, 9);
  const cudaGraphNode_t both[] = {up, fill};
  MUST(cudaGraphAddEmptyNode(&empty, graph, both, 2));
  cudaGraphNode_t kernel = add_kernel(graph, {empty}, x, 10, 2);
  MUST(cudaGraphAddMemcpyNode1D(&across, graph, &kernel, 1, y, x, bytes / 2, cudaMemcpyDeviceToDevice));
  MUST(cudaGraphAddMemcpyNode1D(&down, graph, &across, 1, out.data(), y, bytes, cudaMemcpyDeviceToHost));
  const cudaHostNodeParams host{count, &calls};
  MUST(cudaGraphAddHostNode(&call, graph, &down, 1, &host));

  cudaGraphNodeType type;
  MUST(cudaGraphNodeGetType(call, &type));
  EXPECT(type == cudaGraphNodeTypeHost);
  std::size_t nodes = 0, edges = 0, before = 0, after = 0;
  MUST(cudaGraphGetNodes(graph, nullptr, &nodes));
  MUST(cudaGraphGetEdges(graph, nullptr, nullptr, nullptr, &edges));
  MUST(cudaGraphNodeGetDependencies(empty, nullptr, nullptr, &before));
  MUST(cudaGraphNodeGetDependentNodes(up, nullptr, nullptr, &after));
  EXPECT(nodes == 7 && edges == 6 && before == 2 && after == 1);
  std::vector<cudaGraphNode_t> list(nodes + 1, reinterpret_cast<cudaGraphNode_t>(1));
  std::size_t room = list.size();
  MUST(cudaGraphGetNodes(graph, list.data(), &room));
  EXPECT(room == 7 && list[7] == nullptr);

  cudaHostNodeParams told{};
  MUST(cudaGraphHostNodeGetParams(call, &told));
  EXPECT(told.fn == count && told.userData == &calls);
  cudaKernelNodeParams kernel_told{};
  MUST(cudaGraphKernelNodeGetParams(kernel, &kernel_told));
  EXPECT(kernel_told.gridDim.x == n / 256 && kernel_told.blockDim.x == 256 &&
         kernel_told.kernelParams != nullptr);
  EXPECT(*static_cast<int**>(kernel_told.kernelParams[0]) == x &&
         *static_cast<int*>(kernel_told.kernelParams[2]) == 10);
  cudaMemsetParams fill_told{};
  MUST(cudaGraphMemsetNodeGetParams(fill, &fill_told));
  EXPECT(fill_told.dst == y && fill_told.value == 9 && fill_told.width == n && fill_told.elementSize == 4);

  cudaGraphExec_t exec;
  MUST(cudaGraphInstantiate(&exec, graph, 0));
  for (int round = 1; round <= 3; ++round) {
    for (int& v : in) v = round;
    all_are(launch(exec, s, x), 10 * round + 2);
    for (int i = 0; i < n; ++i) EXPECT(out[static_cast<std::size_t>(i)] == (i < n / 2 ? 10 * round + 2 : 9));
    EXPECT(calls == round);
  }

  // The executable graph alone: other kernel arguments, a node switched off.
  kernel_arguments changed(x, n, 1, 100);
  const cudaKernelNodeParams p = changed.parameters();
  MUST(cudaGraphExecKernelNodeSetParams(exec, kernel, &p));
  all_are(launch(exec, s, x), 103);
  MUST(cudaGraphNodeSetEnabled(exec, kernel, 0));
  unsigned on = 1;
  MUST(cudaGraphNodeGetEnabled(exec, kernel, &on));
  EXPECT(on == 0);
  all_are(launch(exec, s, x), 3);
  MUST(cudaGraphNodeSetEnabled(exec, kernel, 1));
  std::vector<int> elsewhere(n, 8);
  MUST(cudaGraphExecMemcpyNodeSetParams1D(exec, up, x, elsewhere.data(), bytes, cudaMemcpyHostToDevice));
  all_are(launch(exec, s, x), 108);
  MUST(cudaGraphExecDestroy(exec));

  // The graph itself: other parameters, edges, a node less.
  const kernel_arguments unused(x, n, 0, 0);
  MUST(cudaGraphKernelNodeSetParams(kernel, &p));
  fill_told.value = 5;
  MUST(cudaGraphMemsetNodeSetParams(fill, &fill_told));
  MUST(cudaGraphDestroyNode(across));
  MUST(cudaGraphAddDependencies(graph, &kernel, &down, nullptr, 1));
  EXPECT(cudaGraphAddDependencies(graph, &kernel, &down, nullptr, 1) == cudaErrorInvalidValue);
  cudaGetLastError();
  MUST(cudaGraphGetNodes(graph, nullptr, &nodes));
  EXPECT(nodes == 6);
  MUST(cudaGraphInstantiate(&exec, graph, 0));
  all_are(launch(exec, s, x), 103);
  all_are(out, 5);
  MUST(cudaGraphExecDestroy(exec));
  MUST(cudaGraphRemoveDependencies(graph, &kernel, &down, nullptr, 1));
  MUST(cudaGraphGetEdges(graph, nullptr, nullptr, nullptr, &edges));
  EXPECT(edges == 4);
  MUST(cudaGraphDestroy(graph));
  MUST(cudaFree(x));
  MUST(cudaFree(y));
}

struct seen_by_function {
  const int* place;
  int value = 0;
};
void CUDART_CB look_at_place(void* data) {
  auto& seen = *static_cast<seen_by_function*>(data);
  seen.value = seen.place[0];
}

cudaGraphNode_t add_copy(cudaGraph_t graph, std::vector<cudaGraphNode_t> before, void* to, const void* from) {
  cudaGraphNode_t node = nullptr;
  MUST(cudaGraphAddMemcpyNode1D(&node, graph, before.data(), before.size(), to, from, bytes,
                                cudaMemcpyDefault));
  return node;
}

/// A copy of an executable graph moves between memory of the program's own and page-locked memory: what it
/// wrote before, launches leave alone from then on. A host function behind it sees the new place, a launch
/// that is under way meanwhile the old one.
void copies_that_move(cudaStream_t s) {
  int *x, *locked;
  MUST(cudaMalloc(&x, bytes));
  MUST(cudaMallocHost(&locked, bytes));
  std::vector<int> first(n, -1), second(n, -2);
  seen_by_function seen{first.data()};
  cudaGraph_t graph;
  cudaGraphExec_t exec, other;
  MUST(cudaGraphCreate(&graph, 0));
  cudaGraphNode_t fill = add_fill(graph, {}, x, 7);
  cudaGraphNode_t down = add_copy(graph, {fill}, first.data(), x);
  cudaHostNodeParams function{look_at_place, &seen};
  cudaGraphNode_t look = nullptr;
  MUST(cudaGraphAddHostNode(&look, graph, &down, 1, &function));
  MUST(cudaGraphInstantiate(&exec, graph, 0));

  const auto move_to = [&](void* place) {
    MUST(cudaGraphExecMemcpyNodeSetParams1D(exec, down, place, x, bytes, cudaMemcpyDefault));
  };
  all_are(launch(exec, s, x), 7);
  EXPECT(first[0] == 7 && seen.value == 7);
  move_to(locked);
  first.assign(n, -1);
  all_are(launch(exec, s, x), 7);
  EXPECT(first[0] == -1 && seen.value == -1 && locked[n - 1] == 7);
  MUST(cudaGraphLaunch(exec, s));  // into page-locked memory, while the next change is made
  move_to(second.data());
  MUST(cudaStreamSynchronize(s));
  EXPECT(second[0] == -2);
  locked[0] = -3;
  all_are(launch(exec, s, x), 7);
  EXPECT(second[0] == 7 && second[n - 1] == 7 && locked[0] == -3 && first[0] == -1);

  // Changed while a launch is held up: that one writes where it was to, and its host function sees it there.
  move_to(first.data());
  first.assign(n, -1), second.assign(n, -2), seen.value = 0;
  MUST(cudaLaunchHostFunc(
      s, [](void*) { usleep(20000); }, nullptr));
  MUST(cudaGraphLaunch(exec, s));
  move_to(second.data());
  move_to(locked);
  MUST(cudaStreamSynchronize(s));
  EXPECT(first[0] == 7 && first[n - 1] == 7 && seen.value == 7 && second[0] == -2 && locked[0] == -3);

  // Another executable graph of the same graph, made after the graph has changed: each has its own places.
  move_to(first.data());
  MUST(cudaGraphMemcpyNodeSetParams1D(down, second.data(), x, bytes, cudaMemcpyDefault));
  MUST(cudaGraphInstantiate(&other, graph, 0));
  first.assign(n, -1), second.assign(n, -2);
  all_are(launch(exec, s, x), 7);
  EXPECT(first[0] == 7 && seen.value == 7 && second[0] == -2);
  first.assign(n, -1);
  all_are(launch(other, s, x), 7);
  EXPECT(second[0] == 7 && first[0] == -1 && seen.value == -1);
  MUST(cudaGraphExecDestroy(exec));
  MUST(cudaGraphExecDestroy(other));
  MUST(cudaGraphDestroy(graph));
  MUST(cudaFree(x));
  MUST(cudaFreeHost(locked));
}

/// Fills x, copies it to memory of the program's own, and looks there; the same once more inside a child.
cudaGraph_t fills_and_looks(int* x, int* place, seen_by_function& seen, unsigned value) {
  cudaGraph_t graph, child;
  cudaGraphNode_t look = nullptr;
  MUST(cudaGraphCreate(&child, 0));
  cudaHostNodeParams function{look_at_place, &seen};
  cudaGraphNode_t down = add_copy(child, {add_fill(child, {}, x, value)}, place, x);
  MUST(cudaGraphAddHostNode(&look, child, &down, 1, &function));
  MUST(cudaGraphCreate(&graph, 0));
  cudaGraphNode_t inside = nullptr;
  MUST(cudaGraphAddChildGraphNode(&inside, graph, nullptr, 0, child));
  MUST(cudaGraphDestroy(child));
  down = add_copy(graph, {add_fill(graph, {inside}, x, value + 1)}, place, x);
  MUST(cudaGraphAddHostNode(&look, graph, &down, 1, &function));
  return graph;
}

/// An executable graph becomes what another graph is, which goes: its copies go elsewhere, and the host
/// functions behind them see those places, also while a launch from before is held up.
void updated_from_another(cudaStream_t s) {
  int* x;
  MUST(cudaMalloc(&x, bytes));
  std::vector<int> first(n, -1), second(n, -2);
  seen_by_function seen{first.data()}, then{second.data()};
  cudaGraph_t graph = fills_and_looks(x, first.data(), seen, 7);
  cudaGraphExec_t exec;
  MUST(cudaGraphInstantiate(&exec, graph, 0));
  all_are(launch(exec, s, x), 8);
  EXPECT(first[n - 1] == 8 && seen.value == 8);
  for (int round = 1; round <= 3; ++round) {
    first.assign(n, -1), second.assign(n, -2), seen.value = then.value = 0;
    MUST(cudaLaunchHostFunc(
        s, [](void*) { usleep(10000); }, nullptr));
    MUST(cudaGraphLaunch(exec, s));
    cudaGraph_t other = fills_and_looks(x, second.data(), then, 10 * static_cast<unsigned>(round));
    cudaGraphExecUpdateResultInfo said{};
    MUST(cudaGraphExecUpdate(exec, other, &said));
    EXPECT(said.result == cudaGraphExecUpdateSuccess);
    MUST(cudaGraphDestroy(other));
    MUST(cudaStreamSynchronize(s));
    EXPECT(round == 1 ? first[n - 1] == 8 && seen.value == 8 && second[0] == -2
                      : second[n - 1] == 10 * (round - 1) + 1 && then.value == 10 * (round - 1) + 1);
    first.assign(n, -1), second.assign(n, -2), seen.value = then.value = 0;
    all_are(launch(exec, s, x), 10 * round + 1);
    EXPECT(second[n - 1] == 10 * round + 1 && then.value == 10 * round + 1);
    EXPECT(first[0] == -1 && seen.value == 0);
  }
  MUST(cudaGraphExecDestroy(exec));

  // The graphs' own nodes are what they were: another executable graph, and an update the other way round.
  cudaGraph_t other = fills_and_looks(x, second.data(), then, 40);
  cudaGraphExecUpdateResultInfo said{};
  MUST(cudaGraphInstantiate(&exec, other, 0));
  MUST(cudaGraphExecUpdate(exec, graph, &said));
  MUST(cudaGraphExecUpdate(exec, other, &said));
  MUST(cudaGraphExecUpdate(exec, graph, &said));
  all_are(launch(exec, s, x), 8);
  EXPECT(first[n - 1] == 8 && seen.value == 8);
  MUST(cudaGraphExecDestroy(exec));
  MUST(cudaGraphDestroy(graph));
  MUST(cudaGraphInstantiate(&exec, other, 0));
  all_are(launch(exec, s, x), 41);
  EXPECT(second[n - 1] == 41 && then.value == 41);
  MUST(cudaGraphExecDestroy(exec));
  MUST(cudaGraphDestroy(other));
  MUST(cudaFree(x));
}

/// A launch goes on when its executable graph and the graph are gone: what it copies arrives, in order.
void destroyed_under_way(cudaStream_t s) {
  int* x;
  MUST(cudaMalloc(&x, bytes));
  std::vector<int> in(n), out(n);
  for (int round = 0; round < 200; ++round) {
    in.assign(n, round), out.assign(n, -1);
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    MUST(cudaGraphCreate(&graph, 0));
    cudaGraphNode_t up = add_copy(graph, {}, x, in.data());
    add_copy(graph, {add_kernel(graph, {up}, x, 1, 5)}, out.data(), x);
    MUST(cudaGraphInstantiate(&exec, graph, 0));
    MUST(cudaGraphLaunch(exec, s));
    MUST(cudaGraphExecDestroy(exec));
    MUST(cudaGraphDestroy(graph));
    MUST(cudaStreamSynchronize(s));
    all_are(out, round + 5);
  }
  MUST(cudaFree(x));
}

void children_and_clones(cudaStream_t s) {
  int* x;
  MUST(cudaMalloc(&x, bytes));
  cudaGraph_t inner, outer, clone;
  MUST(cudaGraphCreate(&inner, 0));
  cudaGraphNode_t kernel = add_kernel(inner, {}, x, 2, 1);
  MUST(cudaGraphClone(&clone, inner));
  cudaGraphNode_t twin = nullptr;
  MUST(cudaGraphNodeFindInClone(&twin, kernel, clone));
  EXPECT(twin != nullptr && twin != kernel);
  MUST(cudaGraphCreate(&outer, 0));
  cudaGraphNode_t fill = add_fill(outer, {}, x, 3), child, again;
  MUST(cudaGraphAddChildGraphNode(&child, outer, &fill, 1, inner));
  MUST(cudaGraphAddChildGraphNode(&again, outer, &child, 1, inner));
  cudaGraph_t embedded = nullptr;
  MUST(cudaGraphChildGraphNodeGetGraph(child, &embedded));
  EXPECT(embedded != nullptr && embedded != inner);
  std::size_t nodes = 0;
  MUST(cudaGraphGetNodes(embedded, nullptr, &nodes));
  EXPECT(nodes == 1);
  // What becomes of the graph later does not change those made of it.
  kernel_arguments changed(x, n, 0, 77);
  const cudaKernelNodeParams p = changed.parameters();
  MUST(cudaGraphKernelNodeSetParams(kernel, &p));
  cudaGraphExec_t exec;
  MUST(cudaGraphInstantiate(&exec, outer, 0));
  all_are(launch(exec, s, x), 15);
  MUST(cudaGraphExecDestroy(exec));
  MUST(cudaGraphInstantiate(&exec, clone, 0));
  all_are(launch(exec, s, x), 31);
  MUST(cudaGraphExecDestroy(exec));
  for (cudaGraph_t g : {inner, outer, clone}) MUST(cudaGraphDestroy(g));
  MUST(cudaFree(x));
}

/// A copy that is switched off leaves the program's memory alone, in an updated graph too, and a function
/// behind it sees what is there.
void copies_that_are_off(cudaStream_t s) {
  int* x;
  MUST(cudaMalloc(&x, bytes));
  std::vector<int> place(n, -1);
  seen_by_function seen{place.data()};
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  MUST(cudaGraphCreate(&graph, 0));
  cudaGraphNode_t fill = add_fill(graph, {}, x, 7);
  cudaGraphNode_t down = add_copy(graph, {fill}, place.data(), x), look = nullptr;
  const cudaHostNodeParams function{look_at_place, &seen};
  MUST(cudaGraphAddHostNode(&look, graph, &down, 1, &function));
  MUST(cudaGraphInstantiate(&exec, graph, 0));
  const auto is_left = [&] {
    place.assign(n, -2);
    all_are(launch(exec, s, x), 7);
    return place == std::vector<int>(n, -2) && seen.value == -2;
  };
  MUST(cudaGraphNodeSetEnabled(exec, down, 0));
  EXPECT(is_left());
  MUST(cudaGraphNodeSetEnabled(exec, down, 1));
  EXPECT(!is_left() && place == std::vector<int>(n, 7) && seen.value == 7);
  MUST(cudaGraphNodeSetEnabled(exec, down, 0));
  EXPECT(is_left());
  cudaGraphExecUpdateResultInfo info;
  MUST(cudaGraphExecUpdate(exec, graph, &info));
  EXPECT(is_left());
  MUST(cudaGraphNodeSetEnabled(exec, down, 1));
  EXPECT(!is_left() && place == std::vector<int>(n, 7));
  MUST(cudaGraphExecDestroy(exec));
  MUST(cudaGraphDestroy(graph));
  MUST(cudaFree(x));
}

/// One graph inside another twice: its copy moves twice in a launch, behind a function between them and
/// behind another copy to the same place.
void the_same_child_twice(cudaStream_t s) {
  int *x, *y;
  MUST(cudaMalloc(&x, bytes));
  MUST(cudaMalloc(&y, bytes));
  std::vector<int> place(n, -1);
  seen_by_function seen{place.data()};
  cudaGraph_t inner, outer;
  cudaGraphExec_t exec;
  cudaGraphNode_t first = nullptr, between = nullptr, second = nullptr;
  MUST(cudaGraphCreate(&inner, 0));
  add_copy(inner, {add_kernel(inner, {}, x, 2, 1)}, place.data(), x);
  for (const bool function : {true, false}) {
    MUST(cudaMemset(x, 0, bytes));
    MUST(cudaMemset(y, 0, bytes));
    MUST(cudaGraphCreate(&outer, 0));
    MUST(cudaGraphAddChildGraphNode(&first, outer, nullptr, 0, inner));
    if (function) {
      const cudaHostNodeParams look{look_at_place, &seen};
      MUST(cudaGraphAddHostNode(&between, outer, &first, 1, &look));
    } else {
      between = add_copy(outer, {first}, place.data(), y);
    }
    MUST(cudaGraphAddChildGraphNode(&second, outer, &between, 1, inner));
    MUST(cudaGraphInstantiate(&exec, outer, 0));
    for (const int twice : {3, 15}) {
      all_are(launch(exec, s, x), twice);
      EXPECT(place == std::vector<int>(n, twice));
      EXPECT(!function || seen.value == twice / 2);
    }
    MUST(cudaGraphExecDestroy(exec));
    MUST(cudaGraphDestroy(outer));
  }
  MUST(cudaGraphDestroy(inner));
  MUST(cudaFree(x));
  MUST(cudaFree(y));
}

void events(cudaStream_t s) {
  int* x;
  cudaEvent_t begin, end;
  MUST(cudaMalloc(&x, bytes));
  MUST(cudaEventCreate(&begin));
  MUST(cudaEventCreate(&end));
  cudaGraph_t graph;
  MUST(cudaGraphCreate(&graph, 0));
  cudaGraphNode_t first, last;
  MUST(cudaGraphAddEventRecordNode(&first, graph, nullptr, 0, begin));
  cudaGraphNode_t fill = add_fill(graph, {first}, x, 6);
  MUST(cudaGraphAddEventRecordNode(&last, graph, &fill, 1, end));
  cudaEvent_t told = nullptr;
  MUST(cudaGraphEventRecordNodeGetEvent(last, &told));
  EXPECT(told == end);
  cudaGraphExec_t exec;
  MUST(cudaGraphInstantiate(&exec, graph, 0));
  for (int round = 0; round < 2; ++round) {
    MUST(cudaGraphLaunch(exec, s));
    MUST(cudaEventSynchronize(end));
    float took = -1;
    MUST(cudaEventElapsedTime(&took, begin, end));
    EXPECT(took >= 0);
  }
  MUST(cudaGraphExecDestroy(exec));
  MUST(cudaGraphDestroy(graph));
  MUST(cudaEventDestroy(begin));
  MUST(cudaEventDestroy(end));
  MUST(cudaFree(x));
}

/// Destructors run when the last graph or executable graph that refers to the object is gone.
void user_objects(cudaStream_t s) {
  std::atomic<int> destroyed{0};
  int* x;
  MUST(cudaMalloc(&x, bytes));
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  cudaUserObject_t object;
  MUST(cudaGraphCreate(&graph, 0));
  add_fill(graph, {}, x, 1);
  MUST(cudaUserObjectCreate(&object, &destroyed, count, 1, cudaUserObjectNoDestructorSync));
  MUST(cudaGraphRetainUserObject(graph, object, 1, cudaGraphUserObjectMove));
  MUST(cudaGraphInstantiate(&exec, graph, 0));
  MUST(cudaGraphDestroy(graph));
  all_are(launch(exec, s, x), 1);
  EXPECT(destroyed == 0);
  MUST(cudaGraphExecDestroy(exec));
  MUST(cudaDeviceSynchronize());
  for (int i = 0; i < 2000 && destroyed == 0; ++i) usleep(1000);
  EXPECT(destroyed == 1);
  MUST(cudaFree(x));
}

void printed() {
  int* x;
  MUST(cudaMalloc(&x, bytes));
  cudaGraph_t graph;
  MUST(cudaGraphCreate(&graph, 0));
  cudaGraphNode_t fill = add_fill(graph, {}, x, 1);
  add_kernel(graph, {fill}, x, 1, 1);
  char path[] = "/tmp/graph_nodes_XXXXXX";
  close(mkstemp(path));
  MUST(cudaGraphDebugDotPrint(graph, path, 0));
  std::FILE* file = std::fopen(path, "r");
  EXPECT(file != nullptr);
  std::string text(1 << 16, '\0');
  text.resize(std::fread(&text[0], 1, text.size(), file));
  std::fclose(file);
  unlink(path);
  EXPECT(text.find("digraph") != text.npos && text.find("->") != text.npos);
  MUST(cudaGraphDestroy(graph));
  MUST(cudaFree(x));
}

}  // namespace

/// What no node frees is the program's from the launch on, until it frees it.
void memory_left_by_a_graph(cudaStream_t s) {
  cudaGraph_t graph;
  cudaGraphExec_t exec, second = nullptr;
  MUST(cudaGraphCreate(&graph, 0));
  cudaMemAllocNodeParams p{};
  p.poolProps.allocType = cudaMemAllocationTypePinned;
  p.poolProps.location.type = cudaMemLocationTypeDevice;
  p.bytesize = bytes;
  cudaGraphNode_t take, fill;
  MUST(cudaGraphAddMemAllocNode(&take, graph, nullptr, 0, &p));
  cudaMemsetParams f{};
  f.dst = p.dptr, f.value = 3, f.elementSize = 4, f.width = n, f.height = 1;
  MUST(cudaGraphAddMemsetNode(&fill, graph, &take, 1, &f));
  auto* left = static_cast<int*>(p.dptr);
  MUST(cudaGraphInstantiate(&exec, graph, 0));
  EXPECT(cudaGraphInstantiate(&second, graph, 0) == cudaErrorNotSupported);
  EXPECT(cudaFree(left) == cudaErrorInvalidValue);
  MUST(cudaGraphLaunch(exec, s));
  scale<<<n / 256, 256, 0, s>>>(left, n, 2, 1);
  MUST(cudaStreamSynchronize(s));
  EXPECT(cudaGraphLaunch(exec, s) == cudaErrorInvalidValue);
  std::vector<int> seen(n);
  MUST(cudaMemcpy(seen.data(), left, bytes, cudaMemcpyDeviceToHost));
  for (const int x : seen) EXPECT(x == 7);
  MUST(cudaFree(left));
  EXPECT(cudaFree(left) == cudaErrorInvalidValue);
  MUST(cudaGraphLaunch(exec, s));
  MUST(cudaFreeAsync(left, s));
  MUST(cudaGraphLaunch(exec, s));
  MUST(cudaStreamSynchronize(s));
  MUST(cudaGraphExecDestroy(exec));
  MUST(cudaGraphDestroy(graph));
  MUST(cudaMemcpy(seen.data(), left, bytes, cudaMemcpyDeviceToHost));
  for (const int x : seen) EXPECT(x == 3);
  MUST(cudaFree(left));
  EXPECT(cudaGetLastError() == cudaErrorInvalidValue && cudaGetLastError() == cudaSuccess);
}

int main() {
  cudaStream_t s;
  MUST(cudaStreamCreate(&s));
  built_by_hand(s);
  copies_that_move(s);
  updated_from_another(s);
  destroyed_under_way(s);
  children_and_clones(s);
  copies_that_are_off(s);
  the_same_child_twice(s);
  events(s);
  user_objects(s);
  memory_left_by_a_graph(s);
  printed();
  MUST(cudaStreamDestroy(s));
  std::printf("PASS graph_nodes\n");
  return 0;
}
