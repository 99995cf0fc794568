// A whole session in a worker: welcome, frames, lanes, decoding, handlers, on the mock device. The input is
// either the client's bytes as they are (first byte 0) or a list of requests whose headers are made well
// here, so that the fuzzer spends its time behind them: {kind, function (2), lane, length (2), body}.
#include <thread>

#include "backend/session.hh"
#include "device/mock/mock.hh"
#include "marshal/bodies.hh"
#include "transport/loopback/loopback.hh"
#include "wire/frame.hh"
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

void append_frame(std::vector<std::byte>& to, wire::frame_header header, std::span<const std::byte> payload) {
  header.size = static_cast<std::uint32_t>(payload.size());
  std::array<std::byte, wire::header_size> raw;
  wire::encode_header(header, raw);
  to.insert(to.end(), raw.begin(), raw.end());
  to.insert(to.end(), payload.begin(), payload.end());
}

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
  append_frame(out, header, retain);
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
    append_frame(out, header, r.bytes(length));
  }
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
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
  std::thread serving([&] {
    backend::session_request request;
    request.connection = std::move(server_end);
    request.id = 1;
    request.device = &the_mock();
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
  return 0;
}
