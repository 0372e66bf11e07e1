// SPDX-License-Identifier: Apache-2.0
// The examples elaborate, without a warning, to graphs that verify.
#include "tests/unit/elaborate/support.h"

TEST_CASE("every example elaborates") {
  for (const char* name : {"two_layer",
                           "deep_linear",
                           "mlp",
                           "lora",
                           "cnn",
                           "attention",
                           "nanogpt",
                           "gpt2",
                           "llama",
                           "shakespeare_char",
                           "shakespeare_llama",
                           "shakespeare_large",
                           "lstm",
                           "resnet",
                           "vit",
                           "moe",
                           "graph",
                           "diffusion",
                           "diffusion_sample",
                           "data/linear",
                           "data/digits"}) {
    CAPTURE(name);
    const Compiled c(std::string(EINC_SOURCE_DIR "/examples/") + name + ".ein", {}, true);
    CHECK_MESSAGE(c.graph.has_value(), c.said);
    CHECK(c.said == "");
    if (const char* wanted = std::getenv("EINC_SHOW"); wanted && c.graph && std::string(wanted) == name)
      printf("%s\n", einc::print_graph(*c.graph).c_str());
  }
}
