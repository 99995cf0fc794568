// The daemon's handshake as it meets a stranger's bytes, cut anywhere, and the control messages that a worker
// (which runs a stranger's program) sends to the daemon.
#include <algorithm>
#include <span>
#include <string_view>

#include "backend/daemon/control.hh"
#include "backend/daemon/handshake.hh"
#include "base/check.hh"

using namespace outboard;

namespace {

void shake(std::span<const std::byte> bytes, std::size_t piece) {
  static const wire::token_verifier verifier =
      wire::verifier_of(std::as_bytes(std::span(std::string_view("sixteen bytes or more"))));
  static const backend::token_finder tokens = [](const wire::token_id&) { return std::optional(verifier); };
  static const backend::credential_reader credentials = [](const std::string& shown) -> result<munge::claim> {
    if (shown.empty()) return failure("it is empty");
    return munge::claim{1, 1, std::vector<std::byte>(64)};
  };
  const bool asks = piece % 2 == 1, by_munge = piece % 3 == 0;
  backend::handshake h(asks ? &tokens : nullptr, {});
  if (by_munge) h.take_credentials(credentials);
  auto now = backend::handshake::state::wants_bytes;
  while (now == backend::handshake::state::wants_bytes && !bytes.empty()) {
    const auto room = h.wanted();
    CHECK(!room.empty() && room.size() <= wire::max_hello_payload);
    const std::size_t n = std::min({room.size(), bytes.size(), piece});
    std::copy_n(bytes.begin(), n, room.begin());
    bytes = bytes.subspan(n);
    now = h.advance(n);
  }
  if (now == backend::handshake::state::refused) CHECK(!h.refusal().message.empty());
  // Nobody finds the proof of a token by chance, nor has a credential for this hello.
  if (asks || by_munge) CHECK(now != backend::handshake::state::accepted);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data) + 1, size - 1);
  switch (data[0] % 8) {
    case 0:
      (void)backend::decode_assign(bytes).ok();
      break;
    case 1:
      (void)backend::decode_ready(bytes).ok();
      break;
    case 2:
      (void)backend::decode_ended(bytes).ok();
      break;
    case 3:
      (void)backend::decode_facts(bytes).ok();
      break;
    case 4:
      (void)backend::decode_text(bytes).ok();
      break;
    default:
      shake(bytes, 1u + data[0] / 8u);
      break;
  }
  return 0;
}
