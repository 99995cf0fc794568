# Language floor, warnings and sanitizers. Everything is position independent and hidden by default, because the
# same libraries end up in the front-end libraries that live in strangers' processes.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib/outboard)

option(OUTBOARD_FUZZ "build the fuzz targets (clang)" OFF)
option(OUTBOARD_CLIENT "build the front-end libraries alone, for programs on a machine of another kind" OFF)
set(OUTBOARD_SANITIZE "" CACHE STRING "value of -fsanitize= for every target")

add_compile_options(-Wall -Wextra -Wpedantic -Wshadow -Wno-unused-parameter -Werror)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options(-Wno-restrict -Wno-stringop-overflow -Wno-array-bounds)  # g++ 12 at -O3 sees overlaps in std::string's own operator+ (its bug 105651)
  # What GCC 7 changed for 32-bit ARM concerns no interface of ours between compilers; it says so 2,000 times.
  if(CMAKE_SYSTEM_PROCESSOR STREQUAL "arm")
    add_compile_options(-Wno-psabi)
  endif()
endif()
if(OUTBOARD_SANITIZE)
  add_compile_options(-fsanitize=${OUTBOARD_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  # The vendor's enums come from C programs and from newer drivers with values that our headers do not know.
  if(OUTBOARD_SANITIZE MATCHES "undefined")
    add_compile_options(-fno-sanitize=enum)
  endif()
  add_link_options(-fsanitize=${OUTBOARD_SANITIZE})
  # The front-end libraries are loaded into programs that know no sanitizer: only ASan's shared run time can be
  # preloaded there (OutboardTests.cmake), and everything of one build must use the same one.
  if(OUTBOARD_SANITIZE MATCHES "address" AND NOT OUTBOARD_FUZZ)
    set(runtime libasan.so)
    if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
      set(runtime libclang_rt.asan-${CMAKE_SYSTEM_PROCESSOR}.so)
    endif()
    execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=${runtime}
                    OUTPUT_VARIABLE OUTBOARD_ASAN_RUNTIME OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
      get_filename_component(folder ${OUTBOARD_ASAN_RUNTIME} DIRECTORY)
      add_link_options(-shared-libasan -Wl,-rpath,${folder})
    endif()
  endif()
  # g++ 12 sees variables of libstdc++ (std::variant, std::regex) that nobody has set, where the sanitizers' code stands between.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options(-Wno-maybe-uninitialized)
  endif()
endif()
if(OUTBOARD_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

# ccache, where it is installed. What one checkout has compiled serves every other one on the machine, in any folder:
# without these settings the checkout's absolute name is part of each key. Paths below the checkout are passed to
# compilers as relative ones, and the folder that debug information names may be another checkout's. Files that use a
# precompiled header are served only if ccache may look at that header instead of the macros in it; and it remembers what a
# header is by its inode, else it reads 180 MB of such a header for each file.
find_program(CCACHE ccache)
set(OUTBOARD_CCACHE "")
if(CCACHE)
  set(OUTBOARD_CCACHE env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_INODECACHE=1 ${CCACHE})
  list(TRANSFORM OUTBOARD_CCACHE REPLACE "^${CCACHE}$" ${CMAKE_SOURCE_DIR}/cmake/compile
       OUTPUT_VARIABLE CMAKE_CXX_COMPILER_LAUNCHER)
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    set(CMAKE_CXX_COMPILE_OPTIONS_USE_PCH -include-pch <PCH_FILE>)  # as CMake has it ccache would not understand it
  endif()
  set(CMAKE_C_COMPILER_LAUNCHER ${OUTBOARD_CCACHE})
endif()
find_package(Threads REQUIRED)
if(CMAKE_SIZEOF_VOID_P EQUAL 4)
  add_compile_definitions(_FILE_OFFSET_BITS=64)
endif()

# The compressors are linked statically everywhere: the front-end libraries must bring them along (a program may carry
# others), and a back-end binary then runs on machines without the packages.
find_library(OUTBOARD_ZSTD NAMES libzstd.a REQUIRED)
find_library(OUTBOARD_LZ4 NAMES liblz4.a REQUIRED)
