// cuDNN's graph API (its backend descriptors): relu(convolution(x, w)) as one graph, the engine chosen by
// heuristics, checked against plain loops.
#include <cuda_runtime.h>
#include <cudnn.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define MUST(call)                                                       \
  do {                                                                   \
    const int code_ = static_cast<int>(call);                            \
    if (code_ != 0) {                                                    \
      std::printf("FAIL line %d: %s gave %d\n", __LINE__, #call, code_); \
      std::exit(1);                                                      \
    }                                                                    \
  } while (false)

namespace {

using descriptor = cudnnBackendDescriptor_t;

descriptor make(cudnnBackendDescriptorType_t type) {
  descriptor d;
  MUST(cudnnBackendCreateDescriptor(type, &d));
  return d;
}

template <class T>
void set(descriptor d, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, const T& value) {
  MUST(cudnnBackendSetAttribute(d, name, type, 1, &value));
}

void set(descriptor d, cudnnBackendAttributeName_t name, const std::vector<std::int64_t>& values) {
  MUST(cudnnBackendSetAttribute(d, name, CUDNN_TYPE_INT64, static_cast<std::int64_t>(values.size()),
                                values.data()));
}

descriptor tensor(std::int64_t id, const std::vector<std::int64_t>& size, bool is_virtual = false) {
  // Channels are innermost, which suits tensor cores.
  const std::vector<std::int64_t> stride{size[1] * size[2] * size[3], 1, size[1] * size[3], size[1]};
  const descriptor d = make(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  set(d, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  set(d, CUDNN_ATTR_TENSOR_DIMENSIONS, size);
  set(d, CUDNN_ATTR_TENSOR_STRIDES, stride);
  set(d, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, id);
  set(d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, std::int64_t{16});
  set(d, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, is_virtual);
  MUST(cudnnBackendFinalize(d));
  return d;
}

descriptor convolution(descriptor x, descriptor w, descriptor y) {
  const descriptor how = make(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  set(how, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, std::int64_t{2});
  set(how, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  set(how, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, CUDNN_CROSS_CORRELATION);
  for (const auto name : {CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS,
                          CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES})
    set(how, name, {1, 1});
  MUST(cudnnBackendFinalize(how));
  const descriptor op = make(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
  set(op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_TYPE_BACKEND_DESCRIPTOR, x);
  set(op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_TYPE_BACKEND_DESCRIPTOR, w);
  set(op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, CUDNN_TYPE_BACKEND_DESCRIPTOR, y);
  set(op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, how);
  set(op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_TYPE_FLOAT, 1.0f);
  set(op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, CUDNN_TYPE_FLOAT, 0.0f);
  MUST(cudnnBackendFinalize(op));
  return op;
}

descriptor relu(descriptor x, descriptor y) {
  const descriptor how = make(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  set(how, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, CUDNN_POINTWISE_RELU_FWD);
  set(how, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  MUST(cudnnBackendFinalize(how));
  const descriptor op = make(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  set(op, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, CUDNN_TYPE_BACKEND_DESCRIPTOR, how);
  set(op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, x);
  set(op, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, y);
  MUST(cudnnBackendFinalize(op));
  return op;
}

/// The first engine in the heuristics' list that accepts the graph.
descriptor plan_for(cudnnHandle_t handle, descriptor graph) {
  const descriptor heuristics = make(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  set(heuristics, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, graph);
  set(heuristics, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, CUDNN_HEUR_MODE_A);
  MUST(cudnnBackendFinalize(heuristics));
  std::vector<descriptor> configurations(16);
  for (descriptor& c : configurations) c = make(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  std::int64_t count = 0;
  MUST(cudnnBackendGetAttribute(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                static_cast<std::int64_t>(configurations.size()), &count,
                                configurations.data()));
  for (std::int64_t i = 0; i < count; ++i) {
    const descriptor plan = make(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    set(plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, handle);
    set(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR, configurations[i]);
    if (cudnnBackendFinalize(plan) == CUDNN_STATUS_SUCCESS) return plan;
  }
  std::printf("FAIL none of %lld engines takes the graph\n", static_cast<long long>(count));
  std::exit(1);
}

}  // namespace

int main() {
  const int n = 4, c = 32, k = 64, side = 28;
  std::vector<float> x(n * side * side * c), w(k * 3 * 3 * c), y(n * side * side * k);
  std::uint32_t state = 9;
  const auto random = [&] {
    return static_cast<float>((state = state * 1664525u + 1013904223u) >> 24) / 128 - 1;
  };
  for (float& v : x) v = random();
  for (float& v : w) v = random() / 16;
  float *dx, *dw, *dy;
  MUST(cudaMalloc(&dx, x.size() * 4));
  MUST(cudaMalloc(&dw, w.size() * 4));
  MUST(cudaMalloc(&dy, y.size() * 4));
  MUST(cudaMemcpy(dx, x.data(), x.size() * 4, cudaMemcpyHostToDevice));
  MUST(cudaMemcpy(dw, w.data(), w.size() * 4, cudaMemcpyHostToDevice));

  cudnnHandle_t handle;
  MUST(cudnnCreate(&handle));
  const descriptor tx = tensor(1, {n, c, side, side}), tw = tensor(2, {k, c, 3, 3}),
                   between = tensor(3, {n, k, side, side}, true), ty = tensor(4, {n, k, side, side});
  const descriptor operations[] = {convolution(tx, tw, between), relu(between, ty)};
  const descriptor graph = make(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  set(graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, handle);
  MUST(cudnnBackendSetAttribute(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 2,
                                operations));
  MUST(cudnnBackendFinalize(graph));
  const descriptor plan = plan_for(handle, graph);
  std::int64_t bytes = 0, got = 0;
  MUST(cudnnBackendGetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &got,
                                &bytes));
  void* workspace = nullptr;
  MUST(cudaMalloc(&workspace, static_cast<std::size_t>(bytes) + 16));

  const std::int64_t ids[] = {1, 2, 4};
  void* const pointers[] = {dx, dw, dy};
  const descriptor pack = make(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  MUST(cudnnBackendSetAttribute(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, 3, ids));
  MUST(cudnnBackendSetAttribute(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, 3,
                                pointers));
  set(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, workspace);
  MUST(cudnnBackendFinalize(pack));
  for (int i = 0; i < 3; ++i) MUST(cudnnBackendExecute(handle, plan, pack));
  MUST(cudaMemcpy(y.data(), dy, y.size() * 4, cudaMemcpyDeviceToHost));

  double worst = 0, sum = 0;
  for (int b = 0; b < n; ++b)
    for (int i = 0; i < side; ++i)
      for (int j = 0; j < side; ++j)
        for (int o = 0; o < k; ++o) {
          double r = 0;
          for (int p = -1; p <= 1; ++p)
            for (int q = -1; q <= 1; ++q) {
              if (i + p < 0 || i + p >= side || j + q < 0 || j + q >= side) continue;
              const float* in = &x[((b * side + i + p) * side + j + q) * c];
              const float* by = &w[((o * 3 + p + 1) * 3 + q + 1) * c];
              for (int m = 0; m < c; ++m) r += static_cast<double>(in[m]) * by[m];
            }
          const float v = y[((b * side + i) * side + j) * k + o];
          worst = std::fmax(worst, std::fabs(std::fmax(r, 0) - v)), sum += v;
        }
  if (worst > 2e-2) {  // tensor cores round float inputs to tf32
    std::printf("FAIL off by %g\n", worst);
    return 1;
  }
  MUST(cudnnDestroy(handle));
  std::printf("CHECK sum %.3f\nPASS cudnn_graph\n", sum);
}
