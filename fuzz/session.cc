// A whole session in a worker: welcome, frames, lanes, decoding, handlers, on the mock device. The input is
// either the client's bytes as they are (first byte 0) or a list of requests whose headers are made well
// here, so that the fuzzer spends its time behind them: {kind, function (2), lane, length (2), body}. Some
// have a body that is whole as well: its fields are taken from the input as far as that goes.

#include "backend/cuda/session.hh"
#include "device/mock/mock.hh"
#include "marshal/cuda/messages.hh"
#include "whole_session.hh"
#include "wire/handle.hh"

using namespace outboard;

namespace {

constexpr std::uint64_t context = wire::handle::make(1, 0, 1).value;

device::mock::mock_device& the_mock() {
  static const std::unique_ptr<device::mock::mock_device> mock = [] {
    auto opened = device::mock::open();
    CHECK(opened.ok());
    (*opened)->cuda().cuInit(0);
    (*opened)->set_total_memory(64u << 20);
    return std::move(*opened);
  }();
  return *mock;
}

template <class Request>
void put_whole(wire::reader& from, wire::writer& to) {
  marshal::put_body(to, marshal::take_body<marshal::body_of<Request>>(from));
  if constexpr (!marshal::plain_form<Request>) to.bytes(from.rest());
}

struct hand_written {
  std::uint32_t code;
  void (*put)(wire::reader& from, wire::writer& to);
};

constexpr hand_written requests[] = {
#define CHAPTER(number, file)
#define OUTBOARD_LINE(how, symbol, ...)
#define OUTBOARD_MESSAGE(symbol, request_, reply_)  \
  {static_cast<std::uint32_t>(api::opcode::symbol), \
   &put_whole<marshal::message<api::opcode::symbol>::request>},
#include "api/cuda/expand.def"
#undef OUTBOARD_LINE
#undef CHAPTER
#define SERVICE(name, number, request_, reply_) \
  {number, &put_whole<marshal::message<marshal::service::name>::request>},
#include "marshal/cuda/services.def"
#undef SERVICE
};

std::vector<std::byte> client_bytes(std::span<const std::byte> input) {
  if (input.empty() || input[0] == std::byte{0}) return {input.begin(), input.end()};
  std::vector<std::byte> out;
  std::vector<std::byte> retain;
  wire::writer w(retain);
  marshal::put_body(w, marshal::context_body{context, 0, 0});
  wire::frame_header header;
  header.kind = wire::frame_kind::call;
  header.lane = 1;
  header.ticket = 1;
  header.opcode = static_cast<std::uint32_t>(api::opcode::cuDevicePrimaryCtxRetain);
  fuzz::append_frame(out, header, retain);
  const auto functions = api::functions();
  wire::reader r(input);
  while (r.ok() && !r.rest().empty()) {
    const auto kind = r.get<std::uint8_t>();
    const auto function = r.get<std::uint16_t>();
    header.kind = kind & 1 ? wire::frame_kind::post : wire::frame_kind::call;
    header.opcode = kind & 0x80 ? function % 16u
                                : static_cast<std::uint32_t>(functions[function % functions.size()].code);
    header.lane = 1 + r.get<std::uint8_t>() % 3;
    header.context = kind & 0x40 ? 0 : context;
    ++header.ticket;
    const std::uint64_t length = std::min<std::uint64_t>(r.get<std::uint16_t>(), r.rest().size());
    std::span<const std::byte> body = r.bytes(length);
    std::vector<std::byte> whole;
    if (kind & 0x20) {
      const hand_written& request = requests[function % std::size(requests)];
      header.opcode = request.code;
      wire::reader from(body);
      wire::writer to(whole);
      request.put(from, to);
      body = whole;
    }
    fuzz::append_frame(out, header, body);
  }
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  backend::session_request request;
  request.make_api = backend::speak_cuda({.device = &the_mock()});
  (void)fuzz::serve_whole(client_bytes(std::as_bytes(std::span(data, size))), std::move(request));
  return 0;
}
