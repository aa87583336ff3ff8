# Installs the files that users of the library need to link it: headers, libraries,
# a CMake package, and a pkg-config file for each component. A compiler's plug-in is
# not linked, so the plug-in's folder installs it.
#
#   find_package(MLCompilerBridge COMPONENTS Core)   MLCompilerBridge::Core
#   pkg-config --cflags --libs mlcompilerbridge
#   pkg-config --cflags --libs mlcompilerbridge-c    for tools written in C

# A wheel contains only the Python module.
if(SKBUILD)
  return()
endif()

include(CMakePackageConfigHelpers)

set(_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/MLCompilerBridge)
set(_components "")
set(_needs "")

# mlbridge_install_component(NAME TARGET
#   [FIND package...]   CMake packages that users must find first
#   [PKGCONFIG name]    the name of the pkg-config file
#   [REQUIRES module...] pkg-config modules that the component requires
#   [SUMMARY text]      the description in the pkg-config file
#   [ALONE])            users need neither Core nor Core's dependencies
#
# Installs TARGET and exports it as MLCompilerBridge::<EXPORT_NAME of TARGET>.
function(mlbridge_install_component NAME TARGET)
  cmake_parse_arguments(ARG "ALONE" "PKGCONFIG;SUMMARY" "FIND;REQUIRES" ${ARGN})

  install(TARGETS ${TARGET} EXPORT MLCompilerBridge${NAME}Targets
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT ${NAME}
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT ${NAME})
  install(EXPORT MLCompilerBridge${NAME}Targets
    NAMESPACE MLCompilerBridge:: DESTINATION ${_package_dir} COMPONENT ${NAME})

  if(ARG_PKGCONFIG)
    get_target_property(PKGCONFIG_LIBRARY ${TARGET} OUTPUT_NAME)
    if(NOT PKGCONFIG_LIBRARY)
      set(PKGCONFIG_LIBRARY ${TARGET})
    endif()
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
  set(_needs "${_needs}set(_mlbridge_${NAME}_needs ${ARG_FIND})\n")
  if(ARG_ALONE)
    string(APPEND _needs "set(_mlbridge_${NAME}_alone TRUE)\n")
  endif()
  set(_needs "${_needs}" PARENT_SCOPE)
endfunction()

install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT Core
  FILES_MATCHING PATTERN "*.h" PATTERN "*.proto")
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE
  DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT Core)

# Install each component. A component depends on Core unless it is ALONE.
if(TARGET MLBridgeSimdjson)
  install(FILES ${MLBRIDGE_SIMDJSON_SOURCE_DIR}/../LICENSE
    DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME LICENSE.simdjson COMPONENT Core)
else()
  set(_simdjson simdjson)
endif()
mlbridge_install_component(Core MLCompilerBridgeCore
  FIND ${_simdjson} PKGCONFIG mlcompilerbridge REQUIRES ${_simdjson}
  SUMMARY "${PROJECT_DESCRIPTION}")
install(FILES ${PROJECT_SOURCE_DIR}/cmake/MLBridgeAOT.cmake
  DESTINATION ${_package_dir} COMPONENT Core)
if(MLBRIDGE_ENABLE_PROTOBUF)
  mlbridge_install_component(Protobuf MLCompilerBridgeProtobuf
    FIND Protobuf PKGCONFIG mlcompilerbridge-protobuf
    REQUIRES mlcompilerbridge protobuf SUMMARY "ProtobufSerDes")
  install(FILES ${PROJECT_SOURCE_DIR}/cmake/MLBridgeProtobuf.cmake
    DESTINATION ${_package_dir} COMPONENT Protobuf)
endif()

if(MLBRIDGE_ENABLE_GRPC)
  mlbridge_install_component(gRPC MLCompilerBridgegRPC
    FIND gRPC PKGCONFIG mlcompilerbridge-grpc REQUIRES mlcompilerbridge grpc++
    SUMMARY "Models behind gRPC for ML-Compiler-Bridge")
endif()
if(MLBRIDGE_ENABLE_C)
  mlbridge_install_component(C MLCompilerBridgeC ALONE
    PKGCONFIG mlcompilerbridge-c
    SUMMARY "ML-Compiler-Bridge for tools written in C")
endif()

if(MLBRIDGE_ENABLE_ONNX)
  mlbridge_install_component(ONNX MLCompilerBridgeONNX
    PKGCONFIG mlcompilerbridge-onnx REQUIRES mlcompilerbridge
    SUMMARY "ONNX models in the process of ML-Compiler-Bridge")
endif()
if(MLBRIDGE_ENABLE_TF)
  mlbridge_install_component(TF MLCompilerBridgeTF
    PKGCONFIG mlcompilerbridge-tf REQUIRES mlcompilerbridge
    SUMMARY "TensorFlow models in the process of ML-Compiler-Bridge")
endif()

install(FILES ${PROJECT_SOURCE_DIR}/cmake/MLBridgeTFAOT.cmake
  DESTINATION ${_package_dir} COMPONENT Core)
install(FILES
  ${PROJECT_SOURCE_DIR}/lib/TF/AOT/compile.py
  ${PROJECT_SOURCE_DIR}/lib/TF/AOT/Run.cpp
  ${PROJECT_SOURCE_DIR}/lib/TF/AOT/Run.h
  DESTINATION ${_package_dir}/tf-aot COMPONENT Core)

configure_package_config_file(
  ${PROJECT_SOURCE_DIR}/cmake/MLCompilerBridgeConfig.cmake.in
  ${PROJECT_BINARY_DIR}/package/MLCompilerBridgeConfig.cmake
  INSTALL_DESTINATION ${_package_dir}
  NO_SET_AND_CHECK_MACRO)
# Before 1.0, a minor version may change the API.
write_basic_package_version_file(
  ${PROJECT_BINARY_DIR}/package/MLCompilerBridgeConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES
  ${PROJECT_BINARY_DIR}/package/MLCompilerBridgeConfig.cmake
  ${PROJECT_BINARY_DIR}/package/MLCompilerBridgeConfigVersion.cmake
  DESTINATION ${_package_dir} COMPONENT Core)
