// SPDX-License-Identifier: Apache-2.0
// Compiled programs and their tensors, and reports.
#include <fmt/format.h>

#include "compiler/c_abi/handles.h"
#include "compiler/c_abi/status.h"

using namespace einc::c_abi;

namespace einc::c_abi {
namespace {

static_assert(static_cast<int>(DType::f64) == EINC_F64 && static_cast<int>(DType::f8e5m2) == EINC_F8E5M2 &&
              static_cast<int>(DType::boolean) == EINC_BOOL);

std::vector<TensorText> texts_of(const std::vector<TensorInfo>& tensors) {
  std::vector<TensorText> texts;
  texts.reserve(tensors.size());
  for (const TensorInfo& tensor : tensors) {
    texts.push_back({tensor, {}});
    for (const std::string& axis : texts.back().info.axes) texts.back().axes.push_back(axis.c_str());
  }
  return texts;
}

const CompileOptions& options_of(const einc_options* options) {
  static const CompileOptions none;
  return options == nullptr ? none : options->options;
}

const char* name_or(const char* name) { return name == nullptr ? "model.ein" : name; }

}  // namespace

DType dtype_of(einc_dtype dtype) {
  const int value = static_cast<int>(dtype);
  if (value < EINC_F64 || value > EINC_BOOL) wrong_call(fmt::format("{} is no dtype", value));
  return static_cast<DType>(value);
}

einc_dtype dtype_of(DType dtype) { return static_cast<einc_dtype>(dtype); }

ReportForm form_of(einc_report_form form) {
  switch (form) {
    case EINC_REPORT_JSON:
      return ReportForm::json;
    case EINC_REPORT_HTML:
      return ReportForm::html;
    case EINC_REPORT_TEXT:
      return ReportForm::text;
  }
  wrong_call(fmt::format("{} is no form of a report", static_cast<int>(form)));
}

}  // namespace einc::c_abi

einc_model::einc_model(einc::Model compiled)
    : model(std::move(compiled)),
      tensors{texts_of(model.inputs()), texts_of(model.params()), texts_of(model.states()), texts_of(model.outputs())} {}

einc_status einc_compile_file(const char* path, const einc_options* options, einc_model** model) {
  return guard([&] {
    require(path, "einc_compile_file", "path");
    require(model, "einc_compile_file", "model");
    *model = new einc_model(einc::compile_file(path, options_of(options)));
  });
}

einc_status einc_compile_text(const char* text, const char* name, const einc_options* options, einc_model** model) {
  return guard([&] {
    require(text, "einc_compile_text", "text");
    require(model, "einc_compile_text", "model");
    *model = new einc_model(einc::compile_text(text, options_of(options), name_or(name)));
  });
}

void einc_model_free(einc_model* model) { delete model; }

const char* einc_model_name(const einc_model* model) { return model == nullptr ? "" : model->model.name().c_str(); }

int einc_model_trains(const einc_model* model) { return model != nullptr && model->model.trains() ? 1 : 0; }

size_t einc_model_dim_count(const einc_model* model) { return model == nullptr ? 0 : model->model.dims().size(); }

einc_status einc_model_dim(const einc_model* model, size_t index, const char** name, int64_t* value) {
  return guard([&] {
    require(model, "einc_model_dim", "model");
    require(name, "einc_model_dim", "name");
    require(value, "einc_model_dim", "value");
    const auto& dims = model->model.dims();
    if (index >= dims.size()) wrong_call(fmt::format("einc_model_dim: index {} of {} dims", index, dims.size()));
    *name = dims[index].first.c_str();
    *value = dims[index].second;
  });
}

size_t einc_model_tensor_count(const einc_model* model, einc_role role) {
  const auto index = static_cast<size_t>(role);
  return model == nullptr || index >= model->tensors.size() ? 0 : model->tensors[index].size();
}

einc_status einc_model_tensor(const einc_model* model, einc_role role, size_t index, einc_tensor_info* info) {
  return guard([&] {
    require(model, "einc_model_tensor", "model");
    require(info, "einc_model_tensor", "info");
    if (const size_t count = einc_model_tensor_count(model, role); index >= count)
      wrong_call(fmt::format("einc_model_tensor: index {} of {} tensors", index, count));
    const TensorText& tensor = model->tensors[static_cast<size_t>(role)][index];
    *info = {tensor.info.name.c_str(), dtype_of(tensor.info.dtype), tensor.info.shape.size(),
             tensor.axes.data(),       tensor.info.shape.data(),    static_cast<size_t>(tensor.info.bytes())};
  });
}

einc_status einc_model_report(const einc_model* model, einc_report_form form, einc_report** report) {
  return guard([&] {
    require(model, "einc_model_report", "model");
    require(report, "einc_model_report", "report");
    *report = new einc_report{model->model.render_report(form_of(form))};
  });
}

einc_status einc_report_of_file(const char* path, const einc_options* options, einc_report_form form, einc_report** report) {
  return guard([&] {
    require(path, "einc_report_of_file", "path");
    require(report, "einc_report_of_file", "report");
    *report = new einc_report{einc::render_report_of_file(path, form_of(form), options_of(options))};
  });
}

einc_status einc_report_of_text(const char* text, const char* name, const einc_options* options, einc_report_form form,
                                einc_report** report) {
  return guard([&] {
    require(text, "einc_report_of_text", "text");
    require(report, "einc_report_of_text", "report");
    *report = new einc_report{einc::render_report_of_text(text, form_of(form), options_of(options), name_or(name))};
  });
}

const char* einc_report_text(const einc_report* report) { return report == nullptr ? "" : report->text.c_str(); }

void einc_report_free(einc_report* report) { delete report; }
