// Managed memory in random order, against a model on the host: kernels, fills and copies on two streams,
// waits of every kind, host functions, words and long pieces that the host and its system calls touch, blocks
// that are freed and made again. Three threads do so at once, each with blocks of its own. What the host sees
// must be what the order of the calls says. usage: managed_chains [ROUNDS [SEED [THREADS]]]
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <random>
#include <thread>
#include <vector>

#include "common.hh"

__global__ void add(unsigned* p, int count, unsigned value) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) p[i] += value;
}

__global__ void copy(unsigned* to, const unsigned* from, int count) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
    to[i] = from[i] + 1;
}

constexpr int sizes[] = {100, 20'000, 300'000, 1'000'000};
constexpr int kinds = sizeof sizes / sizeof *sizes, streams = 2;

struct block {
  unsigned* data = nullptr;
  std::vector<unsigned> model;
  int stream = -1;  ///< work of which may not be complete
};

struct range {
  int begin, count;
};

class chain {
 public:
  explicit chain(unsigned seed) : seed_(seed), random_(seed) {}

  void run(int rounds) {
    for (cudaStream_t& s : streams_) MUST(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    MUST(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming));
    file_ = memfd_create("pattern", 0);
    EXPECT(file_ >= 0 && ftruncate(file_, sizes[kinds - 1] * sizeof(unsigned)) == 0);
    for (int i = 0; i < kinds; i++) make(blocks_[i], sizes[i]);
    for (int i = 0; i < rounds; i++) step();
    MUST(cudaDeviceSynchronize());
    for (block& b : blocks_) {
      compare(b, {0, static_cast<int>(b.model.size())});
      MUST(cudaFree(b.data));
    }
    close(file_);
  }

 private:
  int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }

  range some(const block& b) {
    const int all = static_cast<int>(b.model.size());
    const int most = below(3) == 0 ? all : std::min(all, 1 + below(600));
    const int count = 1 + below(most);
    return {below(all - count + 1), count};
  }

  static void make(block& b, int count) {
    MUST(cudaMallocManaged(&b.data, count * sizeof(unsigned)));
    b.model.assign(static_cast<std::size_t>(count), 0);
    std::fill_n(b.data, count, 0u);
    b.stream = -1;
  }

  /// The block's next work goes there, behind what it has.
  cudaStream_t turn(block& b, int stream) {
    if (b.stream >= 0 && b.stream != stream) {
      MUST(cudaEventRecord(event_, streams_[b.stream]));
      MUST(cudaStreamWaitEvent(streams_[stream], event_, 0));
    }
    b.stream = stream;
    return streams_[stream];
  }

  void wait_for(block& b) {
    if (b.stream < 0) return;
    cudaStream_t stream = streams_[b.stream];
    switch (below(4)) {
      case 0:
        MUST(cudaDeviceSynchronize());
        for (block& other : blocks_) other.stream = -1;
        return;
      case 1:
        MUST(cudaEventRecord(event_, stream));
        MUST(cudaEventSynchronize(event_));
        break;
      case 2:
        while (cudaStreamQuery(stream) == cudaErrorNotReady) {
        }
        break;
      default:
        MUST(cudaStreamSynchronize(stream));
    }
    const int over = b.stream;
    for (block& other : blocks_) {
      if (other.stream == over) other.stream = -1;
    }
  }

  void compare(const block& b, range r) {
    for (int i = r.begin; i < r.begin + r.count; i++) same(b, i, b.data[i]);
  }

  void same(const block& b, int i, unsigned seen) {
    if (seen == b.model[i]) return;
    std::printf("seed %u, step %d: word %d of %zu is %u, not %u\n", seed_, step_, i, b.model.size(), seen,
                b.model[i]);
    EXPECT(seen == b.model[i]);
  }

  void step() {
    ++step_;
    block& b = blocks_[below(kinds)];
    const range r = some(b);
    const auto value = static_cast<unsigned>(random_());
    const std::size_t bytes = r.count * sizeof(unsigned);
    const auto first = b.model.begin() + r.begin;
    switch (below(14)) {
      case 0:
      case 1:
      case 2: {
        cudaStream_t stream = turn(b, below(streams));
        add<<<4, 64, 0, stream>>>(b.data + r.begin, r.count, value);
        std::for_each(first, first + r.count, [&](unsigned& word) { word += value; });
        break;
      }
      case 3: {
        block& from = blocks_[below(kinds)];
        if (&from == &b) break;
        const int count = std::min(r.count, static_cast<int>(from.model.size()));
        const int stream = below(streams);
        turn(from, stream);
        copy<<<4, 64, 0, turn(b, stream)>>>(b.data + r.begin, from.data, count);
        for (int i = 0; i < count; i++) first[i] = from.model[i] + 1;
        break;
      }
      case 4:
        MUST(
            cudaMemsetAsync(b.data + r.begin, static_cast<int>(value & 255), bytes, turn(b, below(streams))));
        std::fill_n(first, r.count, (value & 255) * 0x01010101u);
        break;
      case 5: {
        std::vector<unsigned> words(r.count, value);
        MUST(cudaMemcpyAsync(b.data + r.begin, words.data(), bytes, cudaMemcpyHostToDevice,
                             turn(b, below(streams))));
        std::fill_n(first, r.count, value);
        break;
      }
      case 6: {
        std::vector<unsigned> words(r.count);
        cudaStream_t stream = turn(b, below(streams));
        MUST(cudaMemcpyAsync(words.data(), b.data + r.begin, bytes, cudaMemcpyDefault, stream));
        MUST(cudaStreamSynchronize(stream));
        for (int i = 0; i < r.count; i++) same(b, r.begin + i, words[i]);
        break;
      }
      case 7: {
        block& from = blocks_[below(kinds)];
        if (&from == &b) break;
        wait_for(b);
        wait_for(from);
        const int count = std::min(r.count, static_cast<int>(from.model.size()));
        MUST(cudaMemcpy(b.data + r.begin, from.data, count * sizeof(unsigned), cudaMemcpyDefault));
        MUST(cudaStreamSynchronize(cudaStreamLegacy));  // such copies need not be over when the call returns
        std::copy_n(from.model.begin(), count, first);
        break;
      }
      case 8: {
        struct order {
          unsigned *word, value;
        };
        auto* o = new order{b.data + r.begin, value};
        MUST(cudaLaunchHostFunc(
            turn(b, below(streams)),
            [](void* p) {
              const order mine = *static_cast<order*>(p);
              *mine.word = *mine.word * 3 + mine.value;
              delete static_cast<order*>(p);
            },
            o));
        *first = *first * 3 + value;
        break;
      }
      case 9:
        wait_for(b);
        compare(b, r);
        break;
      case 10:
        wait_for(b);
        for (int i = 0; i < 8; i++) {
          const int at = below(static_cast<int>(b.model.size()));
          same(b, at, b.data[at]);
          b.data[at] = b.model[at] = value + static_cast<unsigned>(i);
        }
        break;
      case 11:
        wait_for(b);
        for (int i = r.begin; i < r.begin + r.count; i++)
          b.data[i] = b.model[i] = value ^ static_cast<unsigned>(i);
        break;
      case 12: {  // not where a closed page is an error for them: there the wait has opened it
        wait_for(b);
        std::vector<unsigned> words(r.count, value);
        EXPECT(pwrite(file_, words.data(), bytes, 0) == static_cast<ssize_t>(bytes));
        EXPECT(pread(file_, b.data + r.begin, bytes, 0) == static_cast<ssize_t>(bytes));
        std::fill_n(first, r.count, value);
        EXPECT(pwrite(file_, b.data + r.begin, bytes, 0) == static_cast<ssize_t>(bytes));
        break;
      }
      default:
        if (below(4)) break;
        wait_for(b);
        MUST(cudaFree(b.data));
        make(b, static_cast<int>(b.model.size()));
    }
  }

  const unsigned seed_;
  std::mt19937 random_;
  block blocks_[kinds];
  cudaStream_t streams_[streams];
  cudaEvent_t event_;
  int file_ = -1, step_ = 0;
};

int main(int count, char** values) {
  int concurrent = 0;
  MUST(cudaDeviceGetAttribute(&concurrent, cudaDevAttrConcurrentManagedAccess, 0));
  if (!concurrent) {
    std::printf("SKIP managed_chains: the device says that it cannot\n");
    return 77;
  }
  const int rounds = count > 1 ? std::atoi(values[1]) : 150;
  const unsigned seed = count > 2 ? static_cast<unsigned>(std::atoi(values[2])) : 1;
  std::vector<std::thread> threads;
  const auto many = count > 3 ? static_cast<unsigned>(std::atoi(values[3])) : 3u;
  for (unsigned i = 0; i < many; i++) threads.emplace_back([=] { chain(seed * 3 + i).run(rounds); });
  for (std::thread& thread : threads) thread.join();
  return pass("managed_chains");
}
