# outboard_library(NAME [FOLDERS inner...] [APART inner<inner...] [USES folder...] [LIBRARIES lib...] [PRECOMPILE header...]):
# the folder's *.cc and those of the inner folders that it names become the static library outboard_NAME, whose link list
# USES is the include rule of them all; APART keeps two of its inner folders apart (tests/house/include_rules.py checks
# both). Their *_test.cc become one gtest program NAME_test. PRECOMPILE: headers below src/ that most of its files include.
if(OUTBOARD_CLIENT)
  find_package(GTest)  # of the other machine: without it the tests beside the code cannot be built for it
else()
  find_package(GTest REQUIRED)
endif()
option(OUTBOARD_UNIT_TESTS "build the tests that stand beside the code" ON)

# Two thirds of a compilation are reading headers: those of a large folder are read once for the folder. Each file includes
# what it uses all the same: the presets fuzz (the product) and tsan (tests, too) compile without.
option(OUTBOARD_PRECOMPILE "read the headers of a large folder once" ON)
set(OUTBOARD_STANDARD_HEADERS <algorithm> <array> <atomic> <chrono> <cstdint> <cstring> <functional> <map> <memory> <mutex>
    <optional> <set> <span> <string> <string_view> <thread> <utility> <vector>)

# outboard_precompile(TARGET header...): below src/, or <of the system>. What CMake writes of them names no checkout, so that
# the compiler's cache knows it in every one.
function(outboard_precompile target)
  if(OUTBOARD_PRECOMPILE AND NOT CMAKE_CROSSCOMPILING)
    list(TRANSFORM ARGN REPLACE "^([^<].*)$" "<\\1>" OUTPUT_VARIABLE headers)
    target_precompile_headers(${target} PRIVATE ${OUTBOARD_STANDARD_HEADERS} ${headers})
  endif()
endfunction()

# outboard_precompile_tests(TARGET): what all tests read, read once for all of them.
function(outboard_precompile_tests target)
  if(NOT OUTBOARD_PRECOMPILE OR CMAKE_CROSSCOMPILING)
    return()
  endif()
  if(NOT TARGET test_headers)
    file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/test_headers.cc CONTENT "int main() {}\n")
    add_executable(test_headers EXCLUDE_FROM_ALL ${PROJECT_BINARY_DIR}/test_headers.cc)
    target_link_libraries(test_headers PRIVATE GTest::gmock Threads::Threads)
    target_precompile_headers(test_headers PRIVATE ${OUTBOARD_STANDARD_HEADERS} <gtest/gtest.h> <gmock/gmock.h>)
  endif()
  target_precompile_headers(${target} REUSE_FROM test_headers)
endfunction()

function(outboard_library name)
  cmake_parse_arguments(arg "" "" "APART;FOLDERS;USES;LIBRARIES;PRECOMPILE;TEST_USES;TEST_LIBRARIES" ${ARGN})
  string(REPLACE "/" "_" target outboard_${name})
  set(patterns *.cc)
  foreach(folder ${arg_FOLDERS})
    list(APPEND patterns ${folder}/*.cc)
  endforeach()
  file(GLOB sources CONFIGURE_DEPENDS ${patterns})
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  if(sources)
    add_library(${target} STATIC ${sources})
    set(scope PUBLIC)
  else()
    add_library(${target} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(${target} ${scope} ${CMAKE_SOURCE_DIR}/src)
  foreach(folder ${arg_USES})
    string(REPLACE "/" "_" dependency outboard_${folder})
    target_link_libraries(${target} ${scope} ${dependency})
  endforeach()
  target_link_libraries(${target} ${scope} ${arg_LIBRARIES} Threads::Threads)
  if(arg_PRECOMPILE)
    outboard_precompile(${target} ${arg_PRECOMPILE})
  endif()
  # A precompiled header is in every file: what is kept apart from some of it is compiled without.
  foreach(pair ${arg_APART})
    string(REGEX REPLACE "<.*" "" folder ${pair})
    file(GLOB apart CONFIGURE_DEPENDS ${folder}/*.cc)
    set_source_files_properties(${apart} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
  endforeach()
  if(tests)
    string(REPLACE "/" "_" test_target ${name}_test)
    set(when_asked "")
    # The fuzz preset is for its fuzz targets, a client's for its libraries; the others run the tests.
    if(OUTBOARD_FUZZ OR OUTBOARD_CLIENT OR NOT OUTBOARD_UNIT_TESTS)
      set(when_asked EXCLUDE_FROM_ALL)
    endif()
    add_executable(${test_target} ${when_asked} ${tests})
    target_link_libraries(${test_target} PRIVATE ${target} ${arg_TEST_LIBRARIES}
      $<TARGET_NAME_IF_EXISTS:GTest::gmock> $<TARGET_NAME_IF_EXISTS:GTest::gtest_main>)
    if(arg_PRECOMPILE)
      outboard_precompile(${test_target} <gtest/gtest.h> <gmock/gmock.h> ${arg_PRECOMPILE})
    else()
      outboard_precompile_tests(${test_target})
    endif()
    foreach(folder ${arg_TEST_USES})
      string(REPLACE "/" "_" dependency outboard_${folder})
      target_link_libraries(${test_target} PRIVATE ${dependency})
    endforeach()
    if(NOT when_asked)
      add_test(NAME ${test_target} COMMAND ${test_target})
      set_tests_properties(${test_target} PROPERTIES TIMEOUT 300)
    endif()
  endif()
endfunction()

# outboard_seal(LIBRARY [MAP]): for shared objects that are loaded into programs of others. Nothing of ours leaks into them:
# only what the map (exports.map of this folder) names leaves; the C++ run time and the rest are inside.
function(outboard_seal library)
  set(map ${CMAKE_CURRENT_SOURCE_DIR}/exports.map)
  if(ARGC GREATER 1)
    set(map ${ARGV1})
  endif()
  target_include_directories(${library} PRIVATE ${CMAKE_SOURCE_DIR}/src)
  target_link_options(${library} PRIVATE
    -Wl,--version-script=${map} -Wl,--exclude-libs,ALL -Wl,-Bsymbolic
    -static-libstdc++ -static-libgcc)
  set_target_properties(${library} PROPERTIES LINK_DEPENDS ${map})
  # clang's TSan run time is in programs only: there a shared library refers to what its program will bring.
  if(NOT OUTBOARD_SANITIZE MATCHES "thread")
    target_link_options(${library} PRIVATE -Wl,-z,defs)
  endif()
  # A sanitizer must see the newer names itself, and its run time wants a new C library anyway. The two libraries are where
  # an older glibc has what OLDER() asks for; a newer one keeps them as empty shells.
  if(NOT OUTBOARD_SANITIZE)
    target_sources(${library} PRIVATE $<TARGET_OBJECTS:outboard_shim_floor>)
    target_link_options(${library} PRIVATE
      -Wl,--push-state,--no-as-needed -l:libpthread.so.0 -l:libdl.so.2 -Wl,--pop-state)
  endif()
endfunction()
