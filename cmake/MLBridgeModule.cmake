# mlbridge_add_runner_module(NAME COMPONENT SOURCE...): MLBridge-NAME.so, which
# brings the schemes of COMPONENT to whatever program a spec names them in.
# include/MLCompilerBridge/Extend/RunnerModule.h says how it is found.
function(mlbridge_add_runner_module NAME COMPONENT)
  add_library(MLBridge-${NAME} MODULE ${ARGN})
  set_target_properties(MLBridge-${NAME} PROPERTIES
    PREFIX "" LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
  target_link_options(MLBridge-${NAME} PRIVATE ${MLBRIDGE_SELF_CONTAINED})
  target_link_libraries(MLBridge-${NAME} PRIVATE ${COMPONENT} MLBridgeWarnings)
  install(TARGETS MLBridge-${NAME}
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT ${NAME})
endfunction()
