# Tests of the whole system and how tests are labelled.
#   (none)  in ./check, which every commit runs (.ci/run)   a few seconds at most
#   long    only in ./check --medium and --long             up to minutes
#   arm     clients on ARM, emulated                        only in ./check --medium, --long and --only arm
#   fuzz    a fuzz target's timed run                       only in ./check --medium and --long
#   soak    only in ./check --long                          many minutes
#
# outboard_system_test(NAME COMMAND command... [LABELS label...] [TIMEOUT seconds]): the command finds in its environment
#   OUTBOARD_BUILD    the build folder: bin/outboard, lib/outboard/libcuda.so.1, programs/, workloads/
#   OUTBOARD_PRELOAD  what a program that loads our front-end must have in LD_PRELOAD, empty in a plain build. With
#                     ASan the library is instrumented but the program that loads it is not, so the sanitizer's
#                     run time has to come first. `outboard run -- env LD_PRELOAD=... PROGRAM` gives it to the program.
set(OUTBOARD_PRELOAD "")
if(OUTBOARD_SANITIZE MATCHES "address" AND OUTBOARD_ASAN_RUNTIME)
  set(OUTBOARD_PRELOAD ${OUTBOARD_ASAN_RUNTIME})
endif()

# clang's TSan cannot enter a process late, so under it the front-end is tested inside our own test programs only.
set(OUTBOARD_SYSTEM_TESTS ON)
if(OUTBOARD_SANITIZE MATCHES "thread" OR OUTBOARD_FUZZ)
  set(OUTBOARD_SYSTEM_TESTS OFF)
endif()

# Python by its own name: pyenv's is a script that looks for it, a tenth of a second in each test.
find_package(Python3 COMPONENTS Interpreter REQUIRED)
execute_process(COMMAND ${Python3_EXECUTABLE} -c "import sys; print(sys.executable)"
                OUTPUT_VARIABLE Python3_EXECUTABLE OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)

function(outboard_system_test name)
  cmake_parse_arguments(arg "" "TIMEOUT" "COMMAND;LABELS" ${ARGN})
  if(NOT OUTBOARD_SYSTEM_TESTS)
    return()
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  add_test(NAME ${name} COMMAND ${arg_COMMAND})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${arg_TIMEOUT} LABELS "${arg_LABELS}" SKIP_RETURN_CODE 77
    ENVIRONMENT "OUTBOARD_BUILD=${CMAKE_BINARY_DIR};OUTBOARD_PRELOAD=${OUTBOARD_PRELOAD};OUTBOARD_TOOLKIT=${OUTBOARD_CUDA_ROOT}")
endfunction()
