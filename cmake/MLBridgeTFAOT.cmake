# mlbridge_add_tf_aot_model(TARGET saved_model
#   [NAME name]            the model's name (default: the folder's name)
#   [SIGNATURE signature]  the function to compile (default: serving_default)
#   [CPU cpu]              LLVM's name of a CPU for which the model is compiled in
#                          addition to the code for any x86-64, such as haswell
#   [RUNTIME source...]    more files of TensorFlow's xla_aot_runtime_src, for
#                          models that call functions in these files
#   [SEPARATE_WEIGHTS]     keeps the model's variables outside the code, in one file
#                          that the library includes. Without this option, the
#                          variables become constants of the code for each CPU
#   [DEPENDS file...])     further files that the model depends on
#
# Creates TARGET, a static library with a SavedModel as machine code. TensorFlow's
# ahead-of-time compiler generates the code, and the library contains no other part
# of TensorFlow. docs/guides/tensorflow.md describes this function. Example:
#
#   find_package(MLCompilerBridge)
#   include(${MLCompilerBridge_DIR}/MLBridgeTFAOT.cmake)
#   mlbridge_add_tf_aot_model(policy saved_model)
#   target_link_libraries(my-compiler PRIVATE policy MLCompilerBridge::Core)
#
#   #include "policy.h"
#   addBuiltinModels(Factory, {&mlbridge_aot_model_policy});
#
# MLBRIDGE_TF_AOT_PYTHON is the path of a Python that has TensorFlow 2.15.1.
set(_mlbridge_tf_aot_folder ${CMAKE_CURRENT_LIST_DIR}/tf-aot)
if(NOT EXISTS ${_mlbridge_tf_aot_folder})
  set(_mlbridge_tf_aot_folder ${CMAKE_CURRENT_LIST_DIR}/../lib/TF/AOT)
endif()
find_program(MLBRIDGE_TF_AOT_PYTHON python NO_DEFAULT_PATH
  HINTS ${CMAKE_CURRENT_LIST_DIR}/../build/venvs/tf-aot/bin
  DOC "A Python that has TensorFlow 2.15.1")

# Creates the library with the runtime functions that compiled models call. The
# first model creates the library, and all models share it.
function(_mlbridge_add_xla_runtime)
  if(TARGET mlbridge-xla-runtime)
    return()
  endif()
  if(NOT MLBRIDGE_TF_AOT_PYTHON)
    message(FATAL_ERROR "mlbridge_add_tf_aot_model() needs a Python 3.11 with "
      "TensorFlow 2.15.1; create one by `VENV=build/venvs/tf-aot "
      "scripts/make-venv tf-aot`, or by pip, and set MLBRIDGE_TF_AOT_PYTHON")
  endif()
  # Find the folder without importing TensorFlow, because an import takes seconds.
  execute_process(COMMAND ${MLBRIDGE_TF_AOT_PYTHON} -c
      "import importlib.util as u; print(u.find_spec('tensorflow').submodule_search_locations[0])"
    OUTPUT_VARIABLE _tensorflow OUTPUT_STRIP_TRAILING_WHITESPACE
    RESULT_VARIABLE _failed ERROR_QUIET)
  set(_sources ${_tensorflow}/xla_aot_runtime_src)
  if(_failed OR NOT EXISTS ${_sources})
    message(FATAL_ERROR "mlbridge_add_tf_aot_model(): ${MLBRIDGE_TF_AOT_PYTHON} "
      "lacks TensorFlow 2.15.1 with its xla_aot_runtime_src")
  endif()
  set(_xla ${_sources}/xla)
  add_library(mlbridge-xla-runtime STATIC
    ${_mlbridge_tf_aot_folder}/Run.cpp
    ${_xla}/executable_run_options.cc
    ${_xla}/service/custom_call_status.cc
    ${_xla}/service/cpu/runtime_custom_call_status.cc
    ${_xla}/service/cpu/runtime_single_threaded_matmul_f32.cc)
  set_target_properties(mlbridge-xla-runtime PROPERTIES UNITY_BUILD OFF)
  target_include_directories(mlbridge-xla-runtime SYSTEM
    PRIVATE ${_tensorflow}/include)
  target_include_directories(mlbridge-xla-runtime
    INTERFACE ${_mlbridge_tf_aot_folder})
  target_compile_features(mlbridge-xla-runtime PRIVATE cxx_std_17)
  target_compile_options(mlbridge-xla-runtime PRIVATE
    -fno-exceptions -ffunction-sections -fvisibility=hidden -w)
  set_target_properties(mlbridge-xla-runtime PROPERTIES
    POSITION_INDEPENDENT_CODE ON EXCLUDE_FROM_ALL ON SKIP_LINTING ON)
  set_property(TARGET mlbridge-xla-runtime PROPERTY MLBRIDGE_SOURCES ${_sources})
endfunction()

function(mlbridge_add_tf_aot_model TARGET MODEL)
  cmake_parse_arguments(ARG "SEPARATE_WEIGHTS" "NAME;SIGNATURE;CPU" "RUNTIME;DEPENDS" ${ARGN})
  _mlbridge_add_xla_runtime()
  get_filename_component(_model ${MODEL} ABSOLUTE)
  if(NOT ARG_NAME)
    get_filename_component(_stem ${_model} NAME)
    string(MAKE_C_IDENTIFIER ${_stem} ARG_NAME)
  endif()
  if(NOT ARG_SIGNATURE)
    set(ARG_SIGNATURE serving_default)
  endif()
  set(_folder ${CMAKE_CURRENT_BINARY_DIR}/${TARGET}.tfaot)
  file(MAKE_DIRECTORY ${_folder})
  set(_made ${_folder}/${ARG_NAME}.o ${_folder}/${ARG_NAME}.c
    ${_folder}/${ARG_NAME}.h)
  set(_objects ${_folder}/${ARG_NAME}.o)
  set(_options --signature ${ARG_SIGNATURE})
  if(ARG_SEPARATE_WEIGHTS)
    list(APPEND _options --separate-weights)
    list(APPEND _made ${_folder}/${ARG_NAME}.weights)
    set_source_files_properties(${_folder}/${ARG_NAME}.c PROPERTIES
      OBJECT_DEPENDS ${_folder}/${ARG_NAME}.weights)
  endif()
  if(ARG_CPU)
    list(APPEND _options --cpu ${ARG_CPU})
    list(APPEND _objects ${_folder}/${ARG_NAME}_wide.o)
    list(APPEND _made ${_folder}/${ARG_NAME}_wide.o)
  endif()
  add_custom_command(OUTPUT ${_made}
    COMMAND ${MLBRIDGE_TF_AOT_PYTHON} ${_mlbridge_tf_aot_folder}/compile.py
      ${_model} ${_folder} ${ARG_NAME} ${_options}
    DEPENDS ${_model}/saved_model.pb ${ARG_DEPENDS}
      ${_mlbridge_tf_aot_folder}/compile.py
    COMMENT "TensorFlow compiles ${MODEL}" VERBATIM)
  get_property(_sources TARGET mlbridge-xla-runtime PROPERTY MLBRIDGE_SOURCES)
  list(TRANSFORM ARG_RUNTIME PREPEND ${_sources}/)
  target_sources(mlbridge-xla-runtime PRIVATE ${ARG_RUNTIME})

  add_library(${TARGET} STATIC ${_made})
  set_source_files_properties(${_objects} PROPERTIES
    EXTERNAL_OBJECT TRUE GENERATED TRUE)
  set_target_properties(${TARGET} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_include_directories(${TARGET} PUBLIC ${_folder}
    $<TARGET_PROPERTY:MLCompilerBridge::Core,INTERFACE_INCLUDE_DIRECTORIES>)
  target_link_libraries(${TARGET} PUBLIC mlbridge-xla-runtime)
endfunction()
