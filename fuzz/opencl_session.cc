// A whole OpenCL session in a worker: welcome, frames, lanes, decoding, handlers, on a platform that ends the
// process where a real one would follow a wrong pointer (opencl_world.hh). The input is either the client's
// bytes as they are (first byte 0), or, behind the requests that make an object of each kind, a list of good
// requests (opencl_requests.hh) with changes: {which, lane and kind, {where, how, what}...}; the digits are
// requests without changes.
#include <cstdlib>
#include <cstring>

#include "backend/opencl/session.hh"
#include "backend/session/session.hh"
#include "base/log.hh"
#include "opencl_requests.hh"
#include "opencl_world.hh"
#include "whole_session.hh"
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
    fuzz::append_frame(out, header, body);
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
  static const api::opencl::function_table table = fuzz::platform_table();
  backend::session_request request;
  request.make_api = [](backend::session_core& core) {
    return std::make_unique<backend::opencl::session>(core, table);
  };
  const backend::session_end end =
      fuzz::serve_whole(client_bytes(std::as_bytes(std::span(data, size))), std::move(request));
  fuzz::finish_all();  // commands under way find their bytes, whatever has been closed meanwhile
  return 0;
}
