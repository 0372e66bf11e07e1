// SPDX-License-Identifier: Apache-2.0
// Memory of other libraries, bound by DLPack's struct.
#include <doctest/doctest.h>

#include "tests/unit/api/programs.h"

// As the standard lays it out (dlpack.h, version 0.8).
struct DLDevice {
  int32_t device_type, device_id;
};
struct DLDataType {
  uint8_t code, bits;
  uint16_t lanes;
};
struct DLTensor {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
};
struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(DLManagedTensor* self);
};

using namespace einc;
using namespace einc::test;

namespace {

int deleted = 0;

struct Lent {
  std::vector<float> values;
  int64_t shape[2] = {4, 3}, strides[2] = {3, 1};
  DLManagedTensor tensor{};

  explicit Lent(std::vector<float> v) : values(std::move(v)) {
    tensor.dl_tensor = {values.data(), {1, 0}, 2, {2, 32, 1}, shape, strides, 0};
    tensor.deleter = [](DLManagedTensor*) { ++deleted; };
  }
};

}  // namespace

TEST_CASE("a DLPack tensor is bound in place and given back once") {
  Lent first(numbers(12, 0)), second(numbers(13, 3));
  second.tensor.dl_tensor.byte_offset = 4;
  second.tensor.dl_tensor.strides = nullptr;
  deleted = 0;
  {
    Session session(compile_text(kLinear, options(Target::reference)));
    session.set("w", std::vector<float>{1, 0, 0});
    session.bind("x", &first.tensor);
    first.values[3] = 42;
    session.run();
    CHECK(session.output("p").as<float>()[1] == 42);
    CHECK(deleted == 0);
    session.bind("x", &second.tensor);
    CHECK(deleted == 1);
    session.run();
    CHECK(session.output("p").as<float>()[0] == second.values[1]);
  }
  CHECK(deleted == 2);
}

TEST_CASE("a DLPack tensor that does not fit stays the caller's") {
  Session session(compile_text(kLinear, options(Target::reference)));
  deleted = 0;
  const auto refused = [&](auto&& change, const char* what) {
    Lent lent(numbers(12, 0));
    change(lent);
    try {
      session.bind("x", &lent.tensor);
      FAIL("accepted: ", what);
    } catch (const Error& error) {
      CHECK_MESSAGE(std::string(error.what()).find(what) != std::string::npos, error.what());
    }
  };
  refused([](Lent& t) { t.shape[0] = 3; }, "has shape [3 3], not [4 3]");
  refused([](Lent& t) { t.strides[0] = 1, t.strides[1] = 4; }, "is not row-major");
  refused([](Lent& t) { t.tensor.dl_tensor.device.device_type = 2; }, "device of kind 2");
  refused([](Lent& t) { t.tensor.dl_tensor.dtype = {0, 32, 1}; }, "not f32");
  refused([](Lent& t) { t.tensor.dl_tensor.dtype.lanes = 4; }, "4 lanes");
  refused([](Lent& t) { t.tensor.dl_tensor.byte_offset = 2; }, "not aligned");
  refused([](Lent& t) { t.tensor.dl_tensor.data = nullptr; }, "null address");
  refused([](Lent& t) { t.tensor.dl_tensor.ndim = -1; }, "has rank -1");
  CHECK(deleted == 0);
}
