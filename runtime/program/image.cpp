// SPDX-License-Identifier: Apache-2.0
// Fields in the order of their declarations, numbers as they lie in memory, lists after their lengths. Writing and reading
// share one list of fields for each struct.
#include "runtime/program/image.h"

#include <cstring>
#include <type_traits>

#include "runtime/base/failure.h"

namespace einc {
namespace {

template <class A>
void fields(A& a, auto& x) requires requires {
  x.init_arguments;
}
{ a(x.role, x.name, x.dtype, x.shape, x.bytes, x.offset, x.init, x.padding, x.init_arguments); }
template <class A>
void fields(A& a, auto& x) requires requires {
  x.positions;
}
{ a(x.positions, x.table, x.shape, x.bound, x.location); }
template <class A>
void fields(A& a, auto& x) requires requires {
  x.streams;
}
{ a(x.when, x.function, x.scan, x.buffers, x.streams, x.sites, x.domain, x.alone, x.label, x.location); }
template <class A>
void fields(A& a, auto& x) requires requires {
  x.means;
}
{ a(x.means, x.buffer); }
template <class A>
void fields(A& a, auto& x) requires requires {
  x.operands;
}
{ a(x.fn, x.dtype, x.operands[0], x.operands[1], x.operands[2], x.value, x.buffer); }
template <class A>
void fields(A& a, auto& x) requires requires {
  x.least;
}
{ a(x.target, x.bound, x.least, x.most); }
template <class A>
void fields(A& a, auto& x) requires requires {
  x.name;
  x.buffer;
}
{ a(x.name, x.buffer); }
template <class A>
void fields(A& a, auto& x) requires requires {
  x.value;
  x.target;
}
{ a(x.value, x.target); }
template <class A>
void fields(A& a, auto& x) requires requires {
  x.launches;
}
{
  a(x.buffers, x.functions, x.launches, x.scans, x.outputs, x.gradients, x.loss, x.snapshots, x.copies, x.checks, x.bounds, x.bounded,
    x.memory_bytes, x.own_bytes, x.scratch_bytes);
}
template <class A>
void fields(A& a, auto& x) requires requires {
  x.place;
}
{ a(x.buffer, x.place, x.offset, x.step); }
template <class A>
void fields(A& a, auto& x) requires requires {
  x.body;
}
{ a(x.body, x.length, x.reversed, x.all_pieces, x.workspace, x.buffers, x.initial); }
template <class A>
void fields(A& a, auto& x) requires requires {
  x.axes;
}
{ a(x.name, x.dtype, x.axes, x.shape); }
template <class A>
void fields(A& a, auto& x) requires requires {
  x.arguments;
}
{ a(x.kind, x.arguments); }
template <class A>
void fields(A& a, auto& x) requires requires {
  x.param_inits;
}
{ a(x.name, x.dims, x.inputs, x.params, x.states, x.outputs, x.param_inits, x.state_inits, x.trains); }
template <class A>
void fields(A& a, auto& x) requires requires {
  x.parts;
}
{
  a(x.info);
  for (auto& part : x.parts) a(part);
}
template <class A>
void fields(A& a, auto& x) requires requires {
  x.second;
}
{ a(x.first, x.second); }

static_assert(sizeof(ExecutableBuffer) == 120 && sizeof(SiteInfo) == 128 && sizeof(Launch) == 168 && sizeof(Executable) == 296 &&
                  sizeof(ScanBuffer) == 24 && sizeof(ScanProgram) == 368 && sizeof(FiniteCheck) == 8 && sizeof(BoundOp) == 32 &&
                  sizeof(BoundedUpdate) == 16 && sizeof(ProgramInfo) == 208 && sizeof(TensorInfo) == 88,
              "a field is new: list it above, and raise kObjectVersion");

template <class T>
concept Plain = std::is_arithmetic_v<T> || std::is_enum_v<T>;

class Writer {
 public:
  template <class... T>
  void operator()(const T&... x) {
    (write(x), ...);
  }
  std::string take() { return std::move(bytes_); }

 private:
  template <Plain T>
  void write(T x) {
    bytes_.append(reinterpret_cast<const char*>(&x), sizeof x);
  }
  void write(const std::string& x) {
    write(static_cast<uint64_t>(x.size()));
    bytes_ += x;
  }
  template <class T>
  void write(const std::vector<T>& list) {
    write(static_cast<uint64_t>(list.size()));
    for (const T& x : list) write(x);
  }
  template <class T>
  void write(const std::optional<T>& x) {
    write(x.has_value());
    if (x) write(*x);
  }
  template <class T>
  requires(!Plain<T>) void write(const T& x) { fields(*this, x); }

  std::string bytes_;
};

class ImageReader {
 public:
  explicit ImageReader(std::string_view bytes) : bytes_(bytes) {}

  template <class... T>
  void operator()(T&... x) {
    (read(x), ...);
  }
  bool at_end() const { return bytes_.empty(); }
  [[noreturn]] static void fail() { throw RuntimeFailure(FailureKind::data, "the compiled program's image is damaged"); }

 private:
  std::string_view take(uint64_t count) {
    if (count > bytes_.size()) fail();
    const std::string_view taken = bytes_.substr(0, count);
    bytes_.remove_prefix(count);
    return taken;
  }

  template <Plain T>
  void read(T& x) {
    if constexpr (std::is_same_v<T, bool>)
      x = take(1)[0] != 0;
    else
      std::memcpy(&x, take(sizeof x).data(), sizeof x);
  }
  uint64_t length() {
    uint64_t n = 0;
    read(n);
    if (n > bytes_.size()) fail();  // every item takes a byte at least
    return n;
  }
  void read(std::string& x) { x = take(length()); }
  template <class T>
  void read(std::vector<T>& list) {
    const uint64_t n = length();
    for (uint64_t i = 0; i < n; ++i) read(list.emplace_back());
  }
  template <class T>
  void read(std::optional<T>& x) {
    bool has = false;
    read(has);
    if (has) read(x.emplace());
  }
  template <class T>
  requires(!Plain<T>) void read(T& x) { fields(*this, x); }

  std::string_view bytes_;
};

}  // namespace

std::string to_bytes(const ProgramImage& image) {
  Writer writer;
  writer(image);
  return writer.take();
}

ProgramImage parse_image(std::string_view bytes) {
  ImageReader reader(bytes);
  ProgramImage image;
  reader(image);
  if (!reader.at_end()) ImageReader::fail();
  return image;
}

}  // namespace einc
