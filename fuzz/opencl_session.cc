// A whole OpenCL session in a worker: welcome, frames, lanes, decoding, handlers, on a platform that ends the
// process where a real one would follow a wrong pointer (opencl_world.hh). The input is either the client's
// bytes as they are (first byte 0), or, behind the requests that make an object of each kind, a list of good
// requests (opencl_requests.hh) with changes: {which, lane and kind, {where, how, what}...}; the digits are
// requests without changes.
#include <array>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "backend/opencl/session.hh"
#include "backend/session.hh"
#include "base/log.hh"
#include "opencl_requests.hh"
#include "opencl_world.hh"
#include "transport/loopback/loopback.hh"
#include "wire/frame.hh"
#include "wire/handle.hh"

using namespace outboard;

namespace {

/// Numbers at which arithmetic goes wrong, and sizes of what there is.
constexpr std::uint64_t odd_numbers[] = {0,          1,
                                         2,          3,
                                         4,          8,
                                         16,         63,
                                         64,         65,
                                         127,        128,
                                         1023,       1024,
                                         1025,       4032,
                                         4095,       4096,
                                         4097,       8192,
                                         1u << 16,   1u << 20,
                                         1u << 31,   0xffff'ffffu,
                                         1ull << 32, 1ull << 47,
                                         1ull << 63, (1ull << 63) - 1,
                                         ~0ull,      ~0ull - 4095,
                                         ~0ull - 63, ~0ull / 3};

void append_frame(std::vector<std::byte>& to, wire::frame_header header, std::span<const std::byte> payload) {
  header.size = static_cast<std::uint32_t>(payload.size());
  std::array<std::byte, wire::header_size> raw;
  wire::encode_header(header, raw);
  to.insert(to.end(), raw.begin(), raw.end());
  to.insert(to.end(), payload.begin(), payload.end());
}

/// One change of a request's body, at a word or a byte of it.
void change(std::vector<std::byte>& body, wire::reader& r) {
  const auto where = r.get<std::uint8_t>(), how = r.get<std::uint8_t>(), what = r.get<std::uint8_t>();
  const std::size_t word_at = where ^ '0', at = how & 0x80 ? word_at : word_at * 8;
  std::uint64_t word = what;
  std::size_t size = 8;
  switch (how & 7) {
    case 0:
      word = odd_numbers[what % std::size(odd_numbers)];
      break;
    case 1:  // another object, perhaps one that is none
      word =
          wire::handle::make(static_cast<std::uint8_t>(32 + (how >> 3 & 15) % 10), what & 15, 1 + (what >> 7))
              .value;
      break;
    case 2:
      word = fuzz::shared_address(what & 3) + odd_numbers[what >> 3];
      break;
    case 3:
      size = 1;
      break;
    case 4:
      return body.resize(std::min(body.size(), at));
    case 5:
      return body.resize(std::min<std::size_t>(body.size() + what, 1u << 16), std::byte{how});
    case 6:
      word = odd_numbers[what % std::size(odd_numbers)], size = 4;
      break;
    default:
      word = r.get<std::uint64_t>();
      break;
  }
  if (at + size > body.size()) return;
  std::memcpy(body.data() + at, &word, size);
}

std::vector<std::byte> client_bytes(std::span<const std::byte> input) {
  if (input.empty() || input[0] == std::byte{0}) return {input.begin(), input.end()};
  const fuzz::examples& known = fuzz::opencl_requests();
  std::vector<std::byte> out;
  wire::frame_header header;
  const auto add = [&](const fuzz::example& request, std::uint32_t lane, bool posted,
                       std::span<const std::byte> body) {
    header.kind = posted ? wire::frame_kind::post : wire::frame_kind::call;
    header.lane = lane;
    header.opcode = request.opcode;
    ++header.ticket;
    append_frame(out, header, body);
  };
  for (std::size_t i = 0; i < known.first; ++i) add(known.all[i], 1, false, known.all[i].body);
  wire::reader r(input.subspan(1));
  while (r.ok() && !r.rest().empty()) {
    const fuzz::example& request = known.all[r.get<std::uint8_t>() % known.all.size()];
    const auto flags = r.get<std::uint8_t>();
    std::vector<std::byte> body = request.body;
    for (int changes = (flags >> 4 & 7) ^ 3; changes > 0 && r.ok(); --changes) change(body, r);
    add(request, 1 + flags % 3, (flags & 8) != 0, body);
  }
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  log::set_level(log::level::error);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::begin_anew();
  const std::vector<std::byte> bytes = client_bytes(std::as_bytes(std::span(data, size)));
  auto loopback = transport::make_loopback();
  auto listener = loopback->listen("s", {});
  std::unique_ptr<transport::connection> server_end;
  std::thread accepting([&] {
    auto accepted = (*listener)->accept(transport::no_deadline);
    if (accepted) server_end = std::move(*accepted);
  });
  auto client = loopback->connect("s", transport::no_deadline);
  accepting.join();
  static const api::opencl::function_table table = fuzz::platform_table();
  backend::opencl::session api(table);
  std::thread serving([&] {
    backend::session_request request;
    request.connection = std::move(server_end);
    request.id = 1;
    request.api = &api;
    CHECK(!backend::serve_session(std::move(request)).stuck);
  });
  std::thread reading([&] {
    std::array<std::byte, 4096> sink;
    while ((*client)->receive(sink).status == transport::io::done) {
    }
  });
  const iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
  if (!bytes.empty())
    (void)(*client)->send(std::span(&part, 1), transport::clock::now() + std::chrono::seconds(5));
  (*client)->shutdown();  // what was sent is read before the end is seen
  serving.join();
  reading.join();
  fuzz::finish_all();  // commands under way find their bytes, whatever has been closed meanwhile
  return 0;
}
