# outboard_program(NAME SOURCE file [INTO folder] [FLAGS nvcc-flag...] [LINK nvcc-flag...] [NOT_IN_ALL]): compiles an
# ordinary CUDA program with nvcc, as its user would, into ${OUTBOARD_PROGRAMS}/NAME. It knows nothing of Outboard.
# Everything hangs on the target outboard_programs, unless NOT_IN_ALL. ccache serves the compilations of a second preset.
set(OUTBOARD_PROGRAMS ${CMAKE_BINARY_DIR}/programs)
set(OUTBOARD_NVCC_CCACHE ${OUTBOARD_CCACHE})
# A toolkit that scripts/toolkit put into the checkout is as old as the checkout: ccache knows its nvcc by content.
cmake_path(IS_PREFIX CMAKE_SOURCE_DIR "${OUTBOARD_CUDA_ROOT}" toolkit_in_checkout)
if(OUTBOARD_CCACHE AND toolkit_in_checkout)
  list(INSERT OUTBOARD_NVCC_CCACHE 1 CCACHE_COMPILERCHECK=content)
endif()
add_custom_target(outboard_programs ALL)
set(OUTBOARD_NVCC_LINK -L${OUTBOARD_CUDA_ROOT}/lib64 -L${OUTBOARD_CUDA_ROOT}/lib -L${OUTBOARD_CUDA_ROOT}/lib64/stubs
                       -L${OUTBOARD_CUDA_ROOT}/lib/stubs)

function(outboard_program name)
  cmake_parse_arguments(arg "NOT_IN_ALL" "SOURCE;INTO" "FLAGS;LINK" ${ARGN})
  if(NOT arg_INTO)
    set(arg_INTO ${OUTBOARD_PROGRAMS})
  endif()
  get_filename_component(source ${arg_SOURCE} ABSOLUTE)
  set(output ${arg_INTO}/${name})
  set(object ${arg_INTO}/objects/${name}.o)
  file(MAKE_DIRECTORY ${arg_INTO}/objects)
  # By a relative name: one that lies beside the checkout would be another file in another folder to ccache.
  file(RELATIVE_PATH from_here ${CMAKE_CURRENT_BINARY_DIR} ${source})
  add_custom_command(OUTPUT ${object} DEPFILE ${object}.d DEPENDS ${source}
    COMMAND ${OUTBOARD_NVCC_CCACHE} ${OUTBOARD_NVCC} ${arg_FLAGS} -MD -MF ${object}.d -c -o ${object} ${from_here}
    COMMENT "nvcc ${name}" VERBATIM)
  add_custom_command(OUTPUT ${output} DEPENDS ${object}
    COMMAND ${OUTBOARD_NVCC} ${arg_FLAGS} -o ${output} ${object} ${OUTBOARD_NVCC_LINK} ${arg_LINK}
    COMMENT "nvcc linking ${name}" VERBATIM)
  get_filename_component(folder ${arg_INTO} NAME)
  add_custom_target(program_${folder}_${name} DEPENDS ${output})
  if(NOT arg_NOT_IN_ALL)
    add_dependencies(outboard_programs program_${folder}_${name})
  endif()
endfunction()

# outboard_host_program(NAME SOURCE file [OUTPUT file] [FLAGS g++-flag...] [LINK g++-flag...]): the same of an ordinary C++
# program, by g++ with no flags of ours. OUTPUT: another file than ${OUTBOARD_PROGRAMS}/NAME.
function(outboard_host_program name)
  cmake_parse_arguments(arg "" "SOURCE;OUTPUT" "FLAGS;LINK" ${ARGN})
  if(NOT arg_OUTPUT)
    set(arg_OUTPUT ${OUTBOARD_PROGRAMS}/${name})
  endif()
  get_filename_component(source ${arg_SOURCE} ABSOLUTE)
  set(object ${OUTBOARD_PROGRAMS}/objects/${name}.o)
  file(MAKE_DIRECTORY ${OUTBOARD_PROGRAMS}/objects)
  add_custom_command(OUTPUT ${object} DEPFILE ${object}.d DEPENDS ${source}
    COMMAND ${OUTBOARD_CCACHE} g++ -std=c++17 ${arg_FLAGS} -MD -MF ${object}.d -c -o ${object} ${source}
    COMMENT "g++ ${name}" VERBATIM)
  add_custom_command(OUTPUT ${arg_OUTPUT} DEPENDS ${object}
    COMMAND g++ ${arg_FLAGS} -o ${arg_OUTPUT} ${object} ${arg_LINK}
    COMMENT "g++ linking ${name}" VERBATIM)
  add_custom_target(program_${name} DEPENDS ${arg_OUTPUT})
  add_dependencies(outboard_programs program_${name})
endfunction()
