# What `cmake --install` puts where for those who link the library: headers, the
# library, a CMake package, and a pkg-config file for each component. A
# compiler's plug-in is loaded, never linked; its own folder installs it.
#
#   find_package(MLCompilerBridge COMPONENTS Core)   MLCompilerBridge::Core
#   pkg-config --cflags --libs mlcompilerbridge

# A wheel holds the Python module and nothing of this.
if(SKBUILD)
  return()
endif()

include(CMakePackageConfigHelpers)

set(_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/MLCompilerBridge)
set(_components "")
set(_needs "")

# mlbridge_install_component(NAME TARGET
#   [FIND package...]   what its users' find_package must find before it
#   [PKGCONFIG name]    the name of its pkg-config file
#   [REQUIRES module...] the pkg-config modules it stands on
#   [SUMMARY text])
#
# Installs TARGET and exports it as MLCompilerBridge::<its EXPORT_NAME>.
function(mlbridge_install_component NAME TARGET)
  cmake_parse_arguments(ARG "" "PKGCONFIG;SUMMARY" "FIND;REQUIRES" ${ARGN})

  install(TARGETS ${TARGET} EXPORT MLCompilerBridge${NAME}Targets
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT ${NAME}
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT ${NAME})
  install(EXPORT MLCompilerBridge${NAME}Targets
    NAMESPACE MLCompilerBridge:: DESTINATION ${_package_dir} COMPONENT ${NAME})

  if(ARG_PKGCONFIG)
    list(JOIN ARG_REQUIRES ", " PKGCONFIG_REQUIRES)
    file(RELATIVE_PATH PKGCONFIG_PREFIX
      ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
    string(REGEX REPLACE "/$" "" PKGCONFIG_PREFIX "${PKGCONFIG_PREFIX}")
    configure_file(${PROJECT_SOURCE_DIR}/cmake/mlcompilerbridge.pc.in
      ${PROJECT_BINARY_DIR}/package/${ARG_PKGCONFIG}.pc @ONLY)
    install(FILES ${PROJECT_BINARY_DIR}/package/${ARG_PKGCONFIG}.pc
      DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT ${NAME})
  endif()

  set(_components ${_components} ${NAME} PARENT_SCOPE)
  set(_needs "${_needs}set(_mlbridge_${NAME}_needs ${ARG_FIND})\n" PARENT_SCOPE)
endfunction()

install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT Core
  FILES_MATCHING PATTERN "*.h")
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE
  DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT Core)

# One line a component; Core is first, the others stand on it.
mlbridge_install_component(Core MLCompilerBridgeCore
  FIND simdjson PKGCONFIG mlcompilerbridge REQUIRES simdjson
  SUMMARY "${PROJECT_DESCRIPTION}")

configure_package_config_file(
  ${PROJECT_SOURCE_DIR}/cmake/MLCompilerBridgeConfig.cmake.in
  ${PROJECT_BINARY_DIR}/package/MLCompilerBridgeConfig.cmake
  INSTALL_DESTINATION ${_package_dir}
  NO_SET_AND_CHECK_MACRO)
# Before 1.0 a minor version may change the API.
write_basic_package_version_file(
  ${PROJECT_BINARY_DIR}/package/MLCompilerBridgeConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES
  ${PROJECT_BINARY_DIR}/package/MLCompilerBridgeConfig.cmake
  ${PROJECT_BINARY_DIR}/package/MLCompilerBridgeConfigVersion.cmake
  DESTINATION ${_package_dir} COMPONENT Core)
