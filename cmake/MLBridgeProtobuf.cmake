# mlbridge_add_proto(TARGET file.proto... [IMPORTS folder...]
#   [PYTHON_DIR folder])
#
# Generates C++ and Python code from the .proto files and compiles the C++ code into
# TARGET. TARGET can then use ProtobufSerDes with the messages of the files.
# Example:
#
#   find_package(MLCompilerBridge COMPONENTS Protobuf)
#   add_executable(my-compiler Main.cpp)
#   mlbridge_add_proto(my-compiler features.proto)
#
#   #include "features.pb.h"
#   addProtobuf<my::Features, my::Decision>(Factory.formats());
#
# The model side uses the generated features_pb2.py, which is written to PYTHON_DIR.
# The default of PYTHON_DIR is CMAKE_CURRENT_BINARY_DIR. The C++ files are always
# written to CMAKE_CURRENT_BINARY_DIR. IMPORTS are folders to search for imported
# files. A file can always import "MLCompilerBridge/mlcompilerbridge.proto". The
# target TARGET-proto only generates the files. Call this function at most once for
# each TARGET.
function(mlbridge_add_proto TARGET)
  cmake_parse_arguments(ARG "" "PYTHON_DIR" "IMPORTS" ${ARGN})
  if(NOT ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "mlbridge_add_proto(${TARGET}): expected .proto files")
  endif()
  set(_out ${CMAKE_CURRENT_BINARY_DIR})
  if(NOT ARG_PYTHON_DIR)
    set(ARG_PYTHON_DIR ${_out})
  endif()
  file(MAKE_DIRECTORY ${ARG_PYTHON_DIR})
  set(_imports ${ARG_IMPORTS}
    $<TARGET_PROPERTY:MLCompilerBridge::Core,INTERFACE_INCLUDE_DIRECTORIES>)

  foreach(_proto IN LISTS ARG_UNPARSED_ARGUMENTS)
    get_filename_component(_proto ${_proto} ABSOLUTE)
    get_filename_component(_folder ${_proto} DIRECTORY)
    get_filename_component(_name ${_proto} NAME_WLE)
    # protoc writes an underscore for each character that is not allowed in the name
    # of a Python module.
    string(REPLACE "-" "_" _module ${_name})
    set(_generated ${_out}/${_name}.pb.cc ${_out}/${_name}.pb.h)
    set(_pb2 ${ARG_PYTHON_DIR}/${_module}_pb2.py)
    add_custom_command(OUTPUT ${_generated} ${_pb2}
      COMMAND protobuf::protoc --cpp_out=${_out} --python_out=${ARG_PYTHON_DIR}
        -I${_folder} "-I$<JOIN:${_imports},;-I>" ${_proto}
      DEPENDS ${_proto} COMMENT "protoc ${_name}.proto"
      COMMAND_EXPAND_LISTS VERBATIM)
    target_sources(${TARGET} PRIVATE ${_generated})
    list(APPEND _all ${_generated} ${_pb2})
    # Disable warnings for generated code.
    set_source_files_properties(${_out}/${_name}.pb.cc
      PROPERTIES COMPILE_OPTIONS "-w" SKIP_LINTING ON)
  endforeach()
  # This target is for targets that need the generated files but compile no code.
  add_custom_target(${TARGET}-proto DEPENDS ${_all})
  target_include_directories(${TARGET} SYSTEM PRIVATE ${_out})
  target_link_libraries(${TARGET}
    PRIVATE MLCompilerBridge::Protobuf protobuf::libprotobuf)
endfunction()
