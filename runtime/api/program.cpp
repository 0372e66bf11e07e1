#include <einc/runtime.h>

#include "runtime/executor/session.h"

namespace einc {

const std::string& Program::name() const { return rep_->info.name; }
const std::vector<std::pair<std::string, int64_t>>& Program::dims() const { return rep_->info.dims; }
const std::vector<TensorInfo>& Program::inputs() const { return rep_->info.inputs; }
const std::vector<TensorInfo>& Program::params() const { return rep_->info.params; }
const std::vector<TensorInfo>& Program::states() const { return rep_->info.states; }
const std::vector<TensorInfo>& Program::outputs() const { return rep_->info.outputs; }
bool Program::trains() const { return rep_->info.trains; }

}  // namespace einc
