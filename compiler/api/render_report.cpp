// SPDX-License-Identifier: Apache-2.0
#include "compiler/api/render_report.h"

#include "compiler/codegen/llvm/native_code.h"
#include "compiler/pipeline/cpu_program.h"
#include "compiler/pipeline/cuda_program.h"
#include "compiler/report/html.h"
#include "compiler/report/json.h"

namespace einc {

PlanStep plan_for_device(const Scheduling& scheduling, const std::optional<Device>& device, std::optional<int> threads) {
  if (!device || device->target == DeviceTarget::cpu) {
    const int usual = device && device->threads > 0 ? static_cast<int>(device->threads) : 1;
    return plan_for_processor(native_processor(), scheduling, threads.value_or(usual));
  }
  CudaOptions cuda;
  if (device->gpu) cuda.gpu = *device->gpu;
  cuda.attention = cuda::AttentionLibrary::get();
  cuda.scheduling = scheduling;
  return plan_for_gpu(cuda);
}

std::string render_report(ReportForm form, const Report& report, const Compilation& compilation, TextStyle style) {
  switch (form) {
    case ReportForm::json:
      return render_json(report, *compilation.graph) + "\n";
    case ReportForm::text:
      return render_text(report, style);
    case ReportForm::html:
      break;
  }
  std::vector<ReportSource> sources;  // kernels come from the lines of all of them
  for (size_t i = 1; i <= compilation.sources.file_count(); ++i) {
    const SourceFile& file = compilation.sources.file(static_cast<FileId>(i));
    sources.push_back({file.name(), std::string(file.text())});
  }
  return render_html(report, *compilation.graph, sources);
}

}  // namespace einc
