// Texture objects: every geometry, address mode, filter and read mode, compared with the programming guide's
// formulas, computed here on the host. Texels are small whole numbers and coordinates multiples of 1/8, so
// filtered values are exact.
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "common.hh"

namespace {

struct question {
  float x, y, z;
  int layer;
  float level;
};

enum shape { d1, d2, d3, a1d, a2d, cube, acube, d2_level, d2_gather, d1_fetch };

template <class T>
__device__ T fetch(cudaTextureObject_t t, shape how, question q) {
  switch (how) {
    case d1:
      return tex1D<T>(t, q.x);
    case d2:
      return tex2D<T>(t, q.x, q.y);
    case d3:
      return tex3D<T>(t, q.x, q.y, q.z);
    case a1d:
      return tex1DLayered<T>(t, q.x, q.layer);
    case a2d:
      return tex2DLayered<T>(t, q.x, q.y, q.layer);
    case cube:
      return texCubemap<T>(t, q.x, q.y, q.z);
    case acube:
      return texCubemapLayered<T>(t, q.x, q.y, q.z, q.layer);
    case d2_level:
      return tex2DLod<T>(t, q.x, q.y, q.level);
    default:
      return tex1Dfetch<T>(t, static_cast<int>(q.x));
  }
}

template <class T>
__global__ void ask(cudaTextureObject_t t, shape how, const question* q, T* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = fetch<T>(t, how, q[i]);
}

__global__ void gather(cudaTextureObject_t t, const question* q, float4* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = tex2Dgather<float4>(t, q[i].x, q[i].y, 0);
}

template <class T>
std::vector<T> answers(cudaTextureObject_t t, shape how, const std::vector<question>& questions) {
  question* q = nullptr;
  T* out = nullptr;
  const int n = static_cast<int>(questions.size());
  MUST(cudaMalloc(&q, n * sizeof(question)));
  MUST(cudaMalloc(&out, n * sizeof(T)));
  MUST(cudaMemcpy(q, questions.data(), n * sizeof(question), cudaMemcpyHostToDevice));
  if constexpr (sizeof(T) == 16) {
    if (how == d2_gather) gather<<<(n + 63) / 64, 64>>>(t, q, out, n);
    if (how != d2_gather) ask<<<(n + 63) / 64, 64>>>(t, how, q, out, n);
  } else {
    ask<<<(n + 63) / 64, 64>>>(t, how, q, out, n);
  }
  MUST(cudaGetLastError());
  std::vector<T> result(n);
  MUST(cudaMemcpy(result.data(), out, n * sizeof(T), cudaMemcpyDeviceToHost));
  MUST(cudaFree(q));
  MUST(cudaFree(out));
  return result;
}

/// An array of one float a texel, filled with whole numbers.
struct volume {
  int width, height, depth;
  std::vector<float> texels;
  cudaArray_t array = nullptr;

  volume(int w, int h, int d, unsigned flags = 0) : width(w), height(std::max(h, 1)), depth(std::max(d, 1)) {
    numbers random;
    texels.resize(static_cast<std::size_t>(width) * height * depth);
    for (auto& v : texels) v = static_cast<float>(random.next() % 64);
    const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    MUST(cudaMalloc3DArray(&array, &format, make_cudaExtent(w, h, d), flags));
    cudaMemcpy3DParms p = {};
    p.srcPtr = make_cudaPitchedPtr(texels.data(), width * 4, width, height);
    p.dstArray = array;
    p.extent = make_cudaExtent(width, height, depth);
    p.kind = cudaMemcpyHostToDevice;
    MUST(cudaMemcpy3D(&p));
  }
  ~volume() { cudaFreeArray(array); }
  float at(int x, int y, int z) const {
    return texels[(static_cast<std::size_t>(z) * height + y) * width + x];
  }
};

struct sampler {
  cudaTextureAddressMode mode = cudaAddressModeClamp;
  bool linear = false, normalized = false;
  float border = 0;
};

cudaTextureObject_t texture_of(cudaArray_t array, const sampler& s) {
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  cudaTextureDesc d = {};
  d.addressMode[0] = d.addressMode[1] = d.addressMode[2] = s.mode;
  d.filterMode = s.linear ? cudaFilterModeLinear : cudaFilterModePoint;
  d.readMode = cudaReadModeElementType;
  d.normalizedCoords = s.normalized;
  for (float& b : d.borderColor) b = s.border;
  cudaTextureObject_t t = 0;
  MUST(cudaCreateTextureObject(&t, &resource, &d, nullptr));
  return t;
}

/// The texel index that an address mode makes of `i`, -1 for the border.
int addressed(int i, int n, const sampler& s) {
  if (i >= 0 && i < n) return i;
  if (s.mode == cudaAddressModeBorder) return -1;
  if (s.mode == cudaAddressModeWrap && s.normalized) return ((i % n) + n) % n;
  if (s.mode == cudaAddressModeMirror && s.normalized) {
    const int within = ((i % (2 * n)) + 2 * n) % (2 * n);
    return within < n ? within : 2 * n - 1 - within;
  }
  return i < 0 ? 0 : n - 1;
}

double coordinate(float x, int n, const sampler& s) {
  const double u = s.normalized ? double{x} * n : x;
  // Clamped coordinates filter from the middle of the outermost texel.
  return s.linear && s.mode == cudaAddressModeClamp ? std::min(std::max(u, 0.5), n - 0.5) : u;
}

/// The share of a corner's weight that each half gets, in whole 256ths, as a GPU filters (observed on an
/// H200).
double to_second(double weight, double part) { return std::floor(weight * part * 256 + 0.5) / 256; }
double to_first(double weight, double part) { return std::floor(weight * (1 - part) * 256 + 0.5) / 256; }

double filtered(const volume& v, const sampler& s, const double* u, const int* size, int dimensions,
                int slice) {
  double low[3] = {}, part[3] = {}, sum = 0;
  for (int d = 0; d < dimensions; ++d) {
    low[d] = std::floor(u[d] - 0.5);
    part[d] = u[d] - 0.5 - low[d];
  }
  for (int corner = 0; corner < 1 << dimensions; ++corner) {
    int index[3] = {0, 0, slice};
    bool border = false;
    for (int d = 0; d < dimensions; ++d) {
      index[d] = addressed(static_cast<int>(low[d]) + (corner >> d & 1), size[d], s);
      border = border || index[d] < 0;
    }
    double weight = corner & 4 ? part[2] : 1 - part[2];
    const double right = to_second(weight, part[0]);
    weight = corner & 1 ? right : weight - right;
    const double kept = corner & 1 ? to_second(weight, part[1]) : to_first(weight, part[1]);
    const bool keeps = (corner & 1) == (corner >> 1 & 1);
    weight = keeps ? kept : weight - kept;
    if (weight != 0) sum += weight * (border ? s.border : v.at(index[0], index[1], index[2]));
  }
  return sum;
}

double reference(const volume& v, const sampler& s, const question& q, int dimensions, bool layered) {
  const int slice = layered ? q.layer : 0;
  const int size[3] = {v.width, v.height, v.depth};
  const float at[3] = {q.x, q.y, q.z};
  double u[3] = {};
  for (int d = 0; d < dimensions; ++d) u[d] = coordinate(at[d], size[d], s);
  if (s.linear) {
    const double value = filtered(v, s, u, size, dimensions, slice);
    // A GPU takes the second address mode of a 1D texture as well: half of what it reads is the border.
    const bool above_is_border = dimensions == 1 && !layered && s.mode == cudaAddressModeBorder;
    return above_is_border ? (value + s.border) / 2 : value;
  }
  int index[3] = {0, 0, slice};
  for (int d = 0; d < dimensions; ++d) {
    index[d] = addressed(static_cast<int>(std::floor(u[d])), size[d], s);
    if (index[d] < 0) return s.border;
  }
  return v.at(index[0], index[1], index[2]);
}

/// Coordinates in multiples of 1/8 texel, inside and around the image; off the boundaries between texels,
/// where the last bit would decide.
std::vector<question> questions(const volume& v, const sampler& s, int dimensions) {
  numbers random{99};
  std::vector<question> all;
  for (int i = 0; i < 400; ++i) {
    const int size[3] = {v.width, v.height, v.depth};
    float at[3] = {};
    for (int d = 0; d < dimensions; ++d) {
      const int range = 8 * (3 * size[d]);
      const int eighths = static_cast<int>(random.next() % range) - 8 * size[d];
      at[d] = (static_cast<float>(eighths) + (s.linear ? 0.0f : 0.5f)) / 8;
      if (s.normalized) at[d] /= static_cast<float>(size[d]);
    }
    all.push_back({at[0], at[1], at[2], static_cast<int>(random.next() % v.depth), 0});
  }
  return all;
}

void compare(const volume& v, shape how, int dimensions, bool layered) {
  for (const auto mode :
       {cudaAddressModeClamp, cudaAddressModeBorder, cudaAddressModeWrap, cudaAddressModeMirror}) {
    for (const bool linear : {false, true}) {
      for (const bool normalized : {false, true}) {
        if (!normalized && (mode == cudaAddressModeWrap || mode == cudaAddressModeMirror)) continue;
        const sampler s{mode, linear, normalized, 5};
        const cudaTextureObject_t t = texture_of(v.array, s);
        const std::vector<question> asked = questions(v, s, dimensions);
        const std::vector<float> got = answers<float>(t, how, asked);
        for (std::size_t i = 0; i < asked.size(); ++i) {
          const double wanted = reference(v, s, asked[i], dimensions, layered);
          if (std::fabs(got[i] - wanted) > 1e-4) {
            std::printf("FAIL shape %d mode %d linear %d normalized %d at (%g %g %g) layer %d: %g, not %g\n",
                        how, mode, linear, normalized, asked[i].x, asked[i].y, asked[i].z, asked[i].layer,
                        got[i], wanted);
            std::exit(1);
          }
        }
        MUST(cudaDestroyTextureObject(t));
      }
    }
  }
}

void cubes() {
  const volume one(8, 8, 6, cudaArrayCubemap), two(8, 8, 12, cudaArrayCubemap | cudaArrayLayered);
  // The middle of each face, then places off it: face, column and row by the guide's table.
  struct place {
    question q;
    int face, x, y;
  };
  const place places[] = {
      {{1, 0.05f, 0.05f, 0, 0}, 0, 3, 3}, {{-1, 0.05f, 0.05f, 0, 0}, 1, 4, 3},
      {{0.05f, 1, 0.05f, 0, 0}, 2, 4, 4}, {{0.05f, -1, 0.05f, 0, 0}, 3, 4, 3},
      {{0.05f, 0.05f, 1, 0, 0}, 4, 4, 3}, {{0.05f, 0.05f, -1, 0, 0}, 5, 3, 3},
      {{2, -1.3f, 0.7f, 0, 0}, 0, 2, 6},  {{0.8f, 0.2f, -2, 0, 0}, 5, 2, 3},
  };
  const cudaTextureObject_t t = texture_of(one.array, {cudaAddressModeClamp, false, true, 0}),
                            l = texture_of(two.array, {cudaAddressModeClamp, false, true, 0});
  std::vector<question> asked;
  for (const place& p : places) asked.push_back(p.q), asked.back().layer = 1;
  const std::vector<float> got = answers<float>(t, cube, asked), layered = answers<float>(l, acube, asked);
  for (std::size_t i = 0; i < asked.size(); ++i) {
    EXPECT(got[i] == one.at(places[i].x, places[i].y, places[i].face));
    EXPECT(layered[i] == two.at(places[i].x, places[i].y, 6 + places[i].face));
  }
  MUST(cudaDestroyTextureObject(t));
  MUST(cudaDestroyTextureObject(l));
}

void levels() {
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
  cudaMipmappedArray_t mipmap = nullptr;
  MUST(cudaMallocMipmappedArray(&mipmap, &format, make_cudaExtent(16, 16, 0), 4));
  for (unsigned level = 0; level < 4; ++level) {
    cudaArray_t array = nullptr;
    MUST(cudaGetMipmappedArrayLevel(&array, mipmap, level));
    const std::size_t n = 16 >> level;
    const std::vector<float> texels(n * n, static_cast<float>(10 * level));
    MUST(cudaMemcpy2DToArray(array, 0, 0, texels.data(), n * 4, n * 4, n, cudaMemcpyHostToDevice));
  }
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeMipmappedArray;
  resource.res.mipmap.mipmap = mipmap;
  cudaTextureDesc d = {};
  d.addressMode[0] = d.addressMode[1] = cudaAddressModeWrap;
  d.normalizedCoords = 1;
  d.maxMipmapLevelClamp = 2.5f, d.minMipmapLevelClamp = 0.25f;
  const std::vector<question> asked = {{0.3f, 0.7f, 0, 0, 0},     {0.3f, 0.7f, 0, 0, 1},
                                       {0.3f, 0.7f, 0, 0, 1.75f}, {0.3f, 0.7f, 0, 0, 2.25f},
                                       {0.3f, 0.7f, 0, 0, 9},     {0.3f, 0.7f, 0, 0, -3}};
  const float linear[] = {2.5f, 10, 17.5f, 22.5f, 25, 2.5f}, nearest[] = {0, 10, 20, 20, 30, 0};
  for (const bool between : {false, true}) {
    d.mipmapFilterMode = between ? cudaFilterModeLinear : cudaFilterModePoint;
    cudaTextureObject_t t = 0;
    MUST(cudaCreateTextureObject(&t, &resource, &d, nullptr));
    const std::vector<float> got = answers<float>(t, d2_level, asked);
    for (std::size_t i = 0; i < asked.size(); ++i) {
      // 2.5 lies between two levels: either is the nearest
      const bool tie = !between && asked[i].level == 9;
      EXPECT(got[i] == (between ? linear : nearest)[i] || (tie && got[i] == 20));
    }
    MUST(cudaDestroyTextureObject(t));
  }
  MUST(cudaFreeMipmappedArray(mipmap));
}

void formats() {
  const cudaChannelFormatDesc bytes = cudaCreateChannelDesc<uchar4>(),
                              shorts = cudaCreateChannelDesc<short2>();
  cudaArray_t a = nullptr, b = nullptr;
  MUST(cudaMallocArray(&a, &bytes, 4, 1));
  MUST(cudaMallocArray(&b, &shorts, 4, 1));
  const uchar4 in[4] = {{0, 51, 102, 255}, {1, 2, 3, 4}, {9, 8, 7, 6}, {200, 100, 50, 25}};
  const short2 pairs[4] = {{-32768, 32767}, {-32767, 0}, {100, -100}, {5, 6}};
  MUST(cudaMemcpy2DToArray(a, 0, 0, in, 16, 16, 1, cudaMemcpyHostToDevice));
  MUST(cudaMemcpy2DToArray(b, 0, 0, pairs, 16, 16, 1, cudaMemcpyHostToDevice));
  const auto object = [](cudaArray_t array, cudaTextureReadMode mode) {
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray, resource.res.array.array = array;
    cudaTextureDesc d = {};
    d.addressMode[0] = d.addressMode[1] = cudaAddressModeClamp, d.readMode = mode;
    cudaTextureObject_t t = 0;
    MUST(cudaCreateTextureObject(&t, &resource, &d, nullptr));
    return t;
  };
  const std::vector<question> asked = {{0.5f, 0.5f, 0, 0, 0}, {1.5f, 0.5f, 0, 0, 0}, {2.5f, 0.5f, 0, 0, 0}};
  const cudaTextureObject_t plain = object(a, cudaReadModeElementType),
                            scaled = object(a, cudaReadModeNormalizedFloat),
                            words = object(b, cudaReadModeElementType),
                            signs = object(b, cudaReadModeNormalizedFloat);
  const auto raw = answers<uchar4>(plain, d2, asked);
  const auto floats = answers<float4>(scaled, d2, asked);
  const auto numbers = answers<short2>(words, d2, asked);
  const auto halves = answers<float2>(signs, d2, asked);
  const auto near = [](float x, double y) { return std::fabs(x - y) < 1e-6; };
  for (std::size_t i = 0; i < asked.size(); ++i) {
    EXPECT(std::memcmp(&raw[i], &in[i], 4) == 0);
    EXPECT(numbers[i].x == pairs[i].x && numbers[i].y == pairs[i].y);
    EXPECT(near(floats[i].x, in[i].x / 255.0) && near(floats[i].y, in[i].y / 255.0) &&
           near(floats[i].z, in[i].z / 255.0) && near(floats[i].w, in[i].w / 255.0));
    EXPECT(near(halves[i].x, std::max(pairs[i].x / 32767.0, -1.0)) &&
           near(halves[i].y, pairs[i].y / 32767.0));
  }
  for (const cudaTextureObject_t t : {plain, scaled, words, signs}) MUST(cudaDestroyTextureObject(t));
  MUST(cudaFreeArray(a));
  MUST(cudaFreeArray(b));
}

void memory() {
  // in a row
  std::vector<int> in(100);
  for (int i = 0; i < 100; ++i) in[i] = i * i;
  int* device = nullptr;
  MUST(cudaMalloc(&device, 4096));
  MUST(cudaMemcpy(device, in.data(), 400, cudaMemcpyHostToDevice));
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeLinear;
  resource.res.linear.devPtr = device, resource.res.linear.sizeInBytes = 400;
  resource.res.linear.desc = cudaCreateChannelDesc<int>();
  cudaTextureDesc d = {};
  cudaTextureObject_t t = 0;
  MUST(cudaCreateTextureObject(&t, &resource, &d, nullptr));
  const auto got = answers<int>(
      t, d1_fetch, {{0, 0, 0, 0, 0}, {7, 0, 0, 0, 0}, {99, 0, 0, 0, 0}, {100, 0, 0, 0, 0}, {-1, 0, 0, 0, 0}});
  EXPECT(got[0] == 0 && got[1] == 49 && got[2] == 99 * 99 && got[3] == 0 && got[4] == 0);
  cudaResourceDesc told = {};
  MUST(cudaGetTextureObjectResourceDesc(&told, t));
  EXPECT(told.resType == cudaResourceTypeLinear && told.res.linear.devPtr == device);
  MUST(cudaDestroyTextureObject(t));
  MUST(cudaFree(device));
  // in pitched rows
  float* rows = nullptr;
  std::size_t pitch = 0;
  std::vector<float> texels(10 * 5);
  for (int i = 0; i < 50; ++i) texels[i] = static_cast<float>(2 * i);
  MUST(cudaMallocPitch(&rows, &pitch, 40, 5));
  MUST(cudaMemcpy2D(rows, pitch, texels.data(), 40, 40, 5, cudaMemcpyHostToDevice));
  resource = {};
  resource.resType = cudaResourceTypePitch2D;
  resource.res.pitch2D.devPtr = rows, resource.res.pitch2D.pitchInBytes = pitch;
  resource.res.pitch2D.width = 10, resource.res.pitch2D.height = 5;
  resource.res.pitch2D.desc = cudaCreateChannelDesc<float>();
  d.addressMode[0] = d.addressMode[1] = cudaAddressModeClamp;
  d.filterMode = cudaFilterModeLinear;
  MUST(cudaCreateTextureObject(&t, &resource, &d, nullptr));
  const auto flat = answers<float>(t, d2, {{3.5f, 2.5f, 0, 0, 0}, {4, 3, 0, 0, 0}, {-5, 2.5f, 0, 0, 0}});
  EXPECT(flat[0] == 46 && flat[1] == 57 && flat[2] == 40);
  MUST(cudaDestroyTextureObject(t));
  MUST(cudaFree(rows));
}

void gathers() {
  const volume v(8, 8, 0, cudaArrayTextureGather);
  const cudaTextureObject_t t = texture_of(v.array, {});
  const auto got = answers<float4>(t, d2_gather, {{3.75f, 2.75f, 0, 0, 0}, {0.25f, 7.75f, 0, 0, 0}});
  EXPECT(got[0].x == v.at(3, 3, 0) && got[0].y == v.at(4, 3, 0) && got[0].z == v.at(4, 2, 0) &&
         got[0].w == v.at(3, 2, 0));
  EXPECT(got[1].x == v.at(0, 7, 0) && got[1].w == v.at(0, 7, 0));
  MUST(cudaDestroyTextureObject(t));
}

void refused() {
  cudaTextureObject_t t = 0;
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeArray;
  cudaTextureDesc d = {};
  EXPECT(cudaCreateTextureObject(&t, &resource, &d, nullptr) != cudaSuccess);  // no array
  const cudaChannelFormatDesc ints = cudaCreateChannelDesc<int>();
  MUST(cudaMallocArray(&resource.res.array.array, &ints, 8, 8));
  d.filterMode = cudaFilterModeLinear;
  EXPECT(cudaCreateTextureObject(&t, &resource, &d, nullptr) != cudaSuccess);  // integers cannot be filtered
  MUST(cudaFreeArray(resource.res.array.array));
  cudaGetLastError();
}

}  // namespace

int main() {
  compare(volume(16, 0, 0), d1, 1, false);
  compare(volume(16, 8, 0), d2, 2, false);
  compare(volume(8, 8, 4), d3, 3, false);
  compare(volume(16, 0, 5, cudaArrayLayered), a1d, 1, true);
  compare(volume(8, 16, 3, cudaArrayLayered), a2d, 2, true);
  cubes();
  levels();
  formats();
  memory();
  gathers();
  refused();
  return pass("textures");
}
