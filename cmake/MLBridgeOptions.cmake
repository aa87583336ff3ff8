# The options of this build, and the flags they stand for.

find_package(simdjson REQUIRED)

# LLVM is asked for by its minor version, since other LLVMs may be installed;
# "22" alone matches no package.
find_package(LLVM 22.1 CONFIG QUIET
  HINTS /usr/lib/llvm-22 ENV LLVM_ROOT)
find_package(GTest QUIET)

option(MLBRIDGE_ENABLE_LLVM "The plug-in for opt, clang, llc and lld"
  ${LLVM_FOUND})
option(MLBRIDGE_ENABLE_TESTS "The C++ tests" ${GTest_FOUND})
option(MLBRIDGE_ENABLE_EXAMPLES "The examples" ${PROJECT_IS_TOP_LEVEL})
option(MLBRIDGE_ENABLE_BENCHMARKS "The benchmarks' C++ side"
  ${PROJECT_IS_TOP_LEVEL})
option(MLBRIDGE_ENABLE_PYTHON "The Python module (pip install . sets this)" OFF)
option(MLBRIDGE_ENABLE_FUZZERS "The libFuzzer targets (needs clang)" OFF)
option(MLBRIDGE_WERROR "Warnings in this project's own code are errors" OFF)
set(MLBRIDGE_SANITIZE "" CACHE STRING
  "Sanitizers for everything: address;undefined or thread")

# ccache, where it is and where nobody has chosen another launcher.
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
  # vptr looks at type information, and the library is built without any.
  if("undefined" IN_LIST MLBRIDGE_SANITIZE)
    set(_no_vptr -fno-sanitize=vptr)
  endif()
  add_compile_options(-fsanitize=${_sanitizers} ${_no_vptr}
    -fno-sanitize-recover=all -fno-omit-frame-pointer -g)
  add_link_options(-fsanitize=${_sanitizers} ${_no_vptr})
endif()

if(MLBRIDGE_ENABLE_FUZZERS)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "MLBRIDGE_ENABLE_FUZZERS: libFuzzer comes with clang, "
      "and CMAKE_CXX_COMPILER is ${CMAKE_CXX_COMPILER}. "
      "`cmake --preset fuzz` sets what is needed.")
  endif()
  # What the fuzzers steer by must be in the library, not in the targets alone.
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

# libstdc++'s own checks, such as of an index into a vector; they leave the ABI
# as it is.
add_compile_definitions($<$<CONFIG:Debug>:_GLIBCXX_ASSERTIONS>)

# Warnings are for this project's own code, not for what is built against it.
add_library(MLBridgeWarnings INTERFACE)
target_compile_options(MLBridgeWarnings INTERFACE -Wall -Wextra -Wpedantic
  $<$<BOOL:${MLBRIDGE_WERROR}>:-Werror>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # A false alarm on "text" + String: GCC bug 105651, mended in GCC 13.
  target_compile_options(MLBridgeWarnings INTERFACE -Wno-restrict)
endif()
