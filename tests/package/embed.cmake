# SPDX-License-Identifier: Apache-2.0
# examples/embed, built against the installed package, does what it says.
include(${CMAKE_CURRENT_LIST_DIR}/steps.cmake)
build_example(embed)
run(${WORK}/embed/inference)
expect("input x: f32.batch=2 features=4.")
expect("0\\.[0-9]+ 0\\.[0-9]+ 0\\.[0-9]+")
run(${WORK}/embed/training ${SOURCE}/examples/mlp.ein)
expect("loss [0-9.]+, after a hundred steps")
expect("the same logits")
run(${WORK}/embed/two_sessions ${SOURCE}/examples/two_layer.ein)
expect("equal bits")
