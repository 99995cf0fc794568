// The mock device of targets that run whole sessions: one for the process, with so little memory that inputs
// reach the end of it.
#pragma once

#include <memory>

#include "base/check.hh"
#include "device/mock/mock.hh"

namespace outboard::fuzz {

inline device::mock::mock_device& small_mock() {
  static const std::unique_ptr<device::mock::mock_device> mock = [] {
    auto opened = device::mock::open();
    CHECK(opened.ok());
    (*opened)->cuda().cuInit(0);
    (*opened)->set_total_memory(64u << 20);
    return std::move(*opened);
  }();
  return *mock;
}

}  // namespace outboard::fuzz
