# The CUDA toolkit: headers to build, nvcc to build the demonstration programs. No driver and no GPU is ever needed.
# CUDA_HOME, else /usr/local/cuda, else the pip wheels that scripts/toolkit puts into build/toolkit.
set(OUTBOARD_TOOLKIT "" CACHE PATH "root of a CUDA toolkit (has include/cuda.h)")
foreach(candidate "${OUTBOARD_TOOLKIT}" "$ENV{CUDA_HOME}" /usr/local/cuda ${CMAKE_SOURCE_DIR}/build/toolkit)
  if(candidate AND EXISTS ${candidate}/include/cuda.h)
    set(OUTBOARD_CUDA_ROOT ${candidate})
    break()
  endif()
endforeach()
if(NOT OUTBOARD_CUDA_ROOT)
  message(FATAL_ERROR "no CUDA headers: set CUDA_HOME to a CUDA 13 toolkit, or run scripts/toolkit, which installs "
                      "NVIDIA's own pip wheels into build/toolkit")
endif()
message(STATUS "CUDA toolkit: ${OUTBOARD_CUDA_ROOT}")
add_library(outboard_cuda_headers INTERFACE)
target_include_directories(outboard_cuda_headers SYSTEM INTERFACE ${OUTBOARD_CUDA_ROOT}/include)
