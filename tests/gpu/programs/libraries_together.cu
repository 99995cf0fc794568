// NVRTC, cuFFT, cuSPARSE and cuSOLVER in one process on one stream, each with the previous one's output;
// checked with plain loops. Links the libraries' shared objects, as applications do.
#include <cuda.h>
#include <cuda_runtime.h>
#include <cufft.h>
#include <cusolverDn.h>
#include <cusparse.h>
#include <nvrtc.h>

#include <algorithm>
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
#define EXPECT(condition)                                      \
  do {                                                         \
    if (!(condition)) {                                        \
      std::printf("FAIL line %d: %s\n", __LINE__, #condition); \
      std::exit(1);                                            \
    }                                                          \
  } while (false)

namespace {

constexpr int n = 256;

const char* const wave_source = R"(
extern "C" __global__ void wave(double2* z, int n, int frequency) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) z[i] = make_double2(2 * cospi(2.0 * frequency * i / n) + 1, 0);
})";

CUfunction compiled(const cudaDeviceProp& device, CUmodule& module) {
  nvrtcProgram program;
  MUST(nvrtcCreateProgram(&program, wave_source, "wave.cu", 0, nullptr, nullptr));
  char architecture[64];
  std::snprintf(architecture, sizeof architecture, "--gpu-architecture=sm_%d%d", device.major, device.minor);
  const char* options[] = {architecture};
  MUST(nvrtcCompileProgram(program, 1, options));
  std::size_t size = 0;
  MUST(nvrtcGetCUBINSize(program, &size));
  std::vector<char> code(size);
  MUST(nvrtcGetCUBIN(program, code.data()));
  MUST(nvrtcDestroyProgram(&program));
  MUST(cuModuleLoadData(&module, code.data()));
  CUfunction f;
  MUST(cuModuleGetFunction(&f, module, "wave"));
  return f;
}

/// The tridiagonal matrix with 4 on the diagonal and -1 beside it, as CSR.
struct tridiagonal {
  std::vector<int> rows{0}, columns;
  std::vector<double> values;
  tridiagonal() {
    for (int r = 0; r < n; ++r) {
      for (int c = std::max(0, r - 1); c <= std::min(n - 1, r + 1); ++c) {
        columns.push_back(c);
        values.push_back(c == r ? 4 : -1);
      }
      rows.push_back(static_cast<int>(columns.size()));
    }
  }
};

template <class T>
T* on_device(const std::vector<T>& from) {
  T* p = nullptr;
  MUST(cudaMalloc(&p, from.size() * sizeof(T)));
  MUST(cudaMemcpy(p, from.data(), from.size() * sizeof(T), cudaMemcpyHostToDevice));
  return p;
}

}  // namespace

int main() {
  MUST(cudaFree(nullptr));
  cudaDeviceProp device;
  MUST(cudaGetDeviceProperties(&device, 0));
  cudaStream_t stream;
  MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));

  // NVRTC: a cosine of 5 periods, twice its height, above 1.
  CUmodule module;
  const CUfunction wave = compiled(device, module);
  cufftDoubleComplex* z = nullptr;
  MUST(cudaMalloc(&z, n * sizeof *z));
  int count = n, frequency = 5;
  void* arguments[] = {&z, &count, &frequency};
  MUST(cuLaunchKernel(wave, 2, 1, 1, n / 2, 1, 1, 0, stream, arguments, nullptr));

  // cuFFT: its spectrum has n at 0 and n at +-5.
  cufftHandle plan;
  MUST(cufftPlan1d(&plan, n, CUFFT_Z2Z, 1));
  MUST(cufftSetStream(plan, stream));
  MUST(cufftExecZ2Z(plan, z, z, CUFFT_FORWARD));
  std::vector<cufftDoubleComplex> spectrum(n);
  MUST(cudaMemcpyAsync(spectrum.data(), z, n * sizeof *z, cudaMemcpyDeviceToHost, stream));
  MUST(cudaStreamSynchronize(stream));
  for (int i = 0; i < n; ++i) {
    const double expected = i == 0 || i == 5 || i == n - 5 ? n : 0;
    EXPECT(std::fabs(spectrum[i].x - expected) < 1e-9 && std::fabs(spectrum[i].y) < 1e-9);
  }

  // cuSPARSE: y = A x with x the spectrum's real part, scaled.
  std::vector<double> x(n), y(n);
  for (int i = 0; i < n; ++i) x[i] = std::sin(0.1 * i) + spectrum[i].x / n;
  const tridiagonal a;
  int *rows = on_device(a.rows), *columns = on_device(a.columns);
  double *values = on_device(a.values), *dx = on_device(x), *dy = on_device(y);
  cusparseHandle_t sparse;
  MUST(cusparseCreate(&sparse));
  MUST(cusparseSetStream(sparse, stream));
  cusparseSpMatDescr_t matrix;
  MUST(cusparseCreateCsr(&matrix, n, n, static_cast<std::int64_t>(a.values.size()), rows, columns, values,
                         CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, CUDA_R_64F));
  cusparseDnVecDescr_t vx, vy;
  MUST(cusparseCreateDnVec(&vx, n, dx, CUDA_R_64F));
  MUST(cusparseCreateDnVec(&vy, n, dy, CUDA_R_64F));
  const double one = 1, zero = 0;
  std::size_t bytes = 0;
  MUST(cusparseSpMV_bufferSize(sparse, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, matrix, vx, &zero, vy,
                               CUDA_R_64F, CUSPARSE_SPMV_ALG_DEFAULT, &bytes));
  void* buffer = nullptr;
  MUST(cudaMalloc(&buffer, bytes + 1));
  MUST(cusparseSpMV(sparse, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, matrix, vx, &zero, vy, CUDA_R_64F,
                    CUSPARSE_SPMV_ALG_DEFAULT, buffer));

  // cuSOLVER: solves A u = y with A dense, so that u is x again.
  std::vector<double> dense(n * n);
  for (int r = 0; r < n; ++r)
    for (int k = a.rows[r]; k < a.rows[r + 1]; ++k) dense[a.columns[k] * n + r] = a.values[k];
  double* da = on_device(dense);
  cusolverDnHandle_t solver;
  MUST(cusolverDnCreate(&solver));
  MUST(cusolverDnSetStream(solver, stream));
  int work = 0;
  MUST(cusolverDnDgetrf_bufferSize(solver, n, n, da, n, &work));
  double* space = nullptr;
  int *pivots = nullptr, *info = nullptr;
  MUST(cudaMalloc(&space, work * sizeof(double)));
  MUST(cudaMalloc(&pivots, n * sizeof(int)));
  MUST(cudaMalloc(&info, sizeof(int)));
  MUST(cusolverDnDgetrf(solver, n, n, da, n, space, pivots, info));
  MUST(cusolverDnDgetrs(solver, CUBLAS_OP_N, n, 1, da, n, pivots, dy, n, info));
  std::vector<double> u(n);
  int failed = -1;
  MUST(cudaMemcpyAsync(u.data(), dy, n * sizeof(double), cudaMemcpyDeviceToHost, stream));
  MUST(cudaMemcpyAsync(&failed, info, sizeof failed, cudaMemcpyDeviceToHost, stream));
  MUST(cudaStreamSynchronize(stream));
  EXPECT(failed == 0);
  double worst = 0, sum = 0;
  for (int i = 0; i < n; ++i) worst = std::max(worst, std::fabs(u[i] - x[i])), sum += u[i];
  EXPECT(worst < 1e-12);

  MUST(cusolverDnDestroy(solver));
  MUST(cusparseDestroy(sparse));
  MUST(cufftDestroy(plan));
  MUST(cuModuleUnload(module));
  MUST(cudaDeviceReset());
  std::printf("CHECK sum %.9f\nPASS libraries_together\n", sum);
}
