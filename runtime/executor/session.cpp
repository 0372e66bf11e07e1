#include "runtime/executor/session.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "runtime/base/check.h"
#include "runtime/base/failure.h"
#include "runtime/base/float_format.h"
#include "runtime/base/random.h"

namespace einc {
namespace {

constexpr int64_t kHugePage = int64_t{1} << 21;
constexpr int64_t kAlignment = 64;
constexpr int64_t kSmallLaunch = 8192;  // elements visited: not worth a second thread

int64_t aligned(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// Numbers in a storage format.
void store(DType dtype, std::span<const double> values, std::byte* out) {
  for (size_t i = 0; i < values.size(); ++i) {
    const auto put = [&](auto x) { std::memcpy(out + i * sizeof x, &x, sizeof x); };
    switch (dtype) {
      case DType::f64:
        put(values[i]);
        break;
      case DType::real:
      case DType::f32:
        put(static_cast<float>(values[i]));
        break;
      case DType::bf16:
      case DType::f16:
        put(encode_float(dtype, values[i]));
        break;
      case DType::f8e4m3:
      case DType::f8e5m2:
        put(static_cast<uint8_t>(encode_float(dtype, values[i])));
        break;
      case DType::i64:
        put(static_cast<int64_t>(values[i]));
        break;
      case DType::i32:
        put(static_cast<int32_t>(values[i]));
        break;
      case DType::u16:
        put(static_cast<uint16_t>(values[i]));
        break;
      case DType::u8:
        put(static_cast<uint8_t>(values[i]));
        break;
      case DType::boolean:
        put(static_cast<uint8_t>(values[i] != 0));
        break;
    }
  }
}

std::string place_text(const std::vector<int64_t>& shape, int64_t index) {
  std::vector<int64_t> at(shape.size());
  for (size_t i = shape.size(); i-- > 0;) at[i] = index % shape[i], index /= shape[i];
  return fmt::format("[{}]", fmt::join(at, ", "));
}

}  // namespace

// One mapping for everything: huge pages where the kernel has them, zero before first use.
struct Session::Memory {
  std::byte* base = nullptr;
  size_t size = 0;

  explicit Memory(int64_t bytes) {
    size = static_cast<size_t>((std::max<int64_t>(bytes, 1) + kHugePage - 1) / kHugePage * kHugePage);
    void* at = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) throw RuntimeFailure(FailureKind::resource, fmt::format("no memory for {} bytes", size));
    madvise(at, size, MADV_HUGEPAGE);
    base = static_cast<std::byte*>(at);
  }
  ~Memory() { munmap(base, size); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
};

Session::Session(const Executable& program, std::vector<KernelFunction*> functions, int threads)
    : program_(program), functions_(std::move(functions)), pool_(threads), faults_(static_cast<size_t>(pool_.size())) {
  int64_t total = aligned(program.arena_bytes);
  std::vector<int64_t> offsets;
  for (const ExecutableBuffer& b : program.buffers) {
    offsets.push_back(b.role == BufferRole::arena ? b.offset : total);
    if (b.role != BufferRole::arena) total += aligned(b.bytes);
  }
  scratch_ = total;
  memory_ = std::make_unique<Memory>(total + pool_.size() * aligned(program.scratch_bytes));
  for (int64_t offset : offsets) buffers_.push_back(memory_->base + offset);
}

Session::~Session() = default;

void Session::initialize(uint64_t seed) {
  constexpr int64_t kPiece = 16384;
  for (size_t i = 0; i < buffers_.size(); ++i) {
    const ExecutableBuffer& b = program_.buffers[i];
    if (b.role != BufferRole::param && b.role != BufferRole::state) continue;
    const int64_t count = b.bytes / bytes_of(b.dtype);
    pool_.run((count + kPiece - 1) / kPiece, [&](int, int64_t begin, int64_t end) {
      std::vector<double> values(static_cast<size_t>(kPiece));
      for (int64_t piece = begin; piece < end; ++piece) {
        const int64_t first = piece * kPiece, n = std::min(kPiece, count - first);
        const std::span<double> part(values.data(), static_cast<size_t>(n));
        fill_init(b.init, b.init_arguments, seed, b.name, static_cast<uint64_t>(first), part);
        store(b.dtype, part, buffers_[i] + first * bytes_of(b.dtype));
      }
    });
  }
}

std::span<std::byte> Session::bytes(uint32_t buffer) { return {buffers_[buffer], static_cast<size_t>(program_.buffers[buffer].bytes)}; }

int Session::find(BufferRole role, const std::string& name) const {
  for (size_t i = 0; i < program_.buffers.size(); ++i)
    if (program_.buffers[i].role == role && program_.buffers[i].name == name) return static_cast<int>(i);
  return -1;
}

void Session::set(uint32_t buffer, const HostArray& array) {
  const ExecutableBuffer& b = program_.buffers[buffer];
  if (array.shape != b.shape || array.dtype != b.dtype)
    throw RuntimeFailure(FailureKind::data, fmt::format("'{}' is {}[{}], but given as {}[{}]", b.name, to_string(b.dtype),
                                                        fmt::join(b.shape, " "), to_string(array.dtype), fmt::join(array.shape, " ")));
  std::memcpy(buffers_[buffer], array.bytes.data(), array.bytes.size());
}

HostArray Session::get(uint32_t buffer) const {
  const ExecutableBuffer& b = program_.buffers[buffer];
  return {b.dtype, b.shape, std::vector<std::byte>(buffers_[buffer], buffers_[buffer] + b.bytes)};
}

void Session::run(uint64_t seed, uint64_t step) {
  std::fill(faults_.begin(), faults_.end(), IndexFault{});
  std::vector<void*> pointers;
  std::vector<uint64_t> keys;
  for (size_t l = 0; l < program_.launches.size(); ++l) {
    const Launch& launch = program_.launches[l];
    pointers.clear();
    for (uint32_t b : launch.buffers) pointers.push_back(buffers_[b]);
    keys.clear();
    for (const std::string& stream : launch.streams) {
      const PhiloxKey key = random_key(seed, stream);
      keys.push_back(uint64_t{key[1]} << 32 | key[0]);
    }
    KernelFunction* function = functions_[launch.function];
    const auto work = [&](int thread, int64_t begin, int64_t end) {
      const KernelArguments arguments{pointers.data(),
                                      keys.data(),
                                      step,
                                      &faults_[static_cast<size_t>(thread)],
                                      static_cast<int32_t>(l),
                                      memory_->base + scratch_ + thread * aligned(program_.scratch_bytes)};
      function(&arguments, begin, end);
    };
    if (launch.work < kSmallLaunch)
      work(0, 0, launch.domain);
    else
      pool_.run(launch.domain, work);
    report_faults();
  }
  for (const BufferCopy& copy : program_.copies)
    std::memcpy(buffers_[copy.target], buffers_[copy.value], static_cast<size_t>(program_.buffers[copy.target].bytes));
}

void Session::report_faults() {
  const IndexFault* first = nullptr;
  for (const IndexFault& f : faults_)
    if (f.launch >= 0 && (!first || f.place < first->place)) first = &f;
  if (!first) return;
  const SiteInfo& site = program_.launches[static_cast<size_t>(first->launch)].sites[static_cast<size_t>(first->site)];
  throw RuntimeFailure(FailureKind::data,
                       fmt::format("index out of range: '{}' at {} is {}, but {} has size {}{}", site.positions,
                                   place_text(site.shape, first->place), first->value, site.table, site.bound, site.location));
}

}  // namespace einc

void einc::einc_index_fault(const KernelArguments* arguments, int32_t site, int64_t place, int64_t value) {
  IndexFault& fault = *arguments->fault;
  if (fault.launch >= 0 && fault.place <= place) return;
  fault = {arguments->launch, site, place, value};
}
