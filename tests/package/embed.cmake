# Installs the build into a folder of its own, builds examples/embed against it and runs what it gives.
#   cmake -DSOURCE=... -DBUILD=... -DWORK=... -DFLAGS=... -P embed.cmake
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

set(prefix ${WORK}/prefix)
file(REMOVE_RECURSE ${prefix})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${prefix})
run(${CMAKE_COMMAND} -S ${SOURCE}/examples/embed -B ${WORK}/embed -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_PREFIX_PATH=${prefix}
    "-DCMAKE_CXX_FLAGS=${FLAGS} -Wall -Wextra -Wpedantic -Werror" -DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER})
run(${CMAKE_COMMAND} --build ${WORK}/embed)
run(${WORK}/embed/inference)
expect("input x: f32.batch=2 features=4.")
expect("0\\.[0-9]+ 0\\.[0-9]+ 0\\.[0-9]+")
run(${WORK}/embed/training ${SOURCE}/examples/mlp.ein)
expect("loss [0-9.]+, after a hundred steps")
run(${WORK}/embed/two_sessions ${SOURCE}/examples/two_layer.ein)
expect("equal bits")

# Nothing of LLVM, and no file of the source tree, is needed to include the headers.
file(GLOB headers ${prefix}/include/einc/*.h)
foreach(header IN LISTS headers)
  file(STRINGS ${header} includes REGEX "^#include [\"<]")
  foreach(include IN LISTS includes)
    if(include MATCHES "\"" AND NOT include MATCHES "\"einc/" OR include MATCHES "llvm")
      message(FATAL_ERROR "${header}: ${include}")
    endif()
  endforeach()
endforeach()
