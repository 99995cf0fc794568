// A list in shared virtual memory whose links are addresses: written by the host, walked by a kernel, which
// writes into it, and read by the host again. The program adds what coarse-grained memory needs around the
// host's part.
#pragma once

#include "program.hh"

/// The kernel's source, which a program adds to its own.
inline const char* const node_list_source = R"(
typedef struct node { __global struct node* next; int value; int seen; } node;
__kernel void walk(__global node* first, __global int* sum) {
  int all = 0;
  for (__global node* at = first; at; at = at->next) { all += at->value; at->seen = all; }
  *sum = all;
}
)";

struct node {
  node* next;
  int value, seen;
};

/// `begin(at, size)`: the device has finished with these bytes, and the host's part begins; `end(at)`: the
/// host has finished too.
template <class Begin, class End>
void walk_list(const machine& m, cl_program program, cl_svm_mem_flags flags, Begin&& begin, End&& end) {
  const std::size_t n = 1000;
  auto* const nodes = static_cast<node*>(clSVMAlloc(m.context, flags, n * sizeof(node), 0));
  auto* const sum = static_cast<int*>(clSVMAlloc(m.context, flags, sizeof(int), 0));
  REQUIRE(nodes != nullptr && sum != nullptr);
  begin(nodes, n * sizeof(node));
  // The next node is seven further, so links do not follow the order of addresses.
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t at = i * 7 % n, next = (i + 1) * 7 % n;
    nodes[at] = {i + 1 < n ? &nodes[next] : nullptr, static_cast<int>(i), -1};
  }
  end(nodes);
  cl_kernel walk = m.kernel(program, "walk");
  CHECK_CL(clSetKernelArgSVMPointer(walk, 0, nodes));
  CHECK_CL(clSetKernelArgSVMPointer(walk, 1, sum));
  const std::size_t one = 1;
  CHECK_CL(clEnqueueNDRangeKernel(m.queue, walk, 1, nullptr, &one, nullptr, 0, nullptr, nullptr));
  begin(sum, sizeof *sum);
  begin(nodes, n * sizeof(node));
  std::printf("sum %d, seen last %d\n", *sum, nodes[(n - 1) * 7 % n].seen);
  end(sum);
  end(nodes);
  CHECK_CL(clFinish(m.queue));
  clSVMFree(m.context, nodes);
  clSVMFree(m.context, sum);
  CHECK_CL(clReleaseKernel(walk));
}
