# Core reads JSON with simdjson. If scripts/fetch-simdjson has downloaded the
# source, simdjson becomes a part of Core. A plug-in that is copied to another
# folder then needs no further library. Otherwise, Core links the shared library.
set(MLBRIDGE_SIMDJSON_SOURCE_DIR
  ${PROJECT_SOURCE_DIR}/build/simdjson/simdjson/singleheader CACHE PATH
  "The folder of simdjson.h and simdjson.cpp; if empty, simdjson is linked as a library")
if(EXISTS ${MLBRIDGE_SIMDJSON_SOURCE_DIR}/simdjson.cpp)
  add_library(MLBridgeSimdjson OBJECT
    ${MLBRIDGE_SIMDJSON_SOURCE_DIR}/simdjson.cpp)
  target_compile_definitions(MLBridgeSimdjson PRIVATE SIMDJSON_EXCEPTIONS=0)
  target_compile_options(MLBridgeSimdjson PRIVATE -fno-exceptions -w)
  set_target_properties(MLBridgeSimdjson PROPERTIES
    CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  file(STRINGS ${MLBRIDGE_SIMDJSON_SOURCE_DIR}/simdjson.h simdjson_VERSION
    REGEX "define SIMDJSON_VERSION ")
  string(REGEX MATCH "[0-9]+[.][0-9]+[.][0-9]+"
    simdjson_VERSION "${simdjson_VERSION}")
else()
  message(STATUS "simdjson: linked as a library; scripts/fetch-simdjson fetches its source")
  find_package(simdjson REQUIRED)
endif()
