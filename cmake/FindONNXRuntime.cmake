# Finds the C headers of ONNX Runtime in an installation, or else in the folder to
# which scripts/fetch-onnxruntime copies them. The library is not linked, because it
# is loaded at run time. Tests and the plug-in in the build tree use the library in
# this project's .venv.
#
#   ONNXRuntime_INCLUDE_DIR   the folder with onnxruntime_c_api.h
#   ONNXRuntime_LIBRARY       the library in .venv, or empty if it is missing

find_package(onnxruntime CONFIG QUIET)
set(_hints "")
if(TARGET onnxruntime::onnxruntime)
  get_target_property(_hints
    onnxruntime::onnxruntime INTERFACE_INCLUDE_DIRECTORIES)
endif()
find_path(ONNXRuntime_INCLUDE_DIR onnxruntime_c_api.h
  HINTS ${_hints}
  PATHS ${PROJECT_SOURCE_DIR}/build/onnxruntime/usr/include
  PATH_SUFFIXES onnxruntime onnxruntime/core/session)
mark_as_advanced(ONNXRuntime_INCLUDE_DIR)

set(ONNXRuntime_LIBRARY "")
foreach(_folder IN LISTS _packages)
  file(GLOB _found ${_folder}/onnxruntime/capi/libonnxruntime.so.*)
  list(APPEND ONNXRuntime_LIBRARY ${_found})
endforeach()
if(ONNXRuntime_LIBRARY)
  list(GET ONNXRuntime_LIBRARY -1 ONNXRuntime_LIBRARY)
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(ONNXRuntime
  REQUIRED_VARS ONNXRuntime_INCLUDE_DIR)
