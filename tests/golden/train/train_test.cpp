// SPDX-License-Identifier: Apache-2.0
// `einc train` through the binary: what it prints, logs and saves, and which settings change which numbers.
#include <cmath>

#include "tests/golden/train/folder.h"

namespace einc::test {

TEST_CASE("a run learns, and its log and last line say so") {
  const Trained model;
  const Ran ran = model.run("a", {"--steps=40", "--eval-every=20", "--eval-batches=5", model.validation()});
  INFO(ran.errors);
  REQUIRE(ran.status == 0);
  CHECK(ran.errors.empty());
  const auto losses = model.folder().logged("a.jsonl", "step", "loss");
  REQUIRE(losses.size() == 40);
  CHECK(losses.front() == doctest::Approx(std::log(16.0)).epsilon(0.02));
  CHECK(losses.back() < 1.5);
  const auto validation = model.folder().logged("a.jsonl", "evaluation", "validation_loss");
  CHECK(model.folder().logged("a.jsonl", "evaluation", "step") == std::vector<double>{0, 20, 40});
  CHECK(validation.back() < 1.3);
  const auto log = model.folder().log("a.jsonl");
  CHECK(log.front().at("kind") == "run");
  CHECK(log.front().at("parameters") == 16 * 24 * 2);
  CHECK(log.front().at("tokens_per_step") == 32);
  CHECK(log.back().at("kind") == "end");
  CHECK(ran.output.rfind("m.ein: 768 parameters, ", 0) == 0);
  CHECK(ran.output.find("\nstep 20  validation loss ") != std::string::npos);
  CHECK(ran.output.find("\ntrained 40 steps in ") != std::string::npos);
  CHECK(ran.output.find('\r') == std::string::npos);
}

TEST_CASE("the learning rate and the gradient's norm are those of the step") {
  const Trained model;
  model.losses("a", {"--steps=20"});
  const auto rates = model.folder().logged("a.jsonl", "step", "learning_rate");
  for (size_t t = 0; t < rates.size(); ++t) {
    const double progress = std::max(0.0, (static_cast<double>(t) - 5) / 35);
    const double rate = t < 5 ? 0.02 * static_cast<double>(t + 1) / 5 : 0.002 + 0.018 * (0.5 + 0.5 * std::cos(M_PI * progress));
    CHECK(rates[t] == doctest::Approx(rate).epsilon(1e-6));
  }
  for (const double norm : model.folder().logged("a.jsonl", "step", "gradient_norm")) CHECK(norm > 0);
}

TEST_CASE("any number of threads gives the same bits") {
  const Trained model;
  const auto losses = model.losses("one", {"--steps=4", "--threads=1", "--seed=3"});
  for (const char* threads : {"2", "8"}) {
    CHECK(model.losses(threads, {"--steps=4", std::string("--threads=") + threads, "--seed=3"}) == losses);
    CHECK(model.weights(threads) == model.weights("one"));
  }
  CHECK(model.losses("other", {"--steps=4", "--seed=4"}) != losses);
}

TEST_CASE("a limit of memory changes no bit, and the run's prediction keeps within it") {
  std::string program =
      "dim batch = 16, seq = 64, vocab = 16, d = 64\ninput tokens: i32[batch seq]\ninput targets: i32[batch seq]\n"
      "param wte: [vocab d] ~ normal(std = 0.1)\nh0 = wte[vocab = tokens]\n";
  for (int l = 0; l < 6; ++l)
    program += fmt::format(
        "param w{0}: [d e{0}=d] ~ normal(std = 0.1)\n"
        "h{1}: [batch seq d] = tanh(einsum(h{0}, w{0}, \"batch seq d, d e{0} -> batch seq e{0}\"))\n",
        l, l + 1);
  program +=
      "loss = mean(cross_entropy(einsum(h6, wte, \"batch seq d, vocab d -> batch seq vocab\"), targets, vocab))\n"
      "minimize loss using sgd(lr = 0.1)\n";
  const TrainFolder folder;
  const std::string file = folder.text("m.ein", program), tokens = folder.tokens("train.bin", 20000, 16);
  const auto train = [&](const std::string& name, const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"train", file, "--data", "tokens=" + tokens, "--quiet", "--steps=3", "--threads=2"};
    for (const char* result : {"--log=", "--save="})
      arguments.push_back(result + folder.at(name + (result[2] == 'l' ? ".jsonl" : ".safetensors")));
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_einc(arguments);
  };
  const auto predicted = [&](const std::string& name) { return folder.logged(name + ".jsonl", "run", "predicted_bytes").front(); };
  const Ran free = train("free", {});
  REQUIRE_MESSAGE(free.status == 0, free.errors);
  const auto limit = static_cast<int64_t>(predicted("free")) - 2 * 16 * 64 * 64 * 4;  // two values less than it saves
  for (const char* data : {"", "--val"}) {
    CAPTURE(data);
    std::vector<std::string> more{fmt::format("--memory-limit={}", limit)};
    if (*data) more.insert(more.end(), {data, "tokens=" + tokens, "--eval-every=2"});
    const Ran limited = train("limited", more);
    REQUIRE_MESSAGE(limited.status == 0, limited.errors);
    CHECK(predicted("limited") <= static_cast<double>(limit));
    CHECK(folder.content("limited.safetensors") == folder.content("free.safetensors"));
  }
  const Ran little = train("little", {"--memory-limit=100kB"});
  CHECK(little.status == 4);
  CHECK(little.errors.find("more than the limit of 100000 bytes") != std::string::npos);
}

TEST_CASE("evaluations do not disturb the training") {
  const Trained model;
  model.losses("without", {"--steps=12"});
  model.losses("with", {"--steps=12", "--eval-every=1", model.validation()});
  CHECK(model.weights("with") == model.weights("without"));
  // They run in the steps' memory, as micro-batches do.
  const auto predicted = [&](const std::string& name) { return model.folder().logged(name + ".jsonl", "run", "predicted_bytes").front(); };
  CHECK(predicted("with") == predicted("without"));
  model.losses("sums", {"--steps=2", "--eval-every=1", model.validation(), "--accumulate=2"});
  const double sums = 2 * 16 * 24 * sizeof(float);
  CHECK(predicted("sums") > predicted("with"));
  CHECK(predicted("sums") <= predicted("with") + 2 * sums);
}

TEST_CASE("each seed changes what it names alone") {
  const Trained model;
  const auto base = model.losses("base", {"--steps=2", "--seed=1"});
  CHECK(model.losses("same", {"--steps=2", "--init-seed=1", "--data-seed=1", "--dropout-seed=1"}) == base);
  for (const char* seed : {"--init-seed=2", "--data-seed=2", "--dropout-seed=2"})
    CHECK(model.losses("other", {"--steps=2", "--seed=1", seed})[0] != base[0]);

  // Without dropout its seed changes nothing; the others still do.
  std::string dry(kTokenModel);
  dry.replace(dry.find("0.2"), 3, "0.0");
  const Trained plain(dry);
  const auto first = plain.losses("base", {"--steps=2", "--seed=1"});
  CHECK(plain.losses("other", {"--steps=2", "--seed=1", "--dropout-seed=2"}) == first);
  CHECK(plain.losses("other", {"--steps=2", "--seed=1", "--data-seed=2"}) != first);
  CHECK(plain.losses("other", {"--steps=2", "--seed=1", "--init-seed=2"}) != first);
}

TEST_CASE("the reference interpreter trains the same") {
  const Trained model;
  const auto cpu = model.losses("cpu", {"--steps=4", model.validation()});
  const auto reference = model.losses("reference", {"--steps=4", "--target=reference", model.validation()});
  for (size_t i = 0; i < cpu.size(); ++i) CHECK(cpu[i] == doctest::Approx(reference[i]).epsilon(1e-5));
  CHECK(model.folder().logged("cpu.jsonl", "evaluation", "validation_loss")[0] ==
        doctest::Approx(model.folder().logged("reference.jsonl", "evaluation", "validation_loss")[0]).epsilon(1e-5));
}

TEST_CASE("micro-batches give the step of one batch as large") {
  // No dropout, whose masks would differ, and plain steps: a mean over four batches of 4 is that over one of 16.
  std::string program(kTokenModel);
  program.replace(program.find("0.2"), 3, "0.0");
  for (const char* optimizer : {"sgd(lr = 0.5)", "adamw(lr = 0.01, clip_norm = 0.05)"}) {
    const Trained model(program);
    const std::string choice = std::string("--optimizer=") + optimizer;
    const auto whole = model.losses("whole", {"--steps=10", "-D", "batch=16", choice});
    const auto parts = model.losses("parts", {"--steps=10", "-D", "batch=4", "--accumulate=4", choice});
    REQUIRE(parts.size() == whole.size());
    for (size_t i = 0; i < whole.size(); ++i) CHECK(parts[i] == doctest::Approx(whole[i]).epsilon(1e-5));
    CHECK(model.losses("again", {"--steps=10", "-D", "batch=4", "--accumulate=4", choice, "--threads=1"}) == parts);
    CHECK(model.weights("again") == model.weights("parts"));
    const auto log = model.folder().log("parts.jsonl"), whole_log = model.folder().log("whole.jsonl");
    CHECK(log.front().at("tokens_per_step") == whole_log.front().at("tokens_per_step"));
  }
}

TEST_CASE("micro-batches train in every precision, each with draws of its own") {
  for (const char* precision : {"f32", "bf16", "f16", "fp8"}) {
    const Trained model;
    const auto losses = model.losses("a", {"--steps=30", "--accumulate=2", "--threads=2", std::string("--precision=") + precision});
    CHECK(losses.back() < 1.8);
    if (precision == std::string("f16")) CHECK(model.folder().logged("a.jsonl", "step", "loss_scale").size() == 30);
  }
}

TEST_CASE("f16 halves its scale and skips the step when a gradient is not finite") {
  // The gradient of `gain` is a few thousand: times 65536 it is beyond f16 in the backward's products.
  std::string program(kTokenModel);
  program.replace(program.find("tanh(x)"), 7, "tanh(x) * 64");
  program.replace(program.find("loss = mean"), 11, "loss = 100 * mean");
  const Trained model(program);
  model.losses("a", {"--steps=12", "--precision=f16", "--optimizer=sgd(lr = 1e-5)"});
  const auto scales = model.folder().logged("a.jsonl", "step", "loss_scale");
  CHECK(scales.front() < 65536);
  CHECK(scales.back() <= scales.front());
  CHECK(scales.back() == scales[scales.size() - 2]);  // found one that works
}

TEST_CASE("the optimizer and the rate can be given") {
  const Trained model;
  model.losses("a", {"--steps=8", "--lr=0.003"});
  CHECK(model.folder().logged("a.jsonl", "step", "learning_rate")[7] == doctest::Approx(0.003));
  model.losses("b", {"--steps=8", "--lr=linear(0.01, total = 10)"});
  CHECK(model.folder().logged("b.jsonl", "step", "learning_rate")[5] == doctest::Approx(0.005));
  model.losses("c", {"--steps=8", "--optimizer=over \"table\" using sgd(lr = 0.1), over \"*\" using adam(lr = 0.002)"});
  CHECK(model.folder().logged("c.jsonl", "step", "learning_rate")[7] == doctest::Approx(0.1));
  CHECK(model.folder().logged("c.jsonl", "step", "learning_rate.1")[7] == doctest::Approx(0.002));
  const Ran unknown = model.run("d", {"--steps=2", "--optimizer=adamv(lr = 0.1)"});
  CHECK(unknown.status == 1);
  CHECK(unknown.errors.find("did you mean `adam`?") != std::string::npos);
  CHECK(model.run("d", {"--steps=2", "--lr=1, momentum = 2"}).status == 1);
  CHECK(model.run("d", {"--steps=2", "--lr=-1"}).status == 1);
  CHECK(model.run("d", {"--steps=2", "--optimizer=sgd()\nparam w: [] ~ zeros"}).status == 1);
}

TEST_CASE("a loss that is not finite stops the run with its step and its origin") {
  // `edge` falls by 0.5 a step from 1.2: the root of a negative number at the fourth.
  std::string program(kTokenModel);
  program.replace(program.find("x = dropout"), 0, "param edge: [] ~ constant(1.2)\n");
  program.replace(program.find("loss = mean(cross_entropy(logits, targets, vocab))"), 50,
                  "masked = where(iota(vocab) < 0, -inf, logits)\nroot = sqrt(edge)\n"
                  "loss = mean(cross_entropy(masked, targets, vocab)) + 0 * root");
  program.replace(program.find("minimize loss using"), std::string::npos, "minimize loss + 0.5 * edge using sgd(lr = 1)\n");
  const Trained model(program);
  for (const char* target : {"--target=cpu", "--target=reference"}) {
    const Ran ran = model.run("a", {"--steps=9", target});
    INFO(ran.errors);
    CHECK(ran.status == 5);
    CHECK(ran.errors.find("einc: the loss of step 4 is nan: 'root' (" + model.folder().at("m.ein") + ":10:8) is the first tensor that") ==
          0);
    CHECK(model.folder().logged("a.jsonl", "step", "loss").size() == 3);
    CHECK(model.folder().log("a.jsonl").back().at("kind") == "failure");
  }
}

TEST_CASE("a gradient that is not finite stops the run at its step") {
  // `edge` falls by 0.5 a step from 1.5: at the fourth the root is 0, and its slope 0 / 0. A mask's -inf is no fault.
  std::string program(kTokenModel);
  program.replace(program.find("x = dropout"), 0, "param gain: [] ~ ones\nparam edge: [] ~ constant(1.5)\n");
  program.replace(program.find("loss = mean(cross_entropy(logits, targets, vocab))"), 50,
                  "masked = where(iota(vocab) < 1 and iota(vocab) > 1, -inf, logits)\nroot = sqrt(stop_gradient(edge) * gain^2)\n"
                  "loss = mean(cross_entropy(masked, targets, vocab)) + 1e-3 * root");
  for (const char* clip : {", clip_norm = 1e9", ""}) {
    std::string text = program;
    text.replace(text.find("minimize loss using"), std::string::npos,
                 std::string("minimize loss + 0.5 * edge using sgd(lr = 1") + clip + ")\n");
    const Trained model(text);
    for (const char* target : {"--target=cpu", "--target=reference"}) {
      CAPTURE(target);
      const Ran ran = model.run("a", {"--steps=9", target});
      INFO(ran.errors);
      CHECK(ran.status == 5);
      const auto losses = model.folder().logged("a.jsonl", "step", "loss");
      CHECK(losses.size() == 3);
      CHECK(ran.errors.find("einc: the loss of step 4 is 2.") == 0);
      CHECK(ran.errors.find(", but a gradient is not finite: '") != std::string::npos);
      CHECK(ran.errors.find(": 'd root' (" + model.folder().at("m.ein") + ":11:8) is the first tensor that") != std::string::npos);
    }
  }
}

TEST_CASE("what is missing is said") {
  const Trained model;
  const Ran quiet = model.run("a", {"--steps=2", "--quiet"});
  CHECK(quiet.status == 0);
  CHECK(quiet.output.empty());
  CHECK(quiet.errors.empty());
  const std::string inference = model.folder().text("y.ein", "input x: f32[n=3]\noutput y = 2 * x\n");
  const Ran nothing = run_einc({"train", inference, "--steps=2"});
  CHECK(nothing.status == 1);
  CHECK(nothing.errors.find("minimizes nothing") != std::string::npos);
  const Ran no_data = run_einc({"train", model.folder().at("m.ein"), "--steps=2"});
  CHECK(no_data.status == 2);
  CHECK(no_data.errors.rfind("einc: ", 0) == 0);
}

}  // namespace einc::test
