# Language version, warnings and sanitizers. Everything is position independent and hidden by default, because it becomes
# part of the front-end libraries, which are loaded into other people's programs.
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

option(OUTBOARD_FUZZ "build the fuzz targets alone, with everything that libFuzzer can observe (clang)" OFF)
option(OUTBOARD_FUZZ_TARGETS "build the fuzz targets beside the rest; libFuzzer sees which code ran, not what it compared" OFF)
option(OUTBOARD_CLIENT "build the front-end libraries alone, for programs on a machine of another kind" OFF)
set(OUTBOARD_SANITIZE "" CACHE STRING "value of -fsanitize= for every target")

add_compile_options(-Wall -Wextra -Wpedantic -Wshadow -Wno-unused-parameter -Werror)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options(-Wno-restrict -Wno-stringop-overflow -Wno-stringop-overread -Wno-array-bounds)  # g++ 12 at -O3 warns about overlaps in std::string's own operator+ (its bug 105651)
  # GCC warns 2,000 times about its change of 32-bit ARM's ABI in version 7, which affects none of our interfaces.
  if(CMAKE_SYSTEM_PROCESSOR STREQUAL "arm")
    add_compile_options(-Wno-psabi)
  endif()
endif()
if(OUTBOARD_SANITIZE)
  add_compile_options(-fsanitize=${OUTBOARD_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  # C programs and newer drivers use values of the vendor's enums that our headers do not know.
  if(OUTBOARD_SANITIZE MATCHES "undefined")
    add_compile_options(-fno-sanitize=enum)
  endif()
  add_link_options(-fsanitize=${OUTBOARD_SANITIZE})
  # The front-end libraries are loaded into programs without a sanitizer: only ASan's shared run time can be
  # preloaded there (OutboardTests.cmake), and everything of one build must use the same one.
  if(OUTBOARD_SANITIZE MATCHES "address" AND CMAKE_CXX_COMPILER_ID MATCHES "Clang" AND NOT OUTBOARD_FUZZ)
    execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=libclang_rt.asan-${CMAKE_SYSTEM_PROCESSOR}.so
                    OUTPUT_VARIABLE OUTBOARD_ASAN_RUNTIME OUTPUT_STRIP_TRAILING_WHITESPACE)
    get_filename_component(folder ${OUTBOARD_ASAN_RUNTIME} DIRECTORY)
    add_link_options(-shared-libasan -Wl,-rpath,${folder})
  endif()
endif()
# For a program that must be built without sanitizers, as users' programs are.
set(OUTBOARD_PLAIN -fno-sanitize=all)
if(OUTBOARD_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
elseif(OUTBOARD_FUZZ_TARGETS)
  add_compile_options(-fsanitize-coverage=inline-8bit-counters,pc-table)
  list(APPEND OUTBOARD_PLAIN -fno-sanitize-coverage=inline-8bit-counters,pc-table)
endif()

find_program(CCACHE ccache)
if(CCACHE)
  # ccache serves files that use a precompiled header only when it may look at the header instead of its macros. It takes
  # the files that were included from the compiler's own list: a preprocessor's run before each compilation costs a tenth.
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_DEPEND=1 ${CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${CCACHE})
endif()
find_package(Threads REQUIRED)
if(CMAKE_SIZEOF_VOID_P EQUAL 4)
  add_compile_definitions(_FILE_OFFSET_BITS=64)
endif()

# The compressors are linked statically everywhere: the front-end libraries must bring them along (a program may carry
# others), and a back-end binary then runs on machines without the packages.
find_library(OUTBOARD_ZSTD NAMES libzstd.a REQUIRED)
find_library(OUTBOARD_LZ4 NAMES liblz4.a REQUIRED)
