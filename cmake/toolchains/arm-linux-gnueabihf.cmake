# 32-bit ARM with hardware floating point (ARMv7): OpenCL alone
set(triplet arm-linux-gnueabihf)
set(architecture armhf)
set(machine armv7l)
include(${CMAKE_CURRENT_LIST_DIR}/cross.cmake)
