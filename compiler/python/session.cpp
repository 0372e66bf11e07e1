// SPDX-License-Identifier: Apache-2.0
#include "compiler/python/session.h"

#include <fmt/format.h>

#include <algorithm>

namespace einc::python {
namespace {

// Clears the flag also when a function throws.
class Turn {
 public:
  explicit Turn(std::atomic<bool>& busy) : busy_(busy) {
    if (busy_.exchange(true)) throw Error(ErrorKind::usage, "the session runs on another thread: one session serves one thread at a time");
  }
  ~Turn() { busy_ = false; }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  std::atomic<bool>& busy_;
};

}  // namespace

template <class Function>
auto PythonSession::alone(Function&& function) {
  const Turn turn(busy_);
  const nb::gil_scoped_release released;
  return function();
}

// Results of other targets are copied from where they were made, to memory that may move.
PythonSession::PythonSession(const Model& model, Target target, int threads, Handing handing, const ThreadTeam& team)
    : session_(model, {.threads = threads, .team = team}), handing_(target == Target::cpu ? handing : Handing::copies) {}

void PythonSession::init(uint64_t seed) {
  alone([&] { session_.init(seed); });
}

void PythonSession::seed(uint64_t seed) {
  const Turn turn(busy_);
  session_.seed(seed);
}

void PythonSession::set(const std::string& name, nb::handle object) {
  const ReadArray array = array_of(object, name, Access::read);
  nb::ndarray<nb::ro, nb::c_contig> packed;  // the same, or a copy without gaps
  if (!nb::try_cast(object, packed, /*convert=*/true))
    throw Error(ErrorKind::usage, fmt::format("the array for '{}' has gaps, and its library makes no copy without", name));
  const Turn turn(busy_);
  session_.set(name, TensorView(dtype_of(array, name), shape_of(array), packed.data()));
  held_.erase(name);
}

void PythonSession::bind(const std::string& name, nb::handle object) {
  const bool input = is_input(name);
  ReadArray array = array_of(object, name, input ? Access::read : Access::write);
  const bool row_major = is_row_major(array);
  if (!row_major && !input) throw Error(ErrorKind::usage, fmt::format("the array for '{}' is not row-major without gaps", name));
  if (!row_major || was_handed_out(array)) return set(name, object);
  const Turn turn(busy_);
  session_.bind(name, dtype_of(array, name), shape_of(array), const_cast<void*>(array.data()));
  held_.insert_or_assign(name, std::move(array));
}

void PythonSession::bind_output(const std::string& name, nb::handle object) {
  ReadArray array = array_of(object, name, Access::write);
  if (!is_row_major(array)) throw Error(ErrorKind::usage, fmt::format("the array for '{}' is not row-major without gaps", name));
  const Turn turn(busy_);
  session_.bind_output(name, dtype_of(array, name), shape_of(array), const_cast<void*>(array.data()));
  outputs_.insert_or_assign(name, std::move(array));
}

void PythonSession::release_outputs() {
  const Turn turn(busy_);
  for (const auto& [name, array] : outputs_) session_.bind_output(name, dtype_of(array, name), shape_of(array), nullptr);
  outputs_.clear();
}

LoadedWeights PythonSession::load(const std::string& path, const std::string& names) {
  return alone([&] { return session_.load(path, names); });
}

void PythonSession::save(const std::string& path, Saved what) {
  alone([&] { session_.save(path, what); });
}

void PythonSession::save_checkpoint(const std::string& folder, int keep) {
  alone([&] { session_.save_checkpoint(folder, keep); });
}

bool PythonSession::resume(const std::string& folder) {
  return alone([&] { return session_.resume(folder); });
}

void PythonSession::run() {
  alone([&] { session_.run(); });
}

void PythonSession::forward() {
  alone([&] { session_.forward(); });
}

void PythonSession::backward() {
  alone([&] { session_.backward(); });
}

double PythonSession::step() {
  return alone([&] {
    session_.step();
    return session_.loss();
  });
}

double PythonSession::evaluate() {
  return alone([&] { return session_.evaluate(); });
}

double PythonSession::loss() {
  const Turn turn(busy_);
  return session_.loss();
}

uint64_t PythonSession::steps() {
  const Turn turn(busy_);
  return session_.steps();
}

TensorView PythonSession::tensor(Role role, const std::string& name) const {
  switch (role) {
    case Role::input:
      return session_.input(name);
    case Role::param:
      return session_.param(name);
    case Role::state:
      return session_.state(name);
    case Role::output:
      return session_.output(name);
    case Role::gradient:
      return session_.gradient(name);
  }
  throw Error(ErrorKind::internal, "a tensor of no role");
}

nb::object PythonSession::read(Role role, const std::string& name) {
  const Turn turn(busy_);
  const TensorView found = tensor(role, name);
  if (handing_ == Handing::copies) return copy_of(found);
  if (found.bytes() > 0) {
    size_t& bytes = handed_out_[static_cast<const std::byte*>(found.data())];
    bytes = std::max(bytes, static_cast<size_t>(found.bytes()));
  }
  return view_of(found, owner_of(found), role == Role::output ? Access::write : Access::read);
}

bool PythonSession::is_input(const std::string& name) const {
  const auto& inputs = session_.program().inputs();
  return std::any_of(inputs.begin(), inputs.end(), [&](const TensorInfo& tensor) { return tensor.name == name; });
}

bool PythonSession::was_handed_out(const ReadArray& array) const {
  const auto* begin = static_cast<const std::byte*>(array.data());
  const auto* end = begin + bytes_of_array(array);
  return std::any_of(handed_out_.begin(), handed_out_.end(),
                     [&](const auto& range) { return begin < range.first + range.second && range.first < end; });
}

// The session, and the array that the tensor lies in where it is the caller's: an output may be a view of an input.
nb::object PythonSession::owner_of(const TensorView& tensor) {
  nb::object self = nb::find(this);
  const auto* at = static_cast<const std::byte*>(tensor.data());
  for (const auto& [name, array] : held_) {
    const auto* begin = static_cast<const std::byte*>(array.data());
    if (at < begin || at >= begin + bytes_of_array(array)) continue;
    handed_out_.erase(at);  // it is the caller's own
    return nb::make_tuple(self, nb::cast(array, nb::rv_policy::reference));
  }
  return self;
}

}  // namespace einc::python
