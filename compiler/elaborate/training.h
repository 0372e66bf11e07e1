// SPDX-License-Identifier: Apache-2.0
// Training of one program: see training.cpp.
#pragma once
#include <optional>
#include <string_view>
#include <vector>

#include "compiler/elaborate/elaborator.h"
#include "compiler/elaborate/loss_scale.h"

namespace einc {

// `*` stands for any characters, dots included, `?` for one.
bool matches_glob(std::string_view glob, std::string_view path);

class Training {
 public:
  // `rate`: an argument that stands for every optimizer's lr; null: none.
  Training(Elaborator& elaborator, const std::vector<ast::ParamGroup>& groups, const ast::Argument* rate);
  void run();

 private:
  struct Trained {
    NodeId param, gradient;
    size_t group = 0;
  };
  struct Settings {
    std::vector<BoundArgument> arguments;  // of the optimizer's fn; p and g are put in per param
    std::optional<Value> weight_decay, clip_norm;
    bool decay_all = false;
    bool decoupled = false;
    size_t lr = 0;  // position of the rate among the arguments; 0: there is none
  };

  void collect_params();
  void suggest_path(Diagnostics::Builder report, const ast::ParamGroup& group, const std::vector<Name>& left);
  void warn_of_left(const std::vector<Name>& left);
  void differentiate_loss();
  std::vector<bool> read_in_training(NodeId loss) const;
  NodeId summed(NodeId param, NodeId gradient);
  void clear_sums();
  std::optional<FnRef> find_optimizer(const ast::ParamGroup& group);
  bool read_settings(const ast::ParamGroup& group, const FnRef& optimizer, Settings& settings);
  void optimize_group(size_t index);
  bool clip(size_t group, const Value& limit);
  bool is_watched() const;
  void watch(std::string_view name, size_t group, std::optional<NodeId> value);
  Value beside_param(const Value& value);
  bool optimize(const Trained& trained, const FnRef& optimizer, const Settings& settings);
  bool finish(NodeId param, const Value& result);
  std::optional<Value> learning_rate(const FnRef& optimizer, const Settings& settings);
  std::optional<Value> call(std::string_view fn, std::vector<Value> values, const std::string& path);
  static bool is_zero(const Value& value);
  void stamp(NodeId param);
  void unstamp();

  Elaborator& e_;
  Builder& build_;
  const std::vector<ast::ParamGroup>& groups_;
  const ast::Argument* rate_;
  const TrainingOptions& options_;
  SourceUnit* library_;
  std::vector<Trained> trained_;
  std::vector<NodeId> sums_;  // over micro-batches, as the step finds them
  NodeId step_;
  std::optional<LossScale> loss_scale_;  // under f16
};

}  // namespace einc
