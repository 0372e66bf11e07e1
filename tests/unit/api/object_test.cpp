// SPDX-License-Identifier: Apache-2.0
// Programs from objects made ahead of time: what they say of themselves, and what is refused.
#include <doctest/doctest.h>

#include "compiler/api/object_file.h"
#include "runtime/base/failure.h"
#include "runtime/program/image.h"
#include "tests/unit/api/programs.h"

using namespace einc;
using namespace einc::test;

namespace {

// No kernels: the output is the state, which a run leaves alone.
ProgramImage image() {
  ProgramImage result;
  result.info.name = "copy.ein";
  result.info.dims = {{"n", 4}};
  result.info.states = {{"s", DType::f32, {"n"}, {4}}};
  result.info.state_inits = {{InitKind::constant, {2.5}}};
  result.info.outputs = {{"y", DType::f32, {"n"}, {4}}};
  ExecutableBuffer state{BufferRole::state, "s", DType::f32, {4}, 16, 64, InitKind::constant, 0, {2.5}};
  ExecutableBuffer output{BufferRole::arena, "", DType::f32, {4}, 16, 0, InitKind::zeros};
  Executable& forward = result.parts[Part::forward].emplace();
  forward.buffers = {state, output};
  forward.outputs = {{"y", 1}};
  forward.copies = {{0, 1}};
  forward.memory_bytes = 128;
  forward.own_bytes = 64;
  return result;
}

CompiledObject object(const std::string& bytes, const char* features = "") {
  return {kObjectVersion, features, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), nullptr, 0};
}

Error error_of(const CompiledObject& object) {
  try {
    const Program program(object);
  } catch (const Error& error) {
    return error;
  }
  return {ErrorKind::internal, "nothing was thrown"};
}

}  // namespace

TEST_CASE("a program is made from an object") {
  const std::string bytes = to_bytes(image());
  const Program program(object(bytes));
  CHECK(program.name() == "copy.ein");
  CHECK(program.dims() == image().info.dims);
  CHECK(program.states() == image().info.states);
  CHECK(!program.trains());
  Session session(program, {.threads = 1});
  session.init(0);
  session.run();
  CHECK(session.output("y").to_doubles() == std::vector<double>(4, 2.5));
}

TEST_CASE("an image reads back as it was, whatever it holds") {
  CompileOptions compile = options(Target::reference);
  const ProgramGraphs graphs =
      make_graphs(compile_text("m.ein", kLinear, pipeline_options(compile)), pipeline_options(compile), parts_for(Purpose::training));
  ProgramImage full = image();
  full.info = program_info(graphs);
  Executable& training = full.parts[Part::training].emplace(*full.parts[Part::forward]);
  Launch launch;
  launch.function = 0;
  launch.buffers = {0, 1, 1};
  launch.streams = {"drop"};
  launch.sites = {{"'ids'", "axis 'v'", {2, 3}, 7, " (m.ein:1:2)"}};
  launch.domain = 5;
  launch.alone = true;
  launch.label = "a label";
  training.launches = {launch};
  training.functions = {"k0"};
  training.loss = 1;
  training.gradients = {{"w", 1}};
  training.snapshots = {{0, 1}};
  training.checks = {{NonFinite::gradient, 1}};
  training.bounds = {{BoundFn::between, DType::f32, {}, 2.5}, {BoundFn::where, DType::f64, {0, 0, 0}, 0, 1}};
  training.bounded = {{0, 1, 1, 1}};
  training.scratch_bytes = 4096;
  const std::string bytes = to_bytes(full);
  const ProgramImage read = parse_image(bytes);
  CHECK(to_bytes(read) == bytes);
  CHECK(read.info == full.info);
  CHECK(read.parts[Part::forward]->buffers == full.parts[Part::forward]->buffers);
  CHECK(!read.parts[Part::evaluation]);
  const auto& step = read.parts[Part::training];
  REQUIRE(step.has_value());
  REQUIRE(step->launches.size() == 1);
  CHECK(step->launches[0].sites[0].location == " (m.ein:1:2)");
  CHECK(step->launches[0].alone);
  CHECK(step->bounds == training.bounds);
  for (size_t n = 0; n < bytes.size(); ++n) CHECK_THROWS_AS(parse_image(std::string_view(bytes).substr(0, n)), RuntimeFailure);
  CHECK_THROWS_AS(parse_image(bytes + 'x'), RuntimeFailure);
}

TEST_CASE("an object that cannot run here is refused, with the reason") {
  const std::string bytes = to_bytes(image());
  const Error lacking = error_of(object(bytes, "cx16 no-such-feature sse4.2 nor-this"));
  CHECK(lacking.kind() == ErrorKind::resource);
  CHECK(std::string(lacking.what()).find("'copy.ein'") != std::string::npos);
  CHECK(std::string(lacking.what()).find("lacks: no-such-feature nor-this.") != std::string::npos);
  CompiledObject old = object(bytes);
  old.version = kObjectVersion + 1;
  CHECK(error_of(old).kind() == ErrorKind::resource);
  CHECK(error_of(object(bytes.substr(0, bytes.size() / 2))).kind() == ErrorKind::data);
  ProgramImage calls = image();
  calls.parts[Part::forward]->functions = {"k0"};
  CHECK(error_of(object(to_bytes(calls))).kind() == ErrorKind::data);
}

TEST_CASE("an object's name becomes a C++ name") {
  CHECK(identifier("model") == "model");
  CHECK(identifier("my-model.v2") == "my_model_v2");
  CHECK(identifier("2layer") == "model_2layer");
}
