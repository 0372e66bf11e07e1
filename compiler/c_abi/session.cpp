// SPDX-License-Identifier: Apache-2.0
// Sessions: each function is one of einc::Session.
#include <fmt/format.h>

#include "compiler/c_abi/handles.h"
#include "compiler/c_abi/status.h"

using namespace einc::c_abi;

namespace {

// The sizes of a caller's tensor. No tensor of a program has more axes than the language allows, so a larger rank is a mistake.
std::vector<int64_t> shape_of(const int64_t* shape, size_t rank, const char* function) {
  constexpr size_t kMaxRank = 32;
  if (rank > kMaxRank) wrong_call(fmt::format("{}: rank {}, the largest is {}", function, rank, kMaxRank));
  if (rank > 0) require(shape, function, "shape");
  return {shape, shape + rank};
}

einc::TensorView read(const einc::Session& session, einc_role role, const char* name) {
  switch (role) {
    case EINC_INPUT:
      return session.input(name);
    case EINC_PARAM:
      return session.param(name);
    case EINC_STATE:
      return session.state(name);
    case EINC_OUTPUT:
      return session.output(name);
    case EINC_GRADIENT:
      return session.gradient(name);
  }
  wrong_call(fmt::format("{} is no role of a tensor", static_cast<int>(role)));
}

// A function of the session, with nothing to give.
template <class Function>
einc_status on_session(einc_session* session, const char* name, Function&& function) {
  return guard([&] {
    require(session, name, "session");
    function(session->session);
  });
}

}  // namespace

einc_status einc_session_new(const einc_model* model, int threads, einc_session** session) {
  return guard([&] {
    require(model, "einc_session_new", "model");
    require(session, "einc_session_new", "session");
    *session = new einc_session{einc::Session(model->model, {.threads = threads}), {}, {}};
  });
}

void einc_session_free(einc_session* session) { delete session; }

einc_status einc_session_init(einc_session* session, uint64_t seed) {
  return on_session(session, "einc_session_init", [&](einc::Session& s) { s.init(seed); });
}

einc_status einc_session_set(einc_session* session, const char* name, einc_dtype dtype, const int64_t* shape, size_t rank,
                             const void* data) {
  return on_session(session, "einc_session_set", [&](einc::Session& s) {
    require(name, "einc_session_set", "name");
    s.set(name, einc::TensorView(dtype_of(dtype), shape_of(shape, rank, "einc_session_set"), data));
  });
}

einc_status einc_session_bind(einc_session* session, const char* name, einc_dtype dtype, const int64_t* shape, size_t rank, void* data) {
  return on_session(session, "einc_session_bind", [&](einc::Session& s) {
    require(name, "einc_session_bind", "name");
    s.bind(name, dtype_of(dtype), shape_of(shape, rank, "einc_session_bind"), data);
  });
}

einc_status einc_session_load(einc_session* session, const char* path, const char* names) {
  return on_session(session, "einc_session_load", [&](einc::Session& s) {
    require(path, "einc_session_load", "path");
    session->missing = s.load(path, names == nullptr ? "" : names).missing;
  });
}

size_t einc_session_missing(const einc_session* session) { return session == nullptr ? 0 : session->missing.size(); }

const char* einc_session_missing_name(const einc_session* session, size_t index) {
  return index < einc_session_missing(session) ? session->missing[index].c_str() : nullptr;
}

einc_status einc_session_save(einc_session* session, const char* path, einc_saved what) {
  return on_session(session, "einc_session_save", [&](einc::Session& s) {
    require(path, "einc_session_save", "path");
    if (what != EINC_SAVE_PARAMS && what != EINC_SAVE_PARAMS_AND_STATES)
      wrong_call(fmt::format("einc_session_save: {} says not what to save", static_cast<int>(what)));
    s.save(path, what == EINC_SAVE_PARAMS ? einc::Saved::params : einc::Saved::params_and_states);
  });
}

einc_status einc_session_save_checkpoint(einc_session* session, const char* folder, int keep) {
  return on_session(session, "einc_session_save_checkpoint", [&](einc::Session& s) {
    require(folder, "einc_session_save_checkpoint", "folder");
    s.save_checkpoint(folder, keep);
  });
}

einc_status einc_session_resume(einc_session* session, const char* folder, int* found) {
  return on_session(session, "einc_session_resume", [&](einc::Session& s) {
    require(folder, "einc_session_resume", "folder");
    require(found, "einc_session_resume", "found");
    *found = s.resume(folder) ? 1 : 0;
  });
}

einc_status einc_session_run(einc_session* session) {
  return on_session(session, "einc_session_run", [](einc::Session& s) { s.run(); });
}

einc_status einc_session_step(einc_session* session) {
  return on_session(session, "einc_session_step", [](einc::Session& s) { s.step(); });
}

einc_status einc_session_loss(einc_session* session, double* loss) {
  return on_session(session, "einc_session_loss", [&](einc::Session& s) {
    require(loss, "einc_session_loss", "loss");
    *loss = s.loss();
  });
}

einc_status einc_session_evaluate(einc_session* session, double* loss) {
  return on_session(session, "einc_session_evaluate", [&](einc::Session& s) {
    require(loss, "einc_session_evaluate", "loss");
    *loss = s.evaluate();
  });
}

einc_status einc_session_steps(const einc_session* session, uint64_t* steps) {
  return guard([&] {
    require(session, "einc_session_steps", "session");
    require(steps, "einc_session_steps", "steps");
    *steps = session->session.steps();
  });
}

einc_status einc_session_read(einc_session* session, einc_role role, const char* name, einc_tensor* tensor) {
  return on_session(session, "einc_session_read", [&](einc::Session& s) {
    require(name, "einc_session_read", "name");
    require(tensor, "einc_session_read", "tensor");
    const einc::TensorView view = read(s, role, name);
    session->shape = view.shape();
    *tensor = {dtype_of(view.dtype()), session->shape.size(), session->shape.data(), static_cast<size_t>(view.bytes()), view.data()};
  });
}
