// SPDX-License-Identifier: Apache-2.0
#include "runtime/executor/find_fault.h"

#include <einc/tensor.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace einc {
namespace {

// In the order of what is worse.
enum class Kind : uint8_t { finite, minus_infinity, infinity, nan };
constexpr const char* kKindNames[] = {"finite numbers", "-inf", "inf", "nan"};

Kind kind_of(double x) {
  if (std::isnan(x)) return Kind::nan;
  if (std::isinf(x)) return x < 0 ? Kind::minus_infinity : Kind::infinity;
  return Kind::finite;
}

struct Held {
  Kind kind = Kind::finite;
  int64_t first = 0;  // element of the worst kind
};

class Finder {
 public:
  Finder(const WatchedRun& run, uint32_t buffer)
      : watched_(run),
        program_(run.program),
        wanted_(buffer),
        last_(first_launch(run.program, buffer)),
        held_(program_.buffers.size()),
        maker_(program_.buffers.size(), -1) {}

  std::string run() {
    if (last_ < 0) return "";
    for (uint32_t b = 0; b < program_.buffers.size(); ++b)
      if (is_source(program_.buffers[b].role)) held_[b] = scan(b);
    watched_.run([&](size_t launch) {
      look(launch);
      return static_cast<int64_t>(launch) < last_;
    });
    return trace();
  }

 private:
  struct Input {
    uint32_t buffer;
    Held held;
  };

  Held scan(uint32_t buffer) const {
    const ExecutableBuffer& b = program_.buffers[buffer];
    Held worst;
    if (!is_floating(b.dtype)) return worst;
    constexpr int64_t kAtOnce = 65536;
    const int64_t count = b.bytes / bytes_of(b.dtype);
    const std::byte* values = watched_.values(buffer);
    for (int64_t at = 0; at < count; at += kAtOnce) {
      const TensorView piece(b.dtype, {std::min(kAtOnce, count - at)}, values + at * bytes_of(b.dtype));
      int64_t element = at;
      for (const double x : piece.to_doubles()) {
        const bool holds = b.padding == 0 || element % b.shape.back() < b.shape.back() - b.padding;
        if (holds && kind_of(x) > worst.kind) worst = {kind_of(x), element};
        ++element;
      }
    }
    return worst;
  }

  bool is_unfinished(size_t launch, uint32_t buffer) const {
    const auto found = watched_.unfinished.find(static_cast<uint32_t>(launch));
    return found != watched_.unfinished.end() && std::ranges::find(found->second, buffer) != found->second.end();
  }

  void look(size_t launch) {
    std::vector<Input>& inputs = inputs_.emplace_back();
    for (const uint32_t b : program_.launches[launch].buffers) {
      if (b >= program_.buffers.size() || is_unfinished(launch, b)) continue;
      const Held before = held_[b];
      if (before.kind != Kind::finite) inputs.push_back({b, before});
      held_[b] = scan(b);
      if (held_[b].kind != Kind::finite && before.kind == Kind::finite) maker_[b] = static_cast<int64_t>(launch);
    }
  }

  // Then a forward's -inf is a mask's.
  bool has_finite_loss() const {
    return program_.loss >= 0 && last_ > first_launch(program_, static_cast<uint32_t>(program_.loss)) &&
           held_[static_cast<uint32_t>(program_.loss)].kind == Kind::finite;
  }

  // What `launch` read that its result of this kind may come from.
  const Input* origin(int64_t launch, Kind kind) const {
    const Input* worst = nullptr;
    for (const Input& input : inputs_[static_cast<size_t>(launch)])
      if (!worst || input.held.kind > worst->held.kind) worst = &input;
    const bool masked = worst && worst->held.kind == Kind::minus_infinity && (kind == Kind::nan || has_finite_loss());
    return masked ? nullptr : worst;
  }

  std::string trace() const {
    uint32_t buffer = wanted_;
    Held held = held_[buffer];
    if (held.kind == Kind::finite) return "";
    int64_t launch = maker_[buffer];
    while (launch >= 0) {
      const Input* input = origin(launch, held.kind);
      if (!input || maker_[input->buffer] >= launch) break;
      buffer = input->buffer;
      held = input->held;
      launch = maker_[buffer];
    }
    return text(buffer, held, launch);
  }

  // Subscripts of the element that lies `element` elements into the buffer.
  std::vector<int64_t> place_of(uint32_t buffer, int64_t element) const {
    const std::vector<int64_t>& shape = program_.buffers[buffer].shape;
    std::vector<int> order(shape.size());
    std::iota(order.begin(), order.end(), 0);
    if (const auto found = watched_.orders.find(buffer); found != watched_.orders.end()) order = found->second;
    std::vector<int64_t> place(shape.size());
    for (size_t i = order.size(); i-- > 0;) {
      const auto axis = static_cast<size_t>(order[i]);
      place[axis] = element % shape[axis];
      element /= shape[axis];
    }
    return place;
  }

  std::string text(uint32_t buffer, const Held& held, int64_t launch) const {
    const ExecutableBuffer& b = program_.buffers[buffer];
    const std::vector<int64_t> place = place_of(buffer, held.first);
    const std::string where = place.empty() ? "" : fmt::format(", at [{}]", fmt::join(place, ", "));
    const char* what = kKindNames[static_cast<size_t>(held.kind)];
    if (launch < 0) {
      const char* role = b.role == BufferRole::input ? "input" : b.role == BufferRole::param ? "param" : "state";
      return fmt::format("the {} '{}' holds {} before the step{}", role, b.name, what, where);
    }
    const Launch& made = program_.launches[static_cast<size_t>(launch)];
    std::string result = fmt::format("'{}'{}{}{} is the first tensor that holds {}{}", made.label, made.location.empty() ? "" : " (",
                                     made.location, made.location.empty() ? "" : ")", what, where);
    for (const Input& input : inputs_[static_cast<size_t>(launch)])
      if (input.held.kind == Kind::minus_infinity && maker_[input.buffer] >= 0) {
        const Launch& before = program_.launches[static_cast<size_t>(maker_[input.buffer])];
        if (before.label == made.label && before.location == made.location) continue;  // parts of one value
        return result + fmt::format("; it is made from '{}', which holds -inf", before.label);
      }
    if (b.dtype == DType::f16 && held.kind != Kind::nan) result += "; f16 ends at 65504, bf16 where f32 does: --precision bf16";
    return result;
  }

  const WatchedRun& watched_;
  const Executable& program_;
  const uint32_t wanted_;
  const int64_t last_;                      // launch
  std::vector<Held> held_;                  // by buffer, as of the last launch
  std::vector<int64_t> maker_;              // launch that made a buffer's values other than finite; -1: they came in
  std::vector<std::vector<Input>> inputs_;  // by launch: what was not finite before it
};

}  // namespace

std::string find_fault(const WatchedRun& run, uint32_t buffer) { return Finder(run, buffer).run(); }

std::string find_fault(const WatchedRun& run, NonFinite what) {
  for (const FiniteCheck& check : run.program.checks) {
    if (check.means != what) continue;
    if (std::string found = find_fault(run, check.buffer); !found.empty()) return found;
  }
  return "";
}

}  // namespace einc
