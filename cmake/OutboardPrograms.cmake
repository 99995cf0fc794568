# outboard_program(NAME SOURCE file [INTO folder] [FLAGS nvcc-flag...] [LINK nvcc-flag...] [NOT_IN_ALL]): compiles an
# ordinary CUDA program with nvcc, as a user would, into ${OUTBOARD_PROGRAMS}/NAME. The program knows nothing of Outboard.
# The target outboard_programs builds all of them, except those with NOT_IN_ALL. ccache serves the compilations of a second preset.
set(OUTBOARD_PROGRAMS ${CMAKE_BINARY_DIR}/programs)
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
  add_custom_command(OUTPUT ${object} DEPFILE ${object}.d DEPENDS ${source}
    COMMAND ${CCACHE} ${OUTBOARD_NVCC} ${arg_FLAGS} -MD -MF ${object}.d -c -o ${object} ${source}
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
