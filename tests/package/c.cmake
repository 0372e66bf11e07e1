# SPDX-License-Identifier: Apache-2.0
# examples/embed/c, a project without C++, built against the installed package.
include(${CMAKE_CURRENT_LIST_DIR}/steps.cmake)
run(${CMAKE_COMMAND} -S ${SOURCE}/examples/embed/c -B ${WORK}/embed_c -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_PREFIX_PATH=${WORK}/prefix
    "-DCMAKE_C_FLAGS=${FLAGS} -Wall -Wextra -Wpedantic -Werror")
run(${CMAKE_COMMAND} --build ${WORK}/embed_c)
run(${WORK}/embed_c/classifier ${WORK}/classifier.safetensors)
expect("input x: .batch=96 features=2., 768 bytes")
expect("loss [0-9.]+, after 200 steps [0-9.]+; 9[0-9] of 96 right")
if(NOT EXISTS ${WORK}/classifier.safetensors)
  message(FATAL_ERROR "the example saved nothing")
endif()
