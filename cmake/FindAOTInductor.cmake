# Defines AOTInductor::AOTInductor, the libraries of the Python package torch that
# run packages of PyTorch's AOTInductor. PyTorch's own CMake package is not used,
# because it also requires the dependencies with which its libraries were built.
find_path(AOTInductor_INCLUDE_DIR
  torch/csrc/inductor/aoti_package/model_package_loader.h
  HINTS ${_packages} PATH_SUFFIXES torch/include)
find_library(AOTInductor_LIBRARY torch_cpu
  HINTS ${_packages} PATH_SUFFIXES torch/lib)
find_library(AOTInductor_c10_LIBRARY c10
  HINTS ${_packages} PATH_SUFFIXES torch/lib)
mark_as_advanced(
  AOTInductor_INCLUDE_DIR AOTInductor_LIBRARY AOTInductor_c10_LIBRARY)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(AOTInductor REQUIRED_VARS
  AOTInductor_LIBRARY AOTInductor_c10_LIBRARY AOTInductor_INCLUDE_DIR)
if(AOTInductor_FOUND AND NOT TARGET AOTInductor::AOTInductor)
  add_library(AOTInductor::AOTInductor SHARED IMPORTED)
  set_target_properties(AOTInductor::AOTInductor PROPERTIES
    IMPORTED_LOCATION ${AOTInductor_LIBRARY}
    INTERFACE_LINK_LIBRARIES ${AOTInductor_c10_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${AOTInductor_INCLUDE_DIR})
endif()
