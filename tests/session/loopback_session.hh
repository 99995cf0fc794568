// Both ends of a session in one process over loopback, with the mock device (or one that a test derives from
// it): the front-end's session as the client, requests made by hand. A test owns it.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "backend/cuda/session.hh"
#include "backend/session/session.hh"
#include "device/mock/mock.hh"
#include "frontend/session.hh"
#include "marshal/cuda/bodies.hh"
#include "marshal/cuda/image.hh"
#include "marshal/cuda/snapshot.hh"
#include "marshal/request.hh"
#include "transport/faulty.hh"
#include "transport/loopback/loopback.hh"
#include "wire/handle.hh"
#include "wire/hello.hh"

namespace outboard::tests {

using namespace std::chrono_literals;
using api::opcode;

inline constexpr std::uint64_t context_handle = wire::handle::make(1, 0, 1).value;
inline constexpr std::uint64_t module_handle = wire::handle::make(2, 0, 1).value;
inline constexpr std::uint64_t function_handle = wire::handle::make(3, 0, 1).value;

class loopback_session : public testing::Test {
 protected:
  virtual device::device& used() { return *mock_; }
  virtual void adjust(backend::session_request&, backend::cuda_terms&) {}
  virtual void wrap(std::unique_ptr<transport::connection>&, std::uint64_t /*seed*/) {}

  void SetUp() override {
    auto opened = device::mock::open();
    ASSERT_TRUE(opened.ok());
    mock_ = std::move(*opened);
    ASSERT_EQ(mock_->cuda().cuInit(0), CUDA_SUCCESS);
    loopback_ = transport::make_loopback();
    auto listener = loopback_->listen("session", {});
    ASSERT_TRUE(listener.ok());
    std::thread accepting([&] {
      auto accepted = (*listener)->accept(transport::clock::now() + 5s);
      ASSERT_TRUE(accepted.ok());
      server_end_ = std::move(*accepted);
    });
    auto connected = loopback_->connect("session", transport::clock::now() + 5s);
    accepting.join();
    ASSERT_TRUE(connected.ok());
    client_end_ = std::move(*connected);
    wrap(client_end_, 1);
    wrap(server_end_, 2);
    serving_ = std::thread([this] {
      backend::session_request request;
      request.connection = std::move(server_end_);
      request.id = 1;
      backend::cuda_terms terms{.device = &used()};
      adjust(request, terms);
      request.make_api = backend::speak_cuda(terms);
      end_ = backend::serve_session(std::move(request));
    });
    read_welcome();
  }

  void TearDown() override {
    if (session_) session_->goodbye();
    if (client_end_) client_end_->shutdown();
    serving_.join();
  }

  void read_exactly(std::span<std::byte> into) {
    while (!into.empty()) {
      const auto got = client_end_->receive(into, transport::clock::now() + 5s);
      ASSERT_EQ(got.status, transport::io::done);
      into = into.subspan(got.bytes);
    }
  }

  void read_welcome() {
    std::array<std::byte, wire::header_size> raw;
    read_exactly(raw);
    const auto header = wire::decode_header(raw, wire::max_frame_payload);
    ASSERT_TRUE(header.ok());
    ASSERT_EQ(header->kind, wire::frame_kind::welcome);
    std::vector<std::byte> payload(header->size);
    read_exactly(payload);
    const auto welcome = wire::decode_welcome(payload);
    ASSERT_TRUE(welcome.ok());
    const auto snapshot = marshal::decode_snapshot(welcome->content);
    ASSERT_TRUE(snapshot.ok());
    EXPECT_EQ(snapshot->devices.size(), 1u);
  }

  void start_client() {
    frontend::session_events events;
    events.sticky_error = [this](std::uint64_t, std::int32_t code) { sticky_ = code; };
    events.output = [](int, std::string_view) {};
    events.lost = [](const std::string&) {};
    session_ = std::make_unique<frontend::session>(std::move(client_end_), std::move(events));
    ASSERT_EQ(post(1, opcode::cuDevicePrimaryCtxRetain, marshal::context_body{context_handle, 0, 0}, 0),
              CUDA_SUCCESS);
  }

  template <class Body>
  static std::vector<std::byte> encoded(const Body& body) {
    std::vector<std::byte> payload;
    wire::writer w(payload);
    marshal::put_body(w, body);
    return payload;
  }
  template <opcode Op, class... A>
  static std::vector<std::byte> generated(std::uint64_t created, A... arguments) {
    std::vector<std::byte> payload;
    wire::writer w(payload);
    marshal::encode_request<Op>(w, created, arguments...);
    return payload;
  }

  frontend::outgoing request(std::uint32_t lane, opcode code, std::span<const std::byte> payload,
                             std::uint64_t context = context_handle) {
    return {static_cast<std::uint32_t>(code), lane, context, payload, {}};
  }
  template <class Body>
  CUresult post(std::uint32_t lane, opcode code, const Body& body, std::uint64_t context = context_handle) {
    const auto payload = encoded(body);
    return session_->post(request(lane, code, payload, context));
  }
  CUresult call(std::uint32_t lane, opcode code, std::span<const std::byte> payload,
                std::vector<std::byte>* out = nullptr) {
    std::vector<std::byte> reply;
    const CUresult result = session_->call(request(lane, code, payload), reply);
    if (out) *out = reply;
    return result;
  }
  CUresult synchronize(std::uint32_t lane) { return call(lane, opcode::cuCtxSynchronize, {}); }

  /// A module with the kernel k, whose text this is.
  void load(std::string_view kernel) {
    const std::string ptx = ".version 7.0\n.target sm_70\n.address_size 64\n" + std::string(kernel);
    std::vector<std::byte> text(ptx.size() + 1, std::byte{0});
    std::memcpy(text.data(), ptx.data(), ptx.size());
    const auto view = marshal::image_extent(std::span<const std::byte>(text));
    ASSERT_TRUE(view.ok());
    const auto image = marshal::module_image::select(*view, {9, 0, false, false});
    ASSERT_TRUE(image.ok());
    frontend::outgoing upload{
        static_cast<std::uint32_t>(marshal::service::upload), 1, context_handle, {}, {}};
    upload.bulk = image->encoded();
    ASSERT_EQ(session_->post(upload), CUDA_SUCCESS);
    ASSERT_EQ(call(1, opcode::cuModuleLoadData,
                   encoded(marshal::load_body{module_handle, image->encoded().size(), 9, 0, false, {}})),
              CUDA_SUCCESS);
    ASSERT_EQ(call(1, opcode::cuModuleGetFunction,
                   encoded(marshal::derive_body{module_handle, function_handle, "k"})),
              CUDA_SUCCESS);
  }
  /// Of the kernel k; `blocks` tells one launch from another.
  CUresult launch(std::uint32_t lane, std::uint64_t on, std::uint32_t blocks) {
    marshal::launch_body body;
    body.kernel = function_handle;
    body.stream = on;
    body.grid = {blocks, 1, 1};
    body.block = {32, 1, 1};
    return post(lane, opcode::cuLaunchKernel, body);
  }

  std::uint64_t event(std::uint32_t index) { return wire::handle::make(7, index, 1).value; }
  CUresult create_event(std::uint32_t lane, std::uint32_t index) {
    CUevent out = nullptr;
    const auto payload = generated<opcode::cuEventCreate>(event(index), &out, 0u);
    return session_->post(request(lane, opcode::cuEventCreate, payload));
  }

  std::unique_ptr<device::mock::mock_device> mock_;
  std::unique_ptr<transport::transport> loopback_;
  std::unique_ptr<transport::connection> server_end_, client_end_;
  std::unique_ptr<frontend::session> session_;
  std::thread serving_;
  backend::session_end end_;
  std::atomic<std::int32_t> sticky_{0};
};

}  // namespace outboard::tests
