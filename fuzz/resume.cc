// Whatever reads bytes for the sake of resuming: questions and answers of the handshake, the daemon's
// messages to a worker, and the records of a stream at either end, cut anywhere, with links that come and go.
#include <algorithm>
#include <span>
#include <vector>

#include "backend/session/resume_messages.hh"
#include "base/check.hh"
#include "frontend/run_report.hh"
#include "transport/resumable/stream.hh"
#include "wire/resume.hh"

using namespace outboard;

namespace {

/// Brings the bytes of one input in pieces, and then breaks or closes.
class input_link final : public transport::connection {
 public:
  input_link(std::span<const std::byte> bytes, std::size_t piece, transport::io end)
      : bytes_(bytes), piece_(piece), end_(end) {}

  const transport::capabilities& what() const override {
    static constexpr transport::capabilities all{.detachable = true};
    return all;
  }
  transport::io_result send(std::span<const iovec> parts, transport::deadline) override {
    std::size_t size = 0;
    for (const iovec& part : parts) size += part.iov_len;
    return {transport::io::done, size};
  }
  transport::io_result receive(std::span<std::byte> into, transport::deadline) override {
    if (bytes_.empty()) return {end_, 0};
    const std::size_t n = std::min({into.size(), piece_, bytes_.size()});
    std::copy_n(bytes_.begin(), n, into.begin());
    bytes_ = bytes_.subspan(n);
    return {transport::io::done, n};
  }
  transport::io wait_readable(transport::deadline) override {
    return bytes_.empty() ? end_ : transport::io::done;
  }
  void interrupt() override {}
  void shutdown() override { bytes_ = {}; }
  std::string describe() const override { return "input"; }

 private:
  std::span<const std::byte> bytes_;
  const std::size_t piece_;
  const transport::io end_;
};

/// Two links, one after the other: what comes out is never more than went in.
void read_records(std::span<const std::byte> bytes, std::uint8_t how) {
  const std::size_t piece = 1u + how % 16u, half = bytes.size() / 2;
  const auto end = how & 0x80 ? transport::io::closed : transport::io::broken;
  transport::resumable_stream stream(
      std::make_unique<input_link>(bytes.first(half), piece, end),
      {.read_ahead = how & 0x40 ? 0u : 300u, .news_every = 50, .most_kept = 4096});
  std::byte said[64] = {};
  const iovec part{said, sizeof said};
  (void)stream.send({&part, 1}, transport::deadline::min());
  std::vector<std::byte> into(how & 0x20 ? 5000 : 7);
  std::size_t got = 0;
  const auto read_all = [&] {
    while (true) {
      const auto r = stream.receive(into, transport::deadline::min());
      if (r.status != transport::io::done) break;
      CHECK(r.bytes != 0 && r.bytes <= into.size());
      got += r.bytes;
      if (how & 0x10) stream.tend();
    }
  };
  read_all();
  CHECK(got <= half);
  if (!stream.down_since()) return;
  CHECK(stream.stop_link() == got);
  const std::uint64_t peer_has = bytes.empty() ? 0 : static_cast<std::uint8_t>(bytes[0]);
  if (!stream.resume(std::make_unique<input_link>(bytes.subspan(half), piece, end), peer_has)) return;
  CHECK(peer_has <= sizeof said);
  read_all();
  CHECK(got <= bytes.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data) + 2, size - 2);
  const wire::session_secret secret{};
  switch (data[0] % 8) {
    case 0: {
      const auto m = wire::decode_resume_question(
          std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
      // The proof of a secret cannot be found by chance.
      if (m.ok()) CHECK(!wire::is_proven(*m, secret, {}));
      break;
    }
    case 1:
      CHECK(!wire::decode_resume_answer(bytes, secret, {}).ok());
      break;
    case 2:
      (void)wire::decode_resume_terms(bytes).ok();
      break;
    case 3:
      (void)backend::body_of<backend::knock_message>(bytes);
      break;
    case 4:
      (void)frontend::decode_run_message(bytes).ok();
      break;
    default:
      read_records(bytes, data[1]);
      break;
  }
  return 0;
}
