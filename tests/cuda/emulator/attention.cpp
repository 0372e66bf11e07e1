// SPDX-License-Identifier: Apache-2.0
// The emulated GPU as a plug-in for attention (runtime/program/attention_plugin.h): naive loops in f64 over its memory.
#include "runtime/program/attention_plugin.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "emulator.h"
#include "gpu.h"
#include "runtime/base/float_format.h"

using einc::DType;
using emulator::Call;

struct einc_attention_plan {
  einc_attention_problem problem;
  mutable bool ran = false;
};

namespace emulator {
namespace {

long long widest_head = 128;

// Of the GPU's memory: elements of a head side by side, or one number for each row.
struct Tensor {
  uint64_t address;
  einc_attention_steps steps;
  int64_t batch, heads, rows, width;
  DType dtype;

  uint64_t at(int64_t b, int64_t h, int64_t r, int64_t e) const {
    return address + static_cast<uint64_t>((b * steps.batch + h * steps.head + r * steps.row + e) * einc::bytes_of(dtype));
  }
  double get(int64_t b, int64_t h, int64_t r, int64_t e = 0) const {
    const auto* from = reinterpret_cast<const std::byte*>(at(b, h, r, e));
    float number = 0;
    uint16_t bits = 0;
    if (dtype == DType::f32) return std::memcpy(&number, from, sizeof number), number;
    return std::memcpy(&bits, from, sizeof bits), einc::decode_float(dtype, bits);
  }
  void set(int64_t b, int64_t h, int64_t r, int64_t e, double value) const {
    einc::store_number(dtype, value, reinterpret_cast<std::byte*>(at(b, h, r, e)));
  }
  bool lies_in_memory() const {
    const uint64_t end = at(batch - 1, heads - 1, rows - 1, width - 1) + static_cast<uint64_t>(einc::bytes_of(dtype));
    return (width == 1 || address % 16 == 0) && check_memory(address, end - address) == 0;
  }
};

struct Tensors {
  Tensor q, k, v, o, log_sum, d_o, d_q, d_k, d_v;
};

Tensors tensors_of(const einc_attention_problem& p, const einc_attention_buffers& at) {
  const DType dtype = p.dtype == EINC_ATTENTION_BF16 ? DType::bf16 : DType::f16;
  const auto of_queries = [&](uint64_t address, const einc_attention_steps& steps, int64_t width) {
    return Tensor{address, steps, p.batch, p.query_heads, p.queries, width, dtype};
  };
  const auto of_keys = [&](uint64_t address, const einc_attention_steps& steps, int64_t width) {
    return Tensor{address, steps, p.batch, p.key_heads, p.keys, width, dtype};
  };
  Tensors t{of_queries(at.q, p.q, p.head_size),     of_keys(at.k, p.k, p.head_size),      of_keys(at.v, p.v, p.value_size),
            of_queries(at.o, p.o, p.value_size),    of_queries(at.log_sum, p.log_sum, 1), of_queries(at.d_o, p.d_o, p.value_size),
            of_queries(at.d_q, p.d_q, p.head_size), of_keys(at.d_k, p.d_k, p.head_size),  of_keys(at.d_v, p.d_v, p.value_size)};
  t.log_sum.dtype = DType::f32;
  return t;
}

class Attention {
 public:
  Attention(const einc_attention_problem& problem, const einc_attention_buffers& buffers) : p_(problem), t_(tensors_of(problem, buffers)) {}

  bool lies_in_memory() const {
    const bool forward = p_.direction == EINC_ATTENTION_FORWARD;
    for (const Tensor* t : {&t_.q, &t_.k, &t_.v, &t_.o})
      if (!t->lies_in_memory()) return false;
    if ((!forward || p_.keeps_log_sum) && !t_.log_sum.lies_in_memory()) return false;
    for (const Tensor* t : {&t_.d_o, &t_.d_q, &t_.d_k, &t_.d_v})
      if (!forward && !t->lies_in_memory()) return false;
    return true;
  }

  void forward() const {
    each_row([&](int64_t b, int64_t h, int64_t i) {
      const std::vector<double> s = scores(b, h, i);
      double most = -std::numeric_limits<double>::infinity(), sum = 0;
      for (const double x : s) most = std::max(most, x);
      for (const double x : s) sum += std::exp(x - most);
      const double log_sum = most + std::log(sum);
      for (int64_t e = 0; e < p_.value_size; ++e) {
        double o = 0;
        for (size_t j = 0; j < s.size(); ++j) o += std::exp(s[j] - log_sum) * t_.v.get(b, key_head(h), static_cast<int64_t>(j), e);
        t_.o.set(b, h, i, e, o);
      }
      if (p_.keeps_log_sum) t_.log_sum.set(b, h, i, 0, log_sum);
    });
  }

  // Sums of keys' gradients lie in `work`.
  void backward(double* work) const {
    const auto keys = static_cast<size_t>(p_.batch * p_.key_heads * p_.keys);
    double *d_k = work, *d_v = work + keys * static_cast<size_t>(p_.head_size);
    std::fill(work, d_v + keys * static_cast<size_t>(p_.value_size), 0.0);
    each_row([&](int64_t b, int64_t h, int64_t i) {
      const std::vector<double> s = scores(b, h, i);
      double delta = 0;
      for (int64_t e = 0; e < p_.value_size; ++e) delta += t_.o.get(b, h, i, e) * t_.d_o.get(b, h, i, e);
      std::vector<double> d_q(static_cast<size_t>(p_.head_size), 0.0);
      for (int64_t j = 0; j < static_cast<int64_t>(s.size()); ++j) {
        const double weight = std::exp(s[static_cast<size_t>(j)] - t_.log_sum.get(b, h, i));
        const int64_t n = key_head(h), key = (b * p_.key_heads + n) * p_.keys + j;
        double d_weight = 0;
        for (int64_t e = 0; e < p_.value_size; ++e) {
          d_weight += t_.d_o.get(b, h, i, e) * t_.v.get(b, n, j, e);
          d_v[key * p_.value_size + e] += weight * t_.d_o.get(b, h, i, e);
        }
        const double d_score = weight * (d_weight - delta) * p_.scale;
        for (int64_t d = 0; d < p_.head_size; ++d) {
          d_q[static_cast<size_t>(d)] += d_score * t_.k.get(b, n, j, d);
          d_k[key * p_.head_size + d] += d_score * t_.q.get(b, h, i, d);
        }
      }
      for (int64_t d = 0; d < p_.head_size; ++d) t_.d_q.set(b, h, i, d, d_q[static_cast<size_t>(d)]);
    });
    for (int64_t b = 0; b < p_.batch; ++b)
      for (int64_t n = 0; n < p_.key_heads; ++n)
        for (int64_t j = 0; j < p_.keys; ++j) {
          for (int64_t d = 0; d < p_.head_size; ++d) t_.d_k.set(b, n, j, d, *d_k++);
          for (int64_t e = 0; e < p_.value_size; ++e) t_.d_v.set(b, n, j, e, *d_v++);
        }
  }

 private:
  int64_t key_head(int64_t h) const { return h / (p_.query_heads / p_.key_heads); }

  void each_row(const auto& visit) const {
    for (int64_t b = 0; b < p_.batch; ++b)
      for (int64_t h = 0; h < p_.query_heads; ++h)
        for (int64_t i = 0; i < p_.queries; ++i) visit(b, h, i);
  }

  // Of the keys that a query sees.
  std::vector<double> scores(int64_t b, int64_t h, int64_t i) const {
    const int64_t keys = p_.mask == EINC_ATTENTION_CAUSAL ? std::min(i + 1, p_.keys) : p_.keys;
    std::vector<double> s(static_cast<size_t>(keys), 0.0);
    for (int64_t j = 0; j < keys; ++j) {
      for (int64_t d = 0; d < p_.head_size; ++d) s[static_cast<size_t>(j)] += t_.q.get(b, h, i, d) * t_.k.get(b, key_head(h), j, d);
      s[static_cast<size_t>(j)] *= p_.scale;
    }
    return s;
  }

  const einc_attention_problem p_;
  const Tensors t_;
};

}  // namespace

void set_widest_head(long long width) { widest_head = width; }

}  // namespace emulator

extern "C" {

int einc_attention_abi() { return EINC_ATTENTION_ABI; }

const char* einc_attention_version() { return "emulated attention 1"; }

einc_attention_plan* einc_attention_create(const einc_attention_problem* problem) {
  const Call call("einc_attention_create");
  if (problem->head_size > emulator::widest_head || problem->value_size > emulator::widest_head) {
    emulator::fail(emulator::kInvalidValue, "its heads are wider than " + std::to_string(emulator::widest_head));
    return nullptr;
  }
  return new einc_attention_plan{*problem};
}

void einc_attention_destroy(einc_attention_plan* plan) { delete plan; }

size_t einc_attention_workspace(const einc_attention_plan* plan) {
  const einc_attention_problem& p = plan->problem;
  if (p.direction == EINC_ATTENTION_FORWARD) return 0;
  return sizeof(double) * static_cast<size_t>(p.batch * p.key_heads * p.keys * (p.head_size + p.value_size));
}

int einc_attention_run(const einc_attention_plan* plan, const einc_attention_buffers* buffers, uint64_t workspace, void* stream) {
  const Call call("einc_attention_run");
  auto* given = static_cast<einc::cuda::Stream>(stream);
  if (!plan->ran && emulator::is_captured(given)) return emulator::fail(emulator::kWrongCapture, "a plan's first run is captured");
  plan->ran = true;
  const emulator::Attention attention(plan->problem, *buffers);
  const size_t bytes = einc_attention_workspace(plan);
  if (!attention.lies_in_memory()) return emulator::fail(emulator::kInvalidValue, "a tensor goes beyond the GPU's memory");
  if (bytes > 0 && (workspace % 256 != 0 || emulator::check_memory(workspace, bytes) != 0))
    return emulator::fail(emulator::kInvalidValue, "the workspace goes beyond the GPU's memory");
  emulator::note_epilogue(given);
  return emulator::give(given, [attention, work = reinterpret_cast<double*>(workspace), backward = bytes > 0] {
    backward ? attention.backward(work) : attention.forward();
    return 0;
  });
}

const char* einc_attention_error() { return emulator::gpu().failure.c_str(); }

}  // extern "C"
