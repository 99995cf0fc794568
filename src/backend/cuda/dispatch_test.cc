// Which functions the back-end answers: the generated ones and those whose line names a request.
// docs/coverage.md lists them (call, post and custom without `via` or `twin`), so one that loses its handler
// changes that page.
#include <gtest/gtest.h>

#include "backend/cuda/call.hh"

namespace outboard::backend {
namespace {

TEST(dispatch, a_handler_follows_from_the_line) {
  for (const api::function_info& f : api::functions()) {
    const bool generated = f.about.how == api::kind::call || f.about.how == api::kind::post;
    EXPECT_EQ(find_handler(static_cast<std::uint32_t>(f.code)) != nullptr,
              generated || !f.about.travel.request.empty())
        << f.name;
  }
}

}  // namespace
}  // namespace outboard::backend
