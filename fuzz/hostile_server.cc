#include "hostile_server.hh"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "backend/cuda/cuda_session.hh"
#include "backend/session/session.hh"
#include "base/check.hh"
#include "marshal/cuda/bodies.hh"
#include "marshal/data_bodies.hh"
#include "small_mock.hh"
#include "transport/loopback/loopback.hh"
#include "wire/cursor.hh"

namespace outboard::fuzz {
namespace {

/// Numbers at the edges of what readers check.
constexpr std::uint64_t odd_numbers[] = {0,
                                         1,
                                         7,
                                         8,
                                         4095,
                                         4096,
                                         32765,
                                         65536,
                                         1u << 21,
                                         0x7fffffff,
                                         0xffffffff,
                                         1ull << 32,
                                         1ull << 47,
                                         0x7fffffffffffffff,
                                         0xfffffffffffffff8,
                                         0xffffffffffffffff};

bool receive(transport::connection& from, std::span<std::byte> into) {
  return transport::receive_whole(from, into) == transport::io::done;
}

}  // namespace

both_ends connect_here() {
  const auto loopback = transport::make_loopback();
  auto listener = loopback->listen("s", {});
  both_ends ends;
  std::thread accepting([&] {
    auto accepted = (*listener)->accept(transport::no_deadline);
    if (accepted) ends.far = std::move(*accepted);
  });
  auto connected = loopback->connect("s", transport::no_deadline);
  accepting.join();
  CHECK(connected.ok() && ends.far);
  ends.near = std::move(*connected);
  return ends;
}

bool receive_frame(transport::connection& from, wire::frame_header& header, std::vector<std::byte>& payload) {
  std::array<std::byte, wire::header_size> raw;
  if (!receive(from, raw)) return false;
  const auto decoded = wire::decode_header(raw, wire::max_frame_payload);
  if (!decoded) return false;
  header = *decoded;
  payload.resize(header.size);
  return receive(from, payload);
}

bool send_frame(transport::connection& to, const wire::frame_header& header,
                std::span<const std::byte> payload) {
  wire::frame_header sized = header;
  sized.size = static_cast<std::uint32_t>(payload.size());
  std::array<std::byte, wire::header_size> raw;
  wire::encode_header(sized, raw);
  const std::array parts{iovec{raw.data(), raw.size()},
                         iovec{const_cast<std::byte*>(payload.data()), payload.size()}};
  return to.send(parts).status == transport::io::done;
}

/// One change: what happens to which of the server's frames.
struct hostile_server::change {
  std::uint8_t skip = 0;  ///< frames that pass first
  std::uint8_t what = 0;
  std::uint16_t at = 0;
  std::uint8_t number = 0;
  std::span<const std::byte> bytes;
};

hostile_server::hostile_server(std::unique_ptr<transport::connection> client, const wire::hello& hello,
                               std::span<const std::byte> input, bool welcomes)
    : client_(std::move(client)), input_(input) {
  both_ends inner = connect_here();
  server_ = std::move(inner.near);
  serving_ = std::thread([hello, connection = std::move(inner.far)]() mutable {
    backend::cuda_session api(small_mock());
    backend::session_request request;
    request.connection = std::move(connection);
    request.hello = hello;
    request.id = 1;
    request.api = &api;
    CHECK(!backend::serve_session(std::move(request)).stuck);
  });
  to_client_ = std::thread([this, welcomes] { pass_to_client(welcomes); });
  to_server_ = std::thread([this] { pass_to_server(); });
}

hostile_server::~hostile_server() {
  to_server_.join();
  to_client_.join();
  serving_.join();
}

void hostile_server::pass_to_server() {
  wire::frame_header header;
  std::vector<std::byte> payload;
  while (receive_frame(*client_, header, payload)) {
    const std::string_view text(reinterpret_cast<const char*>(payload.data()), payload.size());
    if (const std::size_t at = text.find(secret); at != std::string_view::npos) {
      std::fprintf(stderr,
                   "the client gives away what nobody asked for: kind %u, opcode %u, byte %zu of %u\n",
                   static_cast<unsigned>(header.kind), header.opcode, at, header.size);
      std::abort();
    }
    if (!send_frame(*server_, header, payload)) break;
  }
  server_->shutdown();
  client_->shutdown();
}

void hostile_server::pass_to_client(bool welcomes) {
  wire::frame_header header;
  std::vector<std::byte> payload;
  if (!welcomes) (void)receive_frame(*server_, header, payload);
  change planned;
  bool any = next(planned);
  while (receive_frame(*server_, header, payload)) {
    bool goes_on = true;
    while (goes_on && any && lying_.load()) {
      if (planned.skip > 0) {
        --planned.skip;
        break;
      }
      goes_on = lie(planned, header, payload);
      any = next(planned);
    }
    if (!send_frame(*client_, header, payload) || !goes_on) break;
  }
  client_->shutdown();
  server_->shutdown();
}

bool hostile_server::next(change& into) {
  wire::reader r(input_);
  into.skip = r.get<std::uint8_t>();
  into.what = r.get<std::uint8_t>();
  into.at = r.get<std::uint16_t>();
  into.number = r.get<std::uint8_t>();
  const std::size_t length = std::min<std::size_t>(r.get<std::uint8_t>(), r.rest().size());
  into.bytes = r.bytes(length);
  if (!r.ok()) return false;
  input_ = r.rest();
  return true;
}

/// False: the client would wait for what this frame no longer is, so the connection ends behind it.
bool hostile_server::lie(const change& how, wire::frame_header& header, std::vector<std::byte>& payload) {
  const std::size_t at = payload.empty() ? 0 : how.at % payload.size();
  switch (how.what % 8) {
    case 0:  // other bytes
      std::copy_n(how.bytes.begin(), std::min(how.bytes.size(), payload.size() - at), payload.begin() + at);
      return true;
    case 1: {  // an odd number
      const std::uint64_t number = odd_numbers[how.number % std::size(odd_numbers)];
      const std::size_t width = std::min<std::size_t>(how.number & 0x10 ? 4 : 8, payload.size() - at);
      std::copy_n(reinterpret_cast<const std::byte*>(&number), width, payload.begin() + at);
      return true;
    }
    case 2:
      payload.resize(at);
      return true;
    case 3:
      payload.insert(payload.end(), how.bytes.begin(), how.bytes.end());
      return true;
    case 4:
      payload.assign(how.bytes.begin(), how.bytes.end());
      return true;
    case 5:  // another header
      header.kind = static_cast<wire::frame_kind>(how.number % 20);
      header.ticket += how.at & 0xff;
      header.context ^= how.at >> 8;
      return false;
    default:
      return insert(how, header);
  }
}

/// A frame of its own before this one, with the parts that a client looks at made well.
bool hostile_server::insert(const change& how, const wire::frame_header& header) {
  std::vector<std::byte> payload;
  wire::writer w(payload);
  wire::frame_header made;
  const std::uint64_t ticket = header.ticket - (how.number & 3);
  switch (how.number >> 2 & 7) {
    case 0:
    case 1:  // bytes of a copy
      made.kind = wire::frame_kind::data;
      w.put(ticket);
      w.put(how.at == 0xffff ? wire::copy_failed : std::uint64_t{how.at});
      w.bytes(how.bytes);
      break;
    case 2:  // of a copy in a graph
      made.kind = wire::frame_kind::data;
      w.put(wire::graph_copy | (how.number & 3));
      w.put(std::uint64_t{how.at});
      w.bytes(how.bytes);
      break;
    case 3:
      made.kind = wire::frame_kind::callback;
      made.ticket = how.number >> 7;
      marshal::put_body(w, marshal::callback_body{.what = static_cast<marshal::errand>(how.at % 4),
                                                  .id = how.at / 4 % 16u,
                                                  .status = 0,
                                                  .last = (how.number & 1) != 0,
                                                  .wanted = {how.at % 16u, how.at / 16 % 16u}});
      break;
    case 4:
      made.kind = wire::frame_kind::aside;
      marshal::put_body(w, marshal::aside_body{ticket, how.at, how.number, 1, 1});
      break;
    case 5:
      made.kind = wire::frame_kind::notice;
      made.context = header.context;
      w.put(std::int32_t{how.at});
      break;
    default:
      made.kind = static_cast<wire::frame_kind>(how.at % 20);
      made.ticket = ticket;
      w.bytes(how.bytes);
      break;
  }
  return send_frame(*client_, made, payload);
}

}  // namespace outboard::fuzz
