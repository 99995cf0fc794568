// Copies bytes that compress well, bytes that do not, and both by turns, to the device and back, and
// compares. Prints how many milliseconds the best round trip of each took. usage: shrinking_copies
// [MEGABYTES] [ROUNDS]
#include <chrono>
#include <cstring>
#include <map>
#include <string>

#include "../common.hh"

enum class kind { small_numbers, random, by_turns };

std::vector<unsigned char> filled(size_t size, kind what) {
  constexpr size_t turn = 3u << 20;
  numbers random;
  std::vector<unsigned char> bytes(size);
  for (size_t at = 0; at + 8 <= size; at += 8) {
    const std::uint64_t next = std::uint64_t(random.next()) << 32 | random.next();
    const bool small = what == kind::small_numbers || (what == kind::by_turns && at / turn % 2 == 0);
    const std::uint64_t value = small ? next % 50 : next;
    std::memcpy(bytes.data() + at, &value, 8);
  }
  return bytes;
}

int main(int count, char** values) {
  const size_t size = size_t(argument(count, values, 1, 16)) << 20;
  const long rounds = argument(count, values, 2, 3);
  EXPECT(size > 0 && rounds > 0);
  unsigned char* device = nullptr;
  MUST(cudaMalloc(&device, size));
  const std::map<std::string, kind> kinds{
      {"small_numbers", kind::small_numbers}, {"random", kind::random}, {"by_turns", kind::by_turns}};
  for (const auto& [name, what] : kinds) {
    const auto bytes = filled(size, what);
    std::vector<unsigned char> back(size);
    double best = 0;
    for (long round = 0; round < rounds; ++round) {
      std::fill(back.begin(), back.end(), static_cast<unsigned char>(0xa5));
      const auto began = std::chrono::steady_clock::now();
      MUST(cudaMemcpy(device, bytes.data(), size, cudaMemcpyHostToDevice));
      MUST(cudaMemcpy(back.data(), device, size, cudaMemcpyDeviceToHost));
      const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - began;
      EXPECT(back == bytes);
      best = round == 0 ? took.count() : std::min(best, took.count());
    }
    std::printf("%s\t%.3f\tms\n", name.c_str(), best);
  }
  return pass("shrinking_copies");
}
