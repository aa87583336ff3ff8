# Defines the options of this build and the compiler flags for them.

include(MLBridgeSimdjson)

# Require a minor version of LLVM, because LLVM's package does not match "22" alone.
# Several versions of LLVM may be installed.
find_package(LLVM 22.1 CONFIG QUIET
  HINTS /usr/lib/llvm-22 ENV LLVM_ROOT)
find_package(Protobuf 3.21 QUIET)
find_package(PkgConfig QUIET)
if(PkgConfig_FOUND)
  pkg_check_modules(libyaml QUIET IMPORTED_TARGET yaml-0.1)
endif()
find_package(FlatBuffers CONFIG QUIET)
find_package(GTest QUIET)
find_package(gRPC CONFIG QUIET)
# Search for the following libraries in the Python packages of this project's .venv.
file(GLOB _packages LIST_DIRECTORIES true
  ${PROJECT_SOURCE_DIR}/.venv/lib/python3*/site-packages)
find_package(ONNXRuntime QUIET)
find_package(TensorFlow QUIET)
# Skip these libraries, because they are built without sanitizers and fuzzers.
if(NOT MLBRIDGE_SANITIZE AND NOT MLBRIDGE_ENABLE_FUZZERS)
  find_package(AOTInductor QUIET)
  find_package(TVM QUIET)
endif()

# mlbridge_part(NAME DESCRIPTION FOUND) defines the option NAME for an optional
# part. With the default AUTO, each configuration checks whether the part's
# dependencies are installed, and builds the part if they are. With ON, missing
# dependencies are an error.
macro(mlbridge_part _name _description _found)
  set(${_name} AUTO CACHE STRING "${_description}: ON, OFF, or AUTO, where it is found")
  set_property(CACHE ${_name} PROPERTY STRINGS AUTO ON OFF)
  if(${_name} STREQUAL "AUTO")
    if("${_found}")
      set(${_name} ON)
    else()
      set(${_name} OFF)
    endif()
  elseif(NOT "${${_name}}" MATCHES "^(ON|OFF|on|off|TRUE|FALSE|YES|NO|1|0)$")
    message(FATAL_ERROR
      "${_name}: expected ON, OFF or AUTO, found '${${_name}}'")
  elseif(${_name} AND NOT "${_found}")
    message(FATAL_ERROR "${_name}=ON, but what it needs was not found. The part: "
      "${_description}. Install it, or leave the part out with -D${_name}=OFF.")
  endif()
endmacro()

mlbridge_part(MLBRIDGE_ENABLE_LLVM "The plug-in for opt, clang, llc and lld"
  "${LLVM_FOUND}")
mlbridge_part(MLBRIDGE_ENABLE_GRPC "Models behind gRPC: MLCompilerBridge::gRPC"
  "${gRPC_FOUND}")
mlbridge_part(MLBRIDGE_ENABLE_ONNX
  "Models by ONNX Runtime: MLCompilerBridge::ONNX" "${ONNXRuntime_FOUND}")
mlbridge_part(MLBRIDGE_ENABLE_PROTOBUF
  "ProtobufSerDes, the component Protobuf" "${Protobuf_FOUND}")
mlbridge_part(MLBRIDGE_ENABLE_TF "Models by TensorFlow: MLCompilerBridge::TF"
  "${TensorFlow_FOUND}")
mlbridge_part(MLBRIDGE_ENABLE_YAML "The extension YAML (needs libyaml)"
  "${libyaml_FOUND}")
mlbridge_part(MLBRIDGE_ENABLE_FLATBUFFERS
  "The extension FlatBuffers (needs libflatbuffers and flatc)"
  "${FlatBuffers_FOUND}")
mlbridge_part(MLBRIDGE_ENABLE_AOTINDUCTOR
  "The extension AOTInductor (needs PyTorch's libraries)"
  "${AOTInductor_FOUND}")
mlbridge_part(MLBRIDGE_ENABLE_TVM "The extension TVM (needs apache-tvm-ffi)"
  "${TVM_FOUND}")
mlbridge_part(MLBRIDGE_ENABLE_TESTS "The C++ tests (need GoogleTest)"
  "${GTest_FOUND}")
# This option has no effect while `mlbridge` is not installed.
option(MLBRIDGE_ENABLE_BUILTIN
  "The models in the plug-in, builtin:imitation (needs `mlbridge compile`)" ON)
option(MLBRIDGE_ENABLE_C "libMLCompilerBridge.so, for tools written in C" ON)
option(MLBRIDGE_ENABLE_MLIR "The plug-in for mlir-opt, where MLIR's headers are"
  ${PROJECT_IS_TOP_LEVEL})
option(MLBRIDGE_ENABLE_GCC "The plug-in for gcc, where its headers are"
  ${PROJECT_IS_TOP_LEVEL})
option(MLBRIDGE_ENABLE_SQLITE "The extension of SQLite, where its headers are"
  ${PROJECT_IS_TOP_LEVEL})
option(MLBRIDGE_ENABLE_POLYHEDRAL "The tool that tiles with isl, where its headers are"
  ${PROJECT_IS_TOP_LEVEL})
option(MLBRIDGE_ENABLE_EXAMPLES "The examples" ${PROJECT_IS_TOP_LEVEL})
option(MLBRIDGE_ENABLE_BENCHMARKS "The benchmarks' C++ side"
  ${PROJECT_IS_TOP_LEVEL})
option(MLBRIDGE_ENABLE_PYTHON "The Python module (pip install . sets this)" OFF)
option(MLBRIDGE_PYTHON_IN_PLACE
  "Build the Python module for .venv, if it exists, in python/mlbridge" OFF)
if(MLBRIDGE_PYTHON_IN_PLACE)
  if(EXISTS ${PROJECT_SOURCE_DIR}/.venv/bin/python)
    set(MLBRIDGE_ENABLE_PYTHON ON)
  else()
    message(STATUS "Without the Python module, since .venv does not exist "
      "(scripts/make-venv)")
    set(MLBRIDGE_PYTHON_IN_PLACE OFF)
  endif()
endif()
option(MLBRIDGE_ENABLE_FUZZERS "The libFuzzer targets (needs clang)" OFF)
option(MLBRIDGE_WERROR "Warnings in this project's own code are errors" OFF)
set(MLBRIDGE_SANITIZE "" CACHE STRING
  "Sanitizers for everything: address;undefined or thread")

# Use ccache if it is installed, unless another launcher is set.
if(PROJECT_IS_TOP_LEVEL)
  find_program(CCACHE_PROGRAM ccache)
  mark_as_advanced(CCACHE_PROGRAM)
  foreach(_language C CXX)
    if(CCACHE_PROGRAM AND NOT DEFINED CMAKE_${_language}_COMPILER_LAUNCHER)
      set(CMAKE_${_language}_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
    endif()
  endforeach()
endif()

if(MLBRIDGE_SANITIZE)
  list(JOIN MLBRIDGE_SANITIZE "," _sanitizers)
  # Disable vptr, because it needs RTTI, and the plug-ins are built without RTTI.
  if("undefined" IN_LIST MLBRIDGE_SANITIZE)
    set(_no_vptr -fno-sanitize=vptr)
  endif()
  add_compile_options(-fsanitize=${_sanitizers} ${_no_vptr}
    -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${_sanitizers} ${_no_vptr})
endif()

if(MLBRIDGE_ENABLE_FUZZERS)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "MLBRIDGE_ENABLE_FUZZERS: libFuzzer comes with clang, "
      "and CMAKE_CXX_COMPILER is ${CMAKE_CXX_COMPILER}. "
      "`cmake --preset asan` sets what is needed.")
  endif()
  # Instrument the library too, not only the fuzzers' targets.
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

# Enable the assertions of libstdc++, such as checks of a vector's index. They do
# not change the ABI.
add_compile_definitions($<$<CONFIG:Debug>:_GLIBCXX_ASSERTIONS>)

# Flags for modules that other programs load. Symbols from static libraries stay
# private, so that another plug-in can contain another version of the same library.
# Undefined symbols are link errors, except in sanitizer builds, where the loading
# program provides the sanitizer's functions.
set(MLBRIDGE_SELF_CONTAINED -Wl,--exclude-libs,ALL)
if(NOT MLBRIDGE_SANITIZE)
  list(APPEND MLBRIDGE_SELF_CONTAINED -Wl,-z,defs)
endif()

# Enable warnings for this project's code, but not for its dependencies.
add_library(MLBridgeWarnings INTERFACE)
target_compile_options(MLBridgeWarnings INTERFACE -Wall -Wextra -Wpedantic
  $<$<BOOL:${MLBRIDGE_WERROR}>:-Werror>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # Before version 13, GCC reports a false positive for "text" + String (bug
  # 105651).
  target_compile_options(MLBridgeWarnings INTERFACE -Wno-restrict)
endif()
