// SPDX-License-Identifier: Apache-2.0
// cuDNN's attention behind attention_plugin.h. With EINC_CUDNN_DEVICE, a file that describes a GPU as cuDNN does (JSON), it answers for
// that one, which need not be here: its plans tell that cuDNN has a way, and do not run.
#include <cudnn_frontend.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "runtime/base/failure.h"
#include "runtime/cuda/open_library.h"
#include "runtime/program/attention_plugin.h"

namespace fe = cudnn_frontend;

// Where the frontend looks for cuDNN's functions.
namespace cudnn_frontend {
void* cudnn_dlhandle = nullptr;
}

struct einc_attention_plan {
  std::unique_ptr<fe::graph::Graph> graph;
  size_t workspace_bytes = 0;
  bool runs = false;
};

namespace {

using Tensor = std::shared_ptr<fe::graph::Tensor_attributes>;

thread_local std::string last_error;

// The tensors by the numbers that a run names them by.
enum Operand : int64_t { kQ = 1, kK, kV, kO, kLogSum, kDO, kDQ, kDK, kDV };

void check(fe::error_t status) {
  if (status.is_bad()) throw std::runtime_error(status.get_message());
}

// cuDNN and what it takes for granted, under the names that the frontend and cuDNN open them by.
void open_libraries() {
  using einc::cuda::OpenLibrary;
  static const OpenLibrary runtime =
      CUDART_VERSION >= 13000 ? OpenLibrary({"libcudart.so.13"}, "the CUDA toolkit") : OpenLibrary({"libcudart.so.12"}, "the CUDA toolkit");
  static const OpenLibrary cudnn({"libcudnn.so.9"}, "cuDNN");
  try {
    static const OpenLibrary compiler({"libnvrtc.so.13", "libnvrtc.so.12"}, "the CUDA toolkit");
  } catch (const einc::RuntimeFailure&) {
    // cuDNN looks for it itself, where it needs one.
  }
  setenv("CUDNN_FRONTEND_CUDART_LIB_NAME", runtime.name().c_str(), 0);
  fe::cudnn_dlhandle = cudnn.handle();
}

// Of the context that is current when it is first asked for: a process' only one.
cudnnHandle_t handle() {
  static cudnnHandle_t made = [] {
    cudnnHandle_t fresh = nullptr;
    if (const cudnnStatus_t status = fe::detail::create_handle(&fresh); status != CUDNN_STATUS_SUCCESS)
      throw std::runtime_error(fmt::format("cuDNN finds no GPU: {}", fe::detail::get_error_string(status)));
    return fresh;
  }();
  return made;
}
std::mutex handle_mutex;  // its stream is the run's

// cuDNN looks for NVIDIA's driver before it says what it can do; for a GPU that is not here the toolkit's stub will do.
void open_driver_or_stub() {
  const char* home = std::getenv("CUDA_HOME");
  const std::string toolkit = home ? home : "/usr/local/cuda";
  for (const std::string& file : {std::string("libcuda.so.1"), toolkit + "/lib64/stubs/libcuda.so", toolkit + "/lib/stubs/libcuda.so"})
    if (dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL)) return;
}

std::shared_ptr<const fe::DeviceProperties> described_device(int& version) {
  const char* file = std::getenv("EINC_CUDNN_DEVICE");
  if (!file || !*file) return nullptr;
  open_driver_or_stub();
  std::ifstream in(file);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  auto device = std::make_shared<fe::DeviceProperties>();
  check(device->deserialize({text.begin(), text.end()}));
  version = nlohmann::json::parse(text).at("deviceVer").get<int>() / 10;
  return device;
}

class Builder {
 public:
  explicit Builder(const einc_attention_problem& problem) : p_(problem) {
    const auto type = p_.dtype == EINC_ATTENTION_BF16 ? fe::DataType_t::BFLOAT16 : fe::DataType_t::HALF;
    graph_->set_io_data_type(type).set_intermediate_data_type(fe::DataType_t::FLOAT).set_compute_data_type(fe::DataType_t::FLOAT);
  }

  std::unique_ptr<einc_attention_plan> run() {
    int version = 0;
    const auto device = described_device(version);
    if (device) graph_->set_device_properties(device).set_sm_version(version);  // before the nodes, which take it over
    p_.direction == EINC_ATTENTION_FORWARD ? forward() : backward();
    check(graph_->validate());
    check(device ? graph_->build_operation_graph() : graph_->build_operation_graph(handle()));
    check(graph_->create_execution_plans({fe::HeurMode_t::A}));
    check(device ? graph_->check_support() : graph_->check_support(handle()));
    if (!device) check(graph_->build_plans(handle()));
    auto plan = std::make_unique<einc_attention_plan>();
    plan->runs = !device;
    if (!device) plan->workspace_bytes = static_cast<size_t>(graph_->get_workspace_size());
    plan->graph = std::move(graph_);
    return plan;
  }

 private:
  struct Layout {
    std::vector<int64_t> sizes, steps;
  };
  // An axis of size 1 lies as if packed.
  Layout layout(const einc_attention_steps& steps, int64_t heads, int64_t rows, int64_t width) const {
    const int64_t row = rows == 1 ? width : steps.row, head = heads == 1 ? row * rows : steps.head;
    return {{p_.batch, heads, rows, width}, {p_.batch == 1 ? head * heads : steps.batch, head, row, 1}};
  }
  Layout of_queries(const einc_attention_steps& steps, int64_t width) const { return layout(steps, p_.query_heads, p_.queries, width); }
  Layout of_keys(const einc_attention_steps& steps, int64_t width) const { return layout(steps, p_.key_heads, p_.keys, width); }

  Tensor input(const char* name, Operand operand, const Layout& layout) {
    return graph_->tensor(fe::graph::Tensor_attributes().set_name(name).set_uid(operand).set_dim(layout.sizes).set_stride(layout.steps));
  }
  static void set_output(const Tensor& tensor, Operand operand, const Layout& layout) {
    tensor->set_output(true).set_uid(operand).set_dim(layout.sizes).set_stride(layout.steps);
  }
  void mask(auto& attributes) const {
    if (p_.mask != EINC_ATTENTION_CAUSAL) return;
    attributes.set_diagonal_alignment(fe::DiagonalAlignment_t::TOP_LEFT).set_diagonal_band_right_bound(0);
  }

  void forward() {
    auto attributes = fe::graph::SDPA_attributes().set_name("attention").set_generate_stats(p_.keeps_log_sum != 0);
    attributes.set_attn_scale(static_cast<float>(p_.scale));
    mask(attributes);
    const Tensor q = input("q", kQ, of_queries(p_.q, p_.head_size)), k = input("k", kK, of_keys(p_.k, p_.head_size)),
                 v = input("v", kV, of_keys(p_.v, p_.value_size));
    const auto [o, log_sum] = graph_->sdpa(q, k, v, attributes);
    set_output(o, kO, of_queries(p_.o, p_.value_size));
    if (!p_.keeps_log_sum) return;
    set_output(log_sum, kLogSum, of_queries(p_.log_sum, 1));
    log_sum->set_data_type(fe::DataType_t::FLOAT);
  }

  void backward() {
    auto attributes = fe::graph::SDPA_backward_attributes().set_name("attention").set_deterministic_algorithm(p_.deterministic != 0);
    attributes.set_attn_scale(static_cast<float>(p_.scale));
    mask(attributes);
    const Tensor q = input("q", kQ, of_queries(p_.q, p_.head_size)), k = input("k", kK, of_keys(p_.k, p_.head_size)),
                 v = input("v", kV, of_keys(p_.v, p_.value_size)), o = input("o", kO, of_queries(p_.o, p_.value_size)),
                 d_o = input("d_o", kDO, of_queries(p_.d_o, p_.value_size)), log_sum = input("log_sum", kLogSum, of_queries(p_.log_sum, 1));
    log_sum->set_data_type(fe::DataType_t::FLOAT);
    const auto [d_q, d_k, d_v] = graph_->sdpa_backward(q, k, v, o, d_o, log_sum, attributes);
    set_output(d_q, kDQ, of_queries(p_.d_q, p_.head_size));
    set_output(d_k, kDK, of_keys(p_.d_k, p_.head_size));
    set_output(d_v, kDV, of_keys(p_.d_v, p_.value_size));
  }

  const einc_attention_problem p_;
  std::unique_ptr<fe::graph::Graph> graph_ = std::make_unique<fe::graph::Graph>();
};

void run(const einc_attention_plan& plan, const einc_attention_buffers& b, uint64_t workspace, void* stream) {
  if (!plan.runs) throw std::runtime_error("this plan is for the GPU of EINC_CUDNN_DEVICE, and does not run");
  std::unordered_map<int64_t, void*> addresses;
  const auto add = [&](Operand operand, uint64_t address) {
    if (address != 0) addresses[operand] = reinterpret_cast<void*>(address);
  };
  add(kQ, b.q), add(kK, b.k), add(kV, b.v), add(kO, b.o), add(kLogSum, b.log_sum);
  add(kDO, b.d_o), add(kDQ, b.d_q), add(kDK, b.d_k), add(kDV, b.d_v);
  const std::lock_guard lock(handle_mutex);
  if (fe::detail::set_stream(handle(), static_cast<cudaStream_t>(stream)) != CUDNN_STATUS_SUCCESS)
    throw std::runtime_error("cuDNN does not take the stream");
  check(plan.graph->execute(handle(), addresses, reinterpret_cast<void*>(workspace)));
}

// What `work` gives, or `failed` with the reason as the last error, in one line.
template <class Result>
Result guarded(Result failed, const auto& work) {
  try {
    return work();
  } catch (const std::exception& failure) {
    last_error = failure.what();
    for (char& c : last_error)
      if (c == '\n') c = ' ';
    return failed;
  }
}

}  // namespace

#define EINC_EXPORT extern "C" __attribute__((visibility("default")))

EINC_EXPORT int einc_attention_abi() { return EINC_ATTENTION_ABI; }

EINC_EXPORT const char* einc_attention_version() {
  return guarded<const char*>(nullptr, [] {
    open_libraries();
    static const std::string text = [] {
      const size_t version = fe::detail::get_backend_version();
      return fmt::format("cuDNN {}.{}.{}", version / 10000, version / 100 % 100, version % 100);
    }();
    return text.c_str();
  });
}

EINC_EXPORT einc_attention_plan* einc_attention_create(const einc_attention_problem* problem) {
  return guarded<einc_attention_plan*>(nullptr, [&] { return Builder(*problem).run().release(); });
}

EINC_EXPORT void einc_attention_destroy(einc_attention_plan* plan) { delete plan; }

EINC_EXPORT size_t einc_attention_workspace(const einc_attention_plan* plan) { return plan->workspace_bytes; }

EINC_EXPORT int einc_attention_run(const einc_attention_plan* plan, const einc_attention_buffers* buffers, uint64_t workspace,
                                   void* stream) {
  return guarded<int>(1, [&] {
    run(*plan, *buffers, workspace, stream);
    return 0;
  });
}

EINC_EXPORT const char* einc_attention_error() { return last_error.c_str(); }
