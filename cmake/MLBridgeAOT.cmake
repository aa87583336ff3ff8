# mlbridge_add_aot_model(TARGET model.onnx
#   [NAME name]       the model's name (default: the name of the file model.onnx)
#   [PIN extent=size...]  fixed sizes for free extents
#   [SOURCE]          compile the model's C code with CMake's C compiler and flags
#   [DEPENDS file...] further files that the model depends on)
#
# Creates TARGET, a static library with the model as machine code. The model's symbol
# is mlbridge_aot_model_NAME, which the header NAME.h declares. This function runs `mlbridge compile` (docs/guides/compile.md). The program is searched for on
# PATH and in an active virtual environment, unless MLBRIDGE_PROGRAM is set.
# Example:
#
#   find_package(MLCompilerBridge)
#   mlbridge_add_aot_model(policy policy.onnx)
#   target_link_libraries(my-compiler PRIVATE policy MLCompilerBridge::Core)
#
#   #include "policy.h"
#   addBuiltinModels(Factory, {&mlbridge_aot_model_policy});
#
# A tool in C needs only project(... LANGUAGES C) and the component C. It links
# MLCompilerBridge::C and calls mlbridgeAddBuiltinModel().
#
# `mlbridge compile` has compared the linked code with ONNX Runtime. With SOURCE,
# CMake compiles the same C code again, for example for a sanitizer or for another
# machine.
find_program(MLBRIDGE_PROGRAM mlbridge
  HINTS ENV VIRTUAL_ENV PATH_SUFFIXES bin
  DOC "The command line of the Python package mlbridge")

function(mlbridge_add_aot_model TARGET MODEL)
  cmake_parse_arguments(ARG "SOURCE" "NAME" "PIN;DEPENDS" ${ARGN})
  if(NOT MLBRIDGE_PROGRAM)
    message(FATAL_ERROR "mlbridge_add_aot_model(${TARGET}): `mlbridge` was not "
      "found; run `python3 -m pip install '.[compile]'` in a checkout of "
      "ML-Compiler-Bridge, or set MLBRIDGE_PROGRAM to the program")
  endif()
  get_filename_component(_model ${MODEL} ABSOLUTE)
  if(NOT ARG_NAME)
    get_filename_component(_stem ${_model} NAME_WE)
    string(MAKE_C_IDENTIFIER ${_stem} ARG_NAME)
  endif()
  set(_folder ${CMAKE_CURRENT_BINARY_DIR}/${TARGET}.aot)
  file(MAKE_DIRECTORY ${_folder})
  if(ARG_SOURCE)
    set(_made ${_folder}/${ARG_NAME}.c)
  else()
    set(_made ${_folder}/${ARG_NAME}.o)
  endif()
  set(_header ${_folder}/${ARG_NAME}.h)
  set(_options --name ${ARG_NAME} --header ${_header})
  if(CMAKE_C_COMPILER AND NOT CMAKE_CROSSCOMPILING)
    set(_cc ${CMAKE_C_COMPILER_LAUNCHER} ${CMAKE_C_COMPILER})
    # Sanitizers do not instrument this code. Use the command of a build without
    # sanitizers, because ccache may have the results of this command.
    if(MLBRIDGE_SANITIZE)
      set(_cc ${CMAKE_C_COMPILER_LAUNCHER} cc)
    endif()
    list(JOIN _cc " " _cc)
    list(APPEND _options --cc ${_cc})
  endif()
  foreach(_pin IN LISTS ARG_PIN)
    list(APPEND _options --pin ${_pin})
  endforeach()
  add_custom_command(OUTPUT ${_made} ${_header}
    COMMAND ${MLBRIDGE_PROGRAM} compile ${_model} -o ${_made} ${_options}
    DEPENDS ${_model} ${ARG_DEPENDS} COMMENT "mlbridge compile ${MODEL}"
    VERBATIM)

  add_library(${TARGET} STATIC ${_made} ${_header})
  # In a checkout, `mlbridge` loads the Python module _core from this build.
  if(MLBRIDGE_PYTHON_IN_PLACE)
    add_dependencies(${TARGET} _core)
  endif()
  # Do not combine sources, because the sources of a model define the same static
  # names.
  set_target_properties(${TARGET} PROPERTIES UNITY_BUILD OFF)
  if(ARG_SOURCE)
    # Disable warnings for generated code.
    set_source_files_properties(${_made} PROPERTIES SKIP_LINTING ON
      COMPILE_OPTIONS "-O3;-fassociative-math;-fno-signed-zeros;-fno-trapping-math;-fno-math-errno;-ffp-contract=fast;-fvisibility=hidden;-w")
    set_target_properties(${TARGET} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  else()
    set_source_files_properties(${_made} PROPERTIES
      EXTERNAL_OBJECT TRUE GENERATED TRUE)
    # The project may lack C or C++.
    get_property(_languages GLOBAL PROPERTY ENABLED_LANGUAGES)
    set(_language CXX)
    if("C" IN_LIST _languages)
      set(_language C)
    endif()
    set_target_properties(${TARGET} PROPERTIES LINKER_LANGUAGE ${_language})
  endif()
  target_include_directories(${TARGET} INTERFACE ${_folder})
  foreach(_component Core C)
    set(_library MLCompilerBridge::${_component})
    set(_folders $<TARGET_PROPERTY:${_library},INTERFACE_INCLUDE_DIRECTORIES>)
    target_include_directories(${TARGET} INTERFACE
      $<$<TARGET_EXISTS:${_library}>:${_folders}>)
  endforeach()
  target_link_libraries(${TARGET} INTERFACE m)
endfunction()
