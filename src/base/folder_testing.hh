// For tests that need a folder of their own.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <string_view>

#include "base/temporary_folder.hh"

namespace outboard {

/// Provides a temporary folder for the duration of one test.
class folder_test : public testing::Test {
 protected:
  explicit folder_test(std::string_view name) : base(make_temporary_folder(name).value()) {}
  ~folder_test() override { std::filesystem::remove_all(base); }

  const std::string base;
};

}  // namespace outboard
