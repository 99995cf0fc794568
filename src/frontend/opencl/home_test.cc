#include "frontend/opencl/home.hh"

#include <gtest/gtest.h>

#include "frontend/opencl/objects.hh"

namespace outboard::frontend::opencl {
namespace {

peer* const first = reinterpret_cast<peer*>(16);
peer* const second = reinterpret_cast<peer*>(32);

TEST(home, an_object_names_the_back_end_where_it_was_made) {
  EXPECT_EQ(home_of_call(), nullptr);
  cell* made = nullptr;
  {
    const at_home here(first);
    made = make(handle_kind::cl_context, std::make_unique<object>());
    {
      const at_home there(second);
      EXPECT_EQ(home_of_call(), second);
      const at_home again(made);
      EXPECT_EQ(home_of_call(), first);
    }
    EXPECT_EQ(home_of_call(), first);
  }
  EXPECT_EQ(home_of_call(), nullptr);
  discard(*made);
  // An object that has been released changes nothing.
  const at_home here(second);
  const at_home dead(made);
  EXPECT_EQ(home_of_call(), second);
}

}  // namespace
}  // namespace outboard::frontend::opencl
