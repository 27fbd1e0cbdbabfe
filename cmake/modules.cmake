# One static library per folder of src/, one test program per folder.
#
#   deepinfer_module(NAME  DEPS other modules  LIBS external libraries)
#
# x.cc             goes into the library deepinfer_NAME
# x_test.cc        goes into the test program NAME_test (part of `make test`)
# x_slow_test.cc   goes into the test program NAME_slow_test (ctest label `slow`)
# Sources are globbed, sub-folders included, so that a new file needs no edit here.

if(DEEPINFER_FUZZ)
  # Coverage for every library; only the fuzz targets get libFuzzer's main.
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

function(deepinfer_module name)
  cmake_parse_arguments(ARG "" "" "DEPS;LIBS;TEST_DEPS" ${ARGN})
  file(GLOB_RECURSE all CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  set(sources ${all})
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
  set(slow_tests ${all})
  list(FILTER slow_tests INCLUDE REGEX "_slow_test\\.cc$")
  set(tests ${all})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(FILTER tests EXCLUDE REGEX "_slow_test\\.cc$")

  list(TRANSFORM ARG_DEPS PREPEND deepinfer_)
  list(TRANSFORM ARG_TEST_DEPS PREPEND deepinfer_)
  if(sources)
    add_library(deepinfer_${name} STATIC ${sources})
    target_include_directories(deepinfer_${name} PUBLIC ${PROJECT_SOURCE_DIR}/src
                                                       ${PROJECT_SOURCE_DIR}/include)
    target_link_libraries(deepinfer_${name} PUBLIC ${ARG_DEPS} PUBLIC ${ARG_LIBS})
  else()
    add_library(deepinfer_${name} INTERFACE)
    target_include_directories(deepinfer_${name} INTERFACE ${PROJECT_SOURCE_DIR}/src
                                                          ${PROJECT_SOURCE_DIR}/include)
    target_link_libraries(deepinfer_${name} INTERFACE ${ARG_DEPS} ${ARG_LIBS})
  endif()
  set(test_deps deepinfer_${name} ${ARG_TEST_DEPS})
  deepinfer_tests(${name}_test FILES ${tests} DEPS ${test_deps})
  deepinfer_tests(${name}_slow_test FILES ${slow_tests} DEPS ${test_deps} LABELS slow)
endfunction()

# A GoogleTest program; each TEST becomes a ctest case.  Tests find data through
# DEEPINFER_SOURCE_DIR and the built program through DEEPINFER_BINARY.
function(deepinfer_tests name)
  cmake_parse_arguments(ARG "" "" "FILES;DEPS;LABELS" ${ARGN})
  if(NOT DEEPINFER_TESTS OR NOT ARG_FILES)
    return()
  endif()
  find_package(GTest REQUIRED)
  add_executable(${name} ${ARG_FILES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include
                                             ${PROJECT_SOURCE_DIR})
  target_compile_definitions(${name} PRIVATE DEEPINFER_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
                             DEEPINFER_BINARY="${CMAKE_BINARY_DIR}/bin/deepinfer")
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} GTest::gmock GTest::gtest_main)
  include(GoogleTest)
  set(properties TIMEOUT 900)
  if(ARG_LABELS)  # an empty value would shift the list
    list(APPEND properties LABELS ${ARG_LABELS})
  endif()
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST PROPERTIES ${properties})
endfunction()
