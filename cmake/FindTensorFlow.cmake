# Finds the headers of TensorFlow's C API in the virtual environment that
# scripts/test-tensorflow creates, or else in a system folder. The library is not
# linked, because it is loaded at run time. The tests use the library in the virtual
# environment.
#
#   TensorFlow_INCLUDE_DIR   the folder with tensorflow/c/c_api.h
#   TensorFlow_LIBRARY       the library, or empty if it is missing

file(GLOB _package
  ${PROJECT_SOURCE_DIR}/build/venvs/keras/lib/python3*/site-packages/tensorflow)
find_path(TensorFlow_INCLUDE_DIR tensorflow/c/c_api.h
  HINTS ${_package} PATH_SUFFIXES include)
mark_as_advanced(TensorFlow_INCLUDE_DIR)

set(TensorFlow_LIBRARY "")
foreach(_folder IN LISTS _package)
  file(GLOB TensorFlow_LIBRARY ${_folder}/libtensorflow_cc.so.2)
endforeach()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(TensorFlow
  REQUIRED_VARS TensorFlow_INCLUDE_DIR)
