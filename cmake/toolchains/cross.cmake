# Shared by the toolchains in this folder: Debian's cross compiler for ${triplet}, and the Debian packages for ${architecture}
# that scripts/sysroot has unpacked. They set `triplet`, `architecture` and `machine` (the name that uname prints).
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR ${machine})
set(CMAKE_C_COMPILER ${triplet}-gcc)
set(CMAKE_CXX_COMPILER ${triplet}-g++)
set(CMAKE_LIBRARY_ARCHITECTURE ${triplet})
set(OUTBOARD_SYSROOT ${CMAKE_CURRENT_LIST_DIR}/../../build/sysroot/${architecture})
set(CMAKE_FIND_ROOT_PATH ${OUTBOARD_SYSROOT} /usr/${triplet})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(CMAKE_CXX_STANDARD_INCLUDE_DIRECTORIES ${OUTBOARD_SYSROOT}/usr/include)
