# mlbridge_add_runner_module(NAME COMPONENT SOURCE...) creates the module
# MLBridge-NAME.so. If a spec names a scheme of COMPONENT, the program loads the
# module, which adds the scheme. The module is installed in the library folder,
# because programs search there (include/MLCompilerBridge/Extend/RunnerModule.h).
function(mlbridge_add_runner_module NAME COMPONENT)
  add_library(MLBridge-${NAME} MODULE ${ARGN})
  set_target_properties(MLBridge-${NAME} PROPERTIES
    PREFIX "" LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
  target_link_options(MLBridge-${NAME} PRIVATE ${MLBRIDGE_SELF_CONTAINED})
  target_link_libraries(MLBridge-${NAME} PRIVATE ${COMPONENT} MLBridgeWarnings)
  install(TARGETS MLBridge-${NAME}
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT ${NAME})
endfunction()
