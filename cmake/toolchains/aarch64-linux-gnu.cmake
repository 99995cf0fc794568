# 64-bit ARM: boards, servers, Grace
set(triplet aarch64-linux-gnu)
set(architecture arm64)
set(machine aarch64)
include(${CMAKE_CURRENT_LIST_DIR}/cross.cmake)
