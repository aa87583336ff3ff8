# mlbridge_add_runner_module(NAME COMPONENT SOURCE...): makes MLBridge-NAME.so, which
# adds the schemes of COMPONENT to programs whose specs name them. It is installed in
# the library folder, where programs search for it
# (include/MLCompilerBridge/Extend/RunnerModule.h).
function(mlbridge_add_runner_module NAME COMPONENT)
  add_library(MLBridge-${NAME} MODULE ${ARGN})
  set_target_properties(MLBridge-${NAME} PROPERTIES
    PREFIX "" LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
  target_link_options(MLBridge-${NAME} PRIVATE ${MLBRIDGE_SELF_CONTAINED})
  target_link_libraries(MLBridge-${NAME} PRIVATE ${COMPONENT} MLBridgeWarnings)
  install(TARGETS MLBridge-${NAME}
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT ${NAME})
endfunction()
