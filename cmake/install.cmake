# What `make install` puts where: the program, the library with its headers and CMake package, the
# shipped model.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(TARGETS deepinfer RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY models/nano DESTINATION ${CMAKE_INSTALL_DATADIR}/deepinfer/models)
install(FILES LICENSE THIRD_PARTY.md DESTINATION ${CMAKE_INSTALL_DOCDIR})

set(DEEPINFER_NANO_DIR ${CMAKE_INSTALL_DATADIR}/deepinfer/models/nano)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/deepinfer)
install(TARGETS deepinfer_shared EXPORT deepinferTargets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/deepinfer DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT deepinferTargets NAMESPACE deepinfer:: DESTINATION ${package_dir})
configure_package_config_file(cmake/deepinferConfig.cmake.in deepinferConfig.cmake
                              INSTALL_DESTINATION ${package_dir}
                              PATH_VARS DEEPINFER_NANO_DIR)
# Below 1.0 a minor version may change anything.
write_basic_package_version_file(deepinferConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/deepinferConfig.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/deepinferConfigVersion.cmake
        DESTINATION ${package_dir})
