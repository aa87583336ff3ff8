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
set(MLBRIDGE_SANITIZE "" CACHE STRING
  "Sanitizers for everything: address;undefined or thread")

if(MLBRIDGE_SANITIZE)
  list(JOIN MLBRIDGE_SANITIZE "," _sanitizers)
  add_compile_options(-fsanitize=${_sanitizers} -fno-sanitize-recover=all
    -fno-omit-frame-pointer -g)
  add_link_options(-fsanitize=${_sanitizers})
endif()

# Warnings are for this project's own code, not for what is built against it.
add_library(MLBridgeWarnings INTERFACE)
target_compile_options(MLBridgeWarnings INTERFACE -Wall -Wextra -Wpedantic)
