// A program's front-end against a server that lies: replies, bytes of copies, callbacks and notices of an
// honest session, changed as the input says (hostile_server.cc), while the program makes the calls of
// frontend_calls.cc. Nothing may crash, and nothing may leave that the program did not pass.
#include <cstdio>
#include <cstdlib>

#include "base/check.hh"
#include "base/log.hh"
#include "frontend/cuda/entry.hh"
#include "frontend_calls.hh"
#include "hostile_server.hh"

using namespace outboard;

namespace {

/// The first connection is made by the front-end itself, with greeting and hello.
class first_connection {
 public:
  static std::unique_ptr<transport::connection> take_near() { return std::move(ends().near); }
  static std::unique_ptr<transport::connection> take_far() { return std::move(ends().far); }

 private:
  static fuzz::both_ends& ends() {
    static fuzz::both_ends made = fuzz::connect_here();
    return made;
  }
};

/// A transport with the one connection that was made before.
class one_connection final : public transport::transport {
 public:
  std::string_view scheme() const override { return "fuzz"; }
  status check(std::string_view) const override { return {}; }
  result<std::unique_ptr<outboard::transport::connection>> connect(std::string_view,
                                                                   outboard::transport::deadline) override {
    auto near = first_connection::take_near();
    if (!near) return failure("there is one connection only");
    return near;
  }
  result<std::unique_ptr<outboard::transport::listener>> listen(
      std::string_view, const outboard::transport::listen_options&) override {
    return failure("nothing listens here");
  }
};

status add_transport(transport::registry& to, const std::vector<std::pair<std::string, std::string>>&) {
  to.add(std::make_unique<one_connection>());
  return {};
}

/// Greets the client and returns its hello.
wire::hello greet(transport::connection& client) {
  wire::greeting greeting;
  greeting.product = "fuzz";
  greeting.features = 0;
  CHECK(fuzz::send_frame(client, {.kind = wire::frame_kind::greeting}, wire::encode(greeting)));
  wire::frame_header header;
  std::vector<std::byte> payload;
  CHECK(fuzz::receive_frame(client, header, payload));
  auto hello = wire::decode_hello(payload);
  CHECK(hello.ok());
  return std::move(*hello);
}

frontend::server_connection& connection() { return frontend::process::instance().connection; }

/// The front-end, connected once; each input's session continues it.
const wire::hello& begin() {
  static const wire::hello hello = [] {
    ::setenv("OUTBOARD_SERVER", "fuzz:here", 1);
    ::setenv("OUTBOARD_CONCURRENT_MANAGED", "0", 1);
    ::setenv("OUTBOARD_CONFIG", "/dev/null", 1);
    log::set_sink([](log::level, std::string_view) {});
    CHECK(std::freopen("/dev/null", "w", stdout) != nullptr);  // what the device prints
    connection().boot({add_transport, [](std::string_view) -> void* { return nullptr; }, [] {}});
    wire::hello from_client;
    std::unique_ptr<fuzz::hostile_server> honest;
    std::thread serving([&] {
      auto client = first_connection::take_far();
      from_client = greet(*client);
      honest = std::make_unique<fuzz::hostile_server>(std::move(client), from_client,
                                                      std::span<const std::byte>(), true);
    });
    CHECK(frontend::cuda::ends::cuInit(0) == CUDA_SUCCESS);
    serving.join();
    connection().server()->goodbye();
    return from_client;
  }();
  return hello;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace frontend::cuda;
  const wire::hello& hello = begin();
  fuzz::both_ends ends = fuzz::connect_here();
  fuzz::hostile_server server(std::move(ends.far), hello, std::as_bytes(std::span(data, size)), false);
  connection().server()->resume_on(std::move(ends.near));
  fuzz::forget_calls();
  CUcontext context = nullptr;
  (void)ends::cuDevicePrimaryCtxRetain(&context, 0);
  (void)ends::cuCtxSetCurrent(context);
  server.begin_lying();
  fuzz::make_calls();
  connection().server()->goodbye();
  return 0;
}
