# SPDX-License-Identifier: Apache-2.0
# What the package tests share.
cmake_minimum_required(VERSION 3.25)
# run(COMMAND...) ends the test when the command fails, and leaves what it said in `output`.
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    string(JOIN " " command ${ARGN})
    message(FATAL_ERROR "${command}\nends with ${status}:\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

# expect(REGEX) holds the last output to it.
macro(expect regex)
  if(NOT output MATCHES "${regex}")
    message(FATAL_ERROR "no '${regex}' in:\n${output}")
  endif()
endmacro()

# build_example(FOLDER SETTING...): examples/FOLDER against the installed package, in WORK/FOLDER.
macro(build_example folder)
  run(${CMAKE_COMMAND} -S ${SOURCE}/examples/${folder} -B ${WORK}/${folder} -G Ninja -DCMAKE_BUILD_TYPE=Debug
      -DCMAKE_PREFIX_PATH=${WORK}/prefix "-DCMAKE_CXX_FLAGS=${FLAGS} -Wall -Wextra -Wpedantic -Werror"
      -DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER} ${ARGN})
  run(${CMAKE_COMMAND} --build ${WORK}/${folder})
endmacro()
