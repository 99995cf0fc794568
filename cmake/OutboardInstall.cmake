# What `cmake --install build/release [--prefix DIR]` lays out:
#   bin/outboard                       the command; it finds the libraries in ../lib/outboard, here as in the build folder
#   lib/outboard/libcuda.so.1 ...      the front-end libraries, in a folder of their own so that nobody loads them unasked
#   lib/systemd/system/outboard.*      the daemon and its socket
#   share/man, share/bash-completion, share/zsh, share/fish    printed by the command itself
#   share/outboard/outboard.toml       an example to copy to /etc/outboard/
#   share/doc/outboard/                README, documents, licence
include(GNUInstallDirs)
set(OUTBOARD_LIBRARY_FOLDER lib/outboard)  # not CMAKE_INSTALL_LIBDIR: bin/ and this folder keep their distance everywhere

# What is installed, without tests and benchmarks: `cmake --build build/release --target outboard_product`.
add_custom_target(outboard_product)
if(TARGET outboard)
  install(TARGETS outboard RUNTIME DESTINATION bin)
  add_dependencies(outboard_product outboard)
endif()
# Of a client's machine: the libraries, and no daemon.
foreach(shim cuda cupti_12 cupti_13 nvml opencl)
  if(TARGET outboard_shim_${shim})
    install(TARGETS outboard_shim_${shim} LIBRARY DESTINATION ${OUTBOARD_LIBRARY_FOLDER})
    add_dependencies(outboard_product outboard_shim_${shim})
  endif()
endforeach()

# What encrypts, beside the libraries that load it.
if(TARGET outboard_tls)
  install(TARGETS outboard_tls LIBRARY DESTINATION ${OUTBOARD_LIBRARY_FOLDER})
  add_dependencies(outboard_product outboard_tls)
endif()
if(TARGET outboard_shim_opencl)
  install(FILES ${CMAKE_BINARY_DIR}/lib/outboard/outboard.icd DESTINATION ${OUTBOARD_LIBRARY_FOLDER})
endif()

if(NOT OUTBOARD_CLIENT)
  install(CODE "set(OUTBOARD_BIN \"\${CMAKE_INSTALL_PREFIX}/bin\")
    set(OUTBOARD_DOC \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATAROOTDIR}/doc/outboard\")
    if(NOT CMAKE_INSTALL_PREFIX MATCHES \"^/usr(/local)?$\")
      message(STATUS \"systemd does not look below this prefix: systemctl link \${CMAKE_INSTALL_PREFIX}/lib/systemd/system/outboard.service\")
    endif()
    configure_file(\"${CMAKE_SOURCE_DIR}/packaging/systemd/outboard.service.in\"
                   \"${CMAKE_BINARY_DIR}/packaging/outboard.service\" @ONLY)")
  install(FILES ${CMAKE_BINARY_DIR}/packaging/outboard.service ${CMAKE_SOURCE_DIR}/packaging/systemd/outboard.socket
          DESTINATION lib/systemd/system)
endif()
if(TARGET outboard)
  install(CODE "execute_process(COMMAND \"$<TARGET_FILE:outboard>\" help --pages
    \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/share\" COMMAND_ERROR_IS_FATAL ANY)")
endif()
install(FILES packaging/outboard.toml DESTINATION share/outboard)
install(FILES README.md LICENSE NOTICE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR} FILES_MATCHING PATTERN "*.md")
