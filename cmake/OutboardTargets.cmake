# outboard_library(NAME [FOLDERS folder...] [USES folder...] [LIBRARIES lib...] [PRECOMPILE header... | PRECOMPILED_BY
# folder]): the *.cc of this folder, and of the folders below it that FOLDERS names, become the static library outboard_NAME, whose link list USES is
# the include rule of them all (tests/house/include_rules.py checks it); their *_test.cc become one gtest program NAME_test.
# PRECOMPILE names the headers below src/ that most of its files include; PRECOMPILED_BY a folder whose precompiled headers
# serve here, too, which saves the seconds of writing them again.
if(OUTBOARD_CLIENT)
  find_package(GTest)  # for the other machine; without it the unit tests cannot be built for that machine
else()
  find_package(GTest REQUIRED)
endif()
option(OUTBOARD_UNIT_TESTS "build the tests that stand beside the code" ON)

# The compiler reads the standard library's headers, and a room's own large ones, once for a target instead of once for a
# file, which halves the time of a build. Every file still includes what it uses; the presets gcc and tsan check this.
option(OUTBOARD_PRECOMPILE "precompile the headers that most files of a target include" ON)
set(OUTBOARD_STANDARD_HEADERS <algorithm> <array> <atomic> <chrono> <condition_variable> <cstdint> <cstring> <deque>
    <functional> <map> <memory> <mutex> <optional> <set> <span> <string> <string_view> <thread> <utility> <vector>)

# outboard_precompile(TARGET FILES header...): for a target of FILES source files; a small one gains nothing.
function(outboard_precompile target files)
  if(OUTBOARD_PRECOMPILE AND files GREATER 3)
    list(TRANSFORM ARGN REPLACE "^([^<].*)$" "${CMAKE_SOURCE_DIR}/src/\\1" OUTPUT_VARIABLE headers)
    target_precompile_headers(${target} PRIVATE ${OUTBOARD_STANDARD_HEADERS} ${headers})
  endif()
endfunction()

# outboard_precompiled_by(TARGET FOLDER): the headers that FOLDER's target precompiles; both are compiled alike.
function(outboard_precompiled_by target folder)
  if(OUTBOARD_PRECOMPILE)
    string(REPLACE "/" "_" other outboard_${folder})
    target_precompile_headers(${target} REUSE_FROM ${other})
  endif()
endfunction()

function(outboard_library name)
  cmake_parse_arguments(arg "" "PRECOMPILED_BY" "FOLDERS;USES;LIBRARIES;PRECOMPILE;TEST_USES;TEST_LIBRARIES" ${ARGN})
  string(REPLACE "/" "_" target outboard_${name})
  list(TRANSFORM arg_FOLDERS APPEND "/*.cc" OUTPUT_VARIABLE below)
  file(GLOB sources CONFIGURE_DEPENDS *.cc ${below})
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  if(sources)
    add_library(${target} STATIC ${sources})
    set(scope PUBLIC)
    list(LENGTH sources files)
    if(arg_PRECOMPILED_BY)
      outboard_precompiled_by(${target} ${arg_PRECOMPILED_BY})
    else()
      outboard_precompile(${target} ${files} ${arg_PRECOMPILE})
    endif()
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
  if(tests)
    string(REPLACE "/" "_" test_target ${name}_test)
    set(when_asked "")
    # The fuzz preset is for fuzz targets and a client's preset for libraries; the others run the tests.
    if(OUTBOARD_FUZZ OR OUTBOARD_CLIENT OR NOT OUTBOARD_UNIT_TESTS)
      set(when_asked EXCLUDE_FROM_ALL)
    endif()
    add_executable(${test_target} ${when_asked} ${tests})
    list(LENGTH tests files)
    outboard_precompile(${test_target} ${files} <gtest/gtest.h> <gmock/gmock.h> ${arg_PRECOMPILE})
    target_link_libraries(${test_target} PRIVATE ${target} ${arg_TEST_LIBRARIES}
      $<TARGET_NAME_IF_EXISTS:GTest::gmock> $<TARGET_NAME_IF_EXISTS:GTest::gtest_main>)
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

# outboard_seal(LIBRARY): for shared objects that are loaded into other people's programs. Nothing of ours leaks: only what
# exports.map of this folder names leaves; the C++ run time and the rest are inside.
function(outboard_seal library)
  target_include_directories(${library} PRIVATE ${CMAKE_SOURCE_DIR}/src)
  target_link_options(${library} PRIVATE
    -Wl,--version-script=${CMAKE_CURRENT_SOURCE_DIR}/exports.map -Wl,--exclude-libs,ALL -Wl,-Bsymbolic
    -static-libstdc++ -static-libgcc)
  set_target_properties(${library} PROPERTIES LINK_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/exports.map)
  # clang puts TSan's run time into programs only, so a shared library refers to symbols that its program will bring.
  if(NOT OUTBOARD_SANITIZE MATCHES "thread")
    target_link_options(${library} PRIVATE -Wl,-z,defs)
  endif()
  # A sanitizer must see the newer names itself, and its run time needs a new C library anyway. In an older glibc the two
  # libraries have what OLDER() asks for; a newer one keeps them as empty shells.
  if(NOT OUTBOARD_SANITIZE)
    target_sources(${library} PRIVATE $<TARGET_OBJECTS:outboard_shim_floor>)
    target_link_options(${library} PRIVATE
      -Wl,--push-state,--no-as-needed -l:libpthread.so.0 -l:libdl.so.2 -Wl,--pop-state)
  endif()
endfunction()
