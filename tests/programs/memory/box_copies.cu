// Copies of two and three dimensions in every direction: pageable and page-locked host memory, pitched device
// memory, arrays; sub-boxes at offsets; nothing outside of the box is touched; copies that make no
// sense are refused.
#include <cuda_runtime.h>

#include <cstring>

#include "../common.hh"

namespace {

using bytes = std::vector<unsigned char>;

bytes pattern(std::size_t size, unsigned seed) {
  numbers random{seed};
  bytes out(size);
  for (auto& b : out) b = static_cast<unsigned char>(random.next());
  return out;
}

/// A box inside a block of rows: where it is, and the block's sizes.
struct place {
  std::size_t pitch, rows, x, y, z;
  std::size_t at(std::size_t dx, std::size_t dy, std::size_t dz) const {
    return ((z + dz) * rows + y + dy) * pitch + x + dx;
  }
};

/// What the target must look like after the copy.
bytes expected(const bytes& target, const place& to, const bytes& source, const place& from, cudaExtent box) {
  bytes out = target;
  for (std::size_t z = 0; z < box.depth; ++z) {
    for (std::size_t y = 0; y < box.height; ++y)
      std::memcpy(&out[to.at(0, y, z)], &source[from.at(0, y, z)], box.width);
  }
  return out;
}

cudaMemcpy3DParms parameters(void* to, const place& t, const void* from, const place& f, cudaExtent box,
                             cudaMemcpyKind kind) {
  cudaMemcpy3DParms p = {};
  p.srcPtr = make_cudaPitchedPtr(const_cast<void*>(from), f.pitch, f.pitch, f.rows);
  p.dstPtr = make_cudaPitchedPtr(to, t.pitch, t.pitch, t.rows);
  p.srcPos = make_cudaPos(f.x, f.y, f.z);
  p.dstPos = make_cudaPos(t.x, t.y, t.z);
  p.extent = box;
  p.kind = kind;
  return p;
}

struct blocks {
  bytes content;
  unsigned char* device = nullptr;
  unsigned char* pinned = nullptr;
  explicit blocks(std::size_t size, unsigned seed) : content(pattern(size, seed)) {
    MUST(cudaMalloc(&device, size));
    MUST(cudaMallocHost(&pinned, size));
    reset();
  }
  ~blocks() { cudaFree(device), cudaFreeHost(pinned); }
  void reset() {
    MUST(cudaMemcpy(device, content.data(), content.size(), cudaMemcpyHostToDevice));
    // This copy may return when its bytes are staged, and the copies below are in a stream that waits for no
    // other.
    MUST(cudaDeviceSynchronize());
    std::memcpy(pinned, content.data(), content.size());
  }
  bytes on_device() const {
    bytes out(content.size());
    MUST(cudaMemcpy(out.data(), device, out.size(), cudaMemcpyDeviceToHost));
    return out;
  }
};

void boxes(const place& t, std::size_t to_depth, const place& f, std::size_t from_depth, cudaExtent box) {
  blocks to(t.pitch * t.rows * to_depth, 7), from(f.pitch * f.rows * from_depth, 11);
  const bytes wanted = expected(to.content, t, from.content, f, box);
  cudaStream_t stream;
  MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  for (const bool async : {false, true}) {
    const auto copy = [&](const cudaMemcpy3DParms& p) {
      MUST(async ? cudaMemcpy3DAsync(&p, stream) : cudaMemcpy3D(&p));
    };
    // host to device, from pageable memory that is overwritten at once, and from page-locked memory
    to.reset();
    bytes pageable = from.content;
    copy(parameters(to.device, t, pageable.data(), f, box, cudaMemcpyHostToDevice));
    if (!async) std::fill(pageable.begin(), pageable.end(), 0xee);
    MUST(cudaStreamSynchronize(stream));
    EXPECT(to.on_device() == wanted);
    to.reset();
    copy(parameters(to.device, t, from.pinned, f, box, cudaMemcpyDefault));
    MUST(cudaStreamSynchronize(stream));
    EXPECT(to.on_device() == wanted);
    // device to device
    to.reset();
    copy(parameters(to.device, t, from.device, f, box, cudaMemcpyDeviceToDevice));
    MUST(cudaStreamSynchronize(stream));
    EXPECT(to.on_device() == wanted);
    // device to host
    bytes back = to.content;
    copy(parameters(back.data(), t, from.device, f, box, cudaMemcpyDeviceToHost));
    MUST(cudaStreamSynchronize(stream));
    EXPECT(back == wanted);
    to.reset();
    copy(parameters(to.pinned, t, from.device, f, box, cudaMemcpyDefault));
    MUST(cudaStreamSynchronize(stream));
    EXPECT(std::memcmp(to.pinned, wanted.data(), wanted.size()) == 0);
    // host to host
    back = to.content;
    copy(parameters(back.data(), t, from.content.data(), f, box, cudaMemcpyHostToHost));
    MUST(cudaStreamSynchronize(stream));
    EXPECT(back == wanted);
  }
  MUST(cudaStreamDestroy(stream));
}

/// So many bytes that they travel in several frames: rows that are long, short, and longer than a frame.
void large() {
  for (const std::size_t width : {std::size_t{1000}, std::size_t{70000}, std::size_t{9} << 20}) {
    const std::size_t height = (std::size_t{20} << 20) / width, pitch = width + 24;
    const bytes source = pattern(pitch * height, 3);
    unsigned char* device = nullptr;
    std::size_t device_pitch = 0;
    MUST(cudaMallocPitch(&device, &device_pitch, width, height));
    EXPECT(device_pitch >= width);
    MUST(cudaMemcpy2D(device, device_pitch, source.data(), pitch, width, height, cudaMemcpyHostToDevice));
    bytes back(pitch * height, 0x55);
    MUST(cudaMemcpy2D(back.data(), pitch, device, device_pitch, width, height, cudaMemcpyDeviceToHost));
    for (std::size_t y = 0; y < height; ++y) {
      EXPECT(std::memcmp(&back[y * pitch], &source[y * pitch], width) == 0);
      for (std::size_t x = width; x < pitch; ++x) EXPECT(back[y * pitch + x] == 0x55);
    }
    // the same into page-locked memory, without waiting
    unsigned char* pinned = nullptr;
    cudaStream_t stream;
    cudaEvent_t done;
    MUST(cudaMallocHost(&pinned, pitch * height));
    std::memset(pinned, 0x66, pitch * height);
    MUST(cudaStreamCreate(&stream));
    MUST(cudaEventCreate(&done));
    MUST(cudaMemcpy2DAsync(pinned, pitch, device, device_pitch, width, height, cudaMemcpyDeviceToHost,
                           stream));
    MUST(cudaEventRecord(done, stream));
    cudaError_t state;
    while ((state = cudaEventQuery(done)) == cudaErrorNotReady) {
    }
    MUST(state);
    for (std::size_t y = 0; y < height; ++y) {
      EXPECT(std::memcmp(pinned + y * pitch, &source[y * pitch], width) == 0);
      EXPECT(pinned[y * pitch + width] == 0x66);
    }
    MUST(cudaEventDestroy(done));
    MUST(cudaStreamDestroy(stream));
    MUST(cudaFreeHost(pinned));
    MUST(cudaFree(device));
  }
}

void refused() {
  unsigned char* device = nullptr;
  bytes host(4096);
  MUST(cudaMalloc(&device, 4096));
  EXPECT(cudaMemcpy2D(device, 32, host.data(), 64, 64, 4, cudaMemcpyHostToDevice) != cudaSuccess);
  EXPECT(cudaMemcpy2D(device, 64, host.data(), 32, 64, 4, cudaMemcpyHostToDevice) != cudaSuccess);
  cudaGetLastError();
  MUST(cudaMemcpy2D(device, 64, host.data(), 64, 0, 4, cudaMemcpyHostToDevice));
  MUST(cudaMemcpy2D(device, 64, host.data(), 64, 64, 0, cudaMemcpyHostToDevice));
  MUST(cudaFree(device));
}

}  // namespace

int main() {
  boxes({64, 8, 0, 0, 0}, 3, {64, 8, 0, 0, 0}, 3, make_cudaExtent(64, 8, 3));
  boxes({96, 10, 5, 1, 1}, 4, {160, 7, 33, 2, 0}, 3, make_cudaExtent(50, 5, 3));
  boxes({512, 4, 100, 3, 2}, 3, {300, 9, 7, 8, 1}, 2, make_cudaExtent(1, 1, 1));
  boxes({700, 300, 3, 0, 0}, 2, {640, 310, 0, 5, 0}, 2, make_cudaExtent(640, 300, 2));
  large();
  refused();
  return pass("box_copies");
}
