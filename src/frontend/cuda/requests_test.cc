// A request has the body that its function's line names, and no other one.
#include "frontend/cuda/requests.hh"

#include <gtest/gtest.h>

namespace outboard::frontend::cuda {
namespace {

template <auto Op, class... Body>
constexpr bool can_be_made = std::is_constructible_v<request_of<Op>, lane&, const Body&...>;

template <class Request>
constexpr bool writes_itself = requires(Request& r) {
  r.body();
};

using enum api::opcode;

static_assert(can_be_made<cuModuleUnload, marshal::handle_body>);
static_assert(!can_be_made<cuModuleUnload, marshal::unmap_body>, "of the same bytes, but another's");
static_assert(!can_be_made<cuModuleUnload>, "it has a body");
static_assert(can_be_made<cuCtxSynchronize> && !can_be_made<cuCtxSynchronize, marshal::handle_body>);
static_assert(can_be_made<cuMemcpyHtoD_v2, marshal::copy_in_body>, "the bytes come when it is posted");
static_assert(can_be_made<marshal::service::upload>);
static_assert(!writes_itself<request_of<cuModuleUnload>> && writes_itself<request_of<cuLaunchKernel>>);
static_assert(std::is_same_v<request_of<cuMemAlloc_v2>::reply_type, marshal::address_reply>);

TEST(requests, an_opcode_is_taken_by_helpers_for_requests_and_replies_of_its_kind) {
  const opcode_for<marshal::handle_body> unloads = cuModuleUnload;
  EXPECT_EQ(static_cast<api::opcode>(unloads), cuModuleUnload);
  const opcode_for<marshal::share_reply> forgets = marshal::service::share_forget;
  EXPECT_EQ(static_cast<api::opcode>(forgets), static_cast<api::opcode>(marshal::service::share_forget));
}

}  // namespace
}  // namespace outboard::frontend::cuda
