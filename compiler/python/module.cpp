// SPDX-License-Identifier: Apache-2.0
// The extension module einc._einc: the C++ library's own classes, as plainly as they go. What Python's users see is in einc/*.py.
#include <einc/einc.h>
#include <einc/version.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "compiler/python/session.h"

namespace einc::python {
namespace {

const char* kind_name(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::program:
      return "program";
    case ErrorKind::usage:
      return "usage";
    case ErrorKind::data:
      return "data";
    case ErrorKind::resource:
      return "resource";
    case ErrorKind::numeric:
      return "numeric";
    case ErrorKind::internal:
      return "internal";
  }
  return "internal";
}

nb::list diagnostics_of(const std::vector<Error::Diagnostic>& list) {
  nb::list result;
  for (const Error::Diagnostic& d : list)
    result.append(nb::make_tuple(d.is_warning, d.code, d.message, d.hint, d.place.file, d.place.line, d.place.column, d.place.end_line,
                                 d.place.end_column));
  return result;
}

// An einc::Error becomes the exception that einc/_errors.py has for its kind.
void raise_error(const std::exception_ptr& thrown, void*) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Error& error) {
    const nb::object exception =
        nb::module_::import_("einc._errors").attr("make")(kind_name(error.kind()), error.what(), diagnostics_of(error.diagnostics()));
    PyErr_SetObject(exception.type().ptr(), exception.ptr());
  }
}

struct Compiled {
  Model model;
  Target target;
};

template <class Function>
auto unlocked(Function&& function) {
  const nb::gil_scoped_release released;
  return function();
}

Compiled compile(const std::string& source, const std::optional<std::string>& name, const CompileOptions& options) {
  return unlocked([&] { return Compiled{name ? compile_text(source, options, *name) : compile_file(source, options), options.target}; });
}

std::string report(const std::string& source, const std::optional<std::string>& name, ReportForm form, const CompileOptions& options) {
  return unlocked(
      [&] { return name ? render_report_of_text(source, form, options, *name) : render_report_of_file(source, form, options); });
}

nb::tuple infos(const std::vector<TensorInfo>& tensors) {
  nb::list result;
  for (const TensorInfo& tensor : tensors)
    result.append(nb::make_tuple(tensor.name, std::string(to_string(tensor.dtype)), nb::tuple(nb::cast(tensor.axes)),
                                 nb::tuple(nb::cast(tensor.shape))));
  return nb::tuple(result);
}

void add_enumerations(nb::module_& m) {
  nb::enum_<Precision>(m, "Precision")
      .value("as_written", Precision::as_written)
      .value("f32", Precision::f32)
      .value("tf32", Precision::tf32)
      .value("bf16", Precision::bf16)
      .value("f16", Precision::f16)
      .value("fp8", Precision::fp8);
  nb::enum_<Target>(m, "Target").value("cpu", Target::cpu).value("cuda", Target::cuda).value("reference", Target::reference);
  nb::enum_<Purpose>(m, "Purpose")
      .value("training", Purpose::training)
      .value("inference", Purpose::inference)
      .value("pullback", Purpose::pullback);
  nb::enum_<ReportForm>(m, "ReportForm").value("json", ReportForm::json).value("html", ReportForm::html).value("text", ReportForm::text);
  nb::enum_<Role>(m, "Role")
      .value("input", Role::input)
      .value("param", Role::param)
      .value("state", Role::state)
      .value("output", Role::output)
      .value("gradient", Role::gradient);
}

void add_model(nb::module_& m) {
  nb::class_<CompileOptions>(m, "CompileOptions")
      .def(nb::init<>())
      .def_rw("dims", &CompileOptions::dims)
      .def_rw("precision", &CompileOptions::precision)
      .def_rw("target", &CompileOptions::target)
      .def_rw("purpose", &CompileOptions::purpose)
      .def_rw("training_mode", &CompileOptions::training_mode)
      .def_rw("memory_limit", &CompileOptions::memory_limit)
      .def_rw("report_device", &CompileOptions::report_device)
      .def_rw("import_folders", &CompileOptions::import_folders)
      .def_rw("code_cache", &CompileOptions::code_cache);
  nb::class_<Compiled>(m, "Model")
      .def_prop_ro("name", [](const Compiled& c) { return c.model.name(); })
      .def_prop_ro("dims", [](const Compiled& c) { return c.model.dims(); })
      .def_prop_ro("inputs", [](const Compiled& c) { return infos(c.model.inputs()); })
      .def_prop_ro("params", [](const Compiled& c) { return infos(c.model.params()); })
      .def_prop_ro("states", [](const Compiled& c) { return infos(c.model.states()); })
      .def_prop_ro("outputs", [](const Compiled& c) { return infos(c.model.outputs()); })
      .def_prop_ro("trains", [](const Compiled& c) { return c.model.trains(); })
      .def_prop_ro("has_modes", [](const Compiled& c) { return c.model.has_modes(); })
      .def_prop_ro("draws", [](const Compiled& c) { return c.model.draws(); })
      .def_prop_ro("warnings", [](const Compiled& c) { return diagnostics_of(c.model.warnings()); })
      .def("report", [](const Compiled& c, ReportForm form) { return unlocked([&] { return c.model.render_report(form); }); });
  m.def("compile", &compile, nb::arg("source"), nb::arg("name").none(), nb::arg("options"));
  m.def("report", &report, nb::arg("source"), nb::arg("name").none(), nb::arg("form"), nb::arg("options"));
}

// Of the addresses of its functions, in their order.
ThreadTeam team_at(const std::optional<std::vector<uintptr_t>>& addresses) {
  if (!addresses) return {};
  if (addresses->size() != 3) throw Error(ErrorKind::usage, "a team of threads has three functions");
  ThreadTeam team;
  team.fork = reinterpret_cast<decltype(team.fork)>((*addresses)[0]);
  team.index = reinterpret_cast<decltype(team.index)>((*addresses)[1]);
  team.size = reinterpret_cast<decltype(team.size)>((*addresses)[2]);
  return team;
}

void add_session(nb::module_& m) {
  using S = PythonSession;
  nb::class_<S>(m, "Session")
      .def(
          "__init__",
          [](S* self, const Compiled& c, int threads, bool copy, const std::optional<std::vector<uintptr_t>>& team) {
            new (self) S(c.model, c.target, threads, copy ? Handing::copies : Handing::views, team_at(team));
          },
          nb::arg("model"), nb::arg("threads"), nb::arg("copy"), nb::arg("team").none())
      .def("init", &S::init)
      .def("seed", &S::seed)
      .def("set", &S::set, nb::arg("name"), nb::arg("array").none())
      .def("bind", &S::bind, nb::arg("name"), nb::arg("array").none())
      .def("bind_output", &S::bind_output, nb::arg("name"), nb::arg("array"))
      .def("release_outputs", &S::release_outputs)
      .def("load",
           [](S& s, const std::string& path, const std::string& names) {
             const LoadedWeights loaded = s.load(path, names);
             return std::pair(loaded.missing, loaded.unused);
           })
      .def("save", [](S& s, const std::string& path, bool states) { s.save(path, states ? Saved::params_and_states : Saved::params); })
      .def("save_checkpoint", &S::save_checkpoint)
      .def("resume", &S::resume)
      .def("run", &S::run)
      .def("forward", &S::forward)
      .def("backward", &S::backward)
      .def("step", &S::step)
      .def("evaluate", &S::evaluate)
      .def("loss", &S::loss)
      .def("steps", &S::steps)
      .def("read", &S::read);
}

}  // namespace
}  // namespace einc::python

NB_MODULE(_einc, m) {
  using namespace einc::python;
  nanobind::register_exception_translator(raise_error);
  m.attr("__version__") = EINC_VERSION;
  add_enumerations(m);
  add_model(m);
  add_session(m);
}
