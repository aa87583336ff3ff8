# Defines TVM::ffi, the headers and the library of the Python package
# apache-tvm-ffi, which call Apache TVM's runtime. The runtime itself is loaded with
# a model.
find_path(TVM_INCLUDE_DIR tvm/ffi/extra/module.h
  HINTS ${_packages} PATH_SUFFIXES tvm_ffi/include)
find_library(TVM_LIBRARY tvm_ffi
  HINTS ${_packages} PATH_SUFFIXES tvm_ffi/lib)
mark_as_advanced(TVM_INCLUDE_DIR TVM_LIBRARY)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(TVM REQUIRED_VARS TVM_LIBRARY TVM_INCLUDE_DIR)
if(TVM_FOUND AND NOT TARGET TVM::ffi)
  add_library(TVM::ffi SHARED IMPORTED)
  set_target_properties(TVM::ffi PROPERTIES
    IMPORTED_LOCATION ${TVM_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${TVM_INCLUDE_DIR})
endif()
