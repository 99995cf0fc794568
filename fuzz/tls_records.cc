// What is ours around TLS: records that are put together from pieces and distinguished by their type, before
// and behind an inner connection's beginning, the texts by which connections are handed over, and the file of
// known servers.
#include <algorithm>
#include <cstring>
#include <span>
#include <string_view>

#include "base/check.hh"
#include "transport/tls/connection.hh"
#include "transport/tls/handed_over.hh"
#include "transport/tls/known_servers.hh"
#include "transport/tls/library.hh"

using namespace outboard;
using namespace outboard::transport;

namespace {

/// The other end says `bytes`, in pieces of at most `piece`, and then closes.
class scripted final : public connection {
 public:
  scripted(std::span<const std::byte> bytes, std::size_t piece) : bytes_(bytes), piece_(piece) {}

  const capabilities& what() const override {
    static constexpr capabilities none{};
    return none;
  }
  io_result send(std::span<const iovec> parts, deadline) override {
    std::size_t all = 0;
    for (const iovec& part : parts) all += part.iov_len;
    return {io::done, all};
  }
  io_result receive(std::span<std::byte> into, deadline) override {
    const std::size_t n = std::min({into.size(), bytes_.size(), piece_});
    if (n == 0) return {io::closed, 0};
    std::copy_n(bytes_.begin(), n, into.begin());
    bytes_ = bytes_.subspan(n);
    return {io::done, n};
  }
  io wait_readable(deadline) override { return io::done; }
  void interrupt() override {}
  void shutdown() override {}
  std::string describe() const override { return "tcp:192.0.2.1:1"; }

 private:
  std::span<const std::byte> bytes_;
  std::size_t piece_;
};

tls::library* library() {
  static tls::library* const loaded = [] {
    auto got = tls::load();
    CHECK(got.ok());
    return *got;
  }();
  return loaded;
}

void read_all(connection& from) {
  std::array<std::byte, 700> into;
  for (int i = 0; i < 100; ++i) {
    const io_result got = from.receive(into, no_deadline);
    CHECK(got.bytes <= into.size());
    if (got.status != io::done) return;
  }
}

/// A client of a server that says this.
void as_client(std::span<const std::byte> bytes, std::size_t piece) {
  static const auto context = *library()->make_client({});
  const auto made = tls::tls_connection::open_outer(std::make_unique<scripted>(bytes, piece),
                                                    context->start("x"), no_deadline);
  CHECK(!made.ok());  // nobody proves a certificate by chance
}

/// The two ends of an inner connection, whose key nobody knows.
void as_inner(std::span<const std::byte> bytes, std::size_t piece, bool server) {
  tls::secret key{};
  key.fill(std::byte{7});
  tls::tls_connection end(std::make_unique<scripted>(bytes, piece),
                          server ? library()->start_server(key) : library()->start_client(key),
                          server ? tls::tls_connection::side::server : tls::tls_connection::side::client);
  read_all(end);
  (void)end.wait_readable(deadline::min());
}

void as_texts(std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  for (const auto& one : tls::find_known(text, "gpubox:26882"))
    CHECK(one.line > 0 && one.fingerprint.starts_with("SHA256:"));
  static const registry none;
  (void)tls::attach(none, text, unique_fd()).ok();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data) + 1, size - 1);
  const std::size_t piece = 1u + data[0] / 4u;
  switch (data[0] % 4) {
    case 0:
      as_client(bytes, piece);
      break;
    case 1:
      as_texts(bytes);
      break;
    default:
      as_inner(bytes, piece, data[0] % 4 == 2);
      break;
  }
  return 0;
}
