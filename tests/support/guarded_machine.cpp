// SPDX-License-Identifier: Apache-2.0
#include "tests/support/guarded_machine.h"

#include <fmt/format.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "runtime/base/check.h"
#include "runtime/base/failure.h"
#include "runtime/base/random.h"

namespace einc {
namespace {

// Far more than the tests' tensors hold, so that wrong strides stay within it.
constexpr size_t kGuardBytes = size_t{64} << 20;

size_t page() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }
size_t whole_pages(int64_t bytes) { return (static_cast<size_t>(bytes) + page() - 1) / page() * page(); }

// What a fault in generated code returns to. Generated code has nothing to unwind.
thread_local sigjmp_buf* returning = nullptr;
thread_local const std::byte* faulted = nullptr;

void on_fault(int signal, siginfo_t* info, void*) {
  if (returning == nullptr) {
    ::signal(signal, SIG_DFL);
    return;
  }
  faulted = static_cast<const std::byte*>(info->si_addr);
  siglongjmp(*returning, 1);
}

class FaultHandler {
 public:
  FaultHandler() {
    struct sigaction action {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigaction(SIGSEGV, &action, &before_);
  }
  ~FaultHandler() { sigaction(SIGSEGV, &before_, nullptr); }
  FaultHandler(const FaultHandler&) = delete;
  FaultHandler& operator=(const FaultHandler&) = delete;

 private:
  struct sigaction before_ {};
};

bool faults(KernelFunction* function, const KernelArguments& arguments, int64_t domain) {
  sigjmp_buf here;
  returning = &here;
  const bool hit = sigsetjmp(here, 1) != 0;
  if (!hit) function(&arguments, 0, domain);
  returning = nullptr;
  return hit;
}

}  // namespace

GuardedMachine::GuardedMachine(const Executable& program, const std::vector<KernelFunction*>& functions, Guard guard)
    : program_(program), functions_(functions), guard_(guard) {
  reserved_ = kGuardBytes;
  reserve(program);
  reserved_ += whole_pages(program.scratch_bytes) + kGuardBytes;
  void* at = mmap(nullptr, reserved_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) throw RuntimeFailure(FailureKind::resource, fmt::format("no room for {} bytes", reserved_));
  reservation_ = static_cast<std::byte*>(at);
  used_ = kGuardBytes;
  for (const ExecutableBuffer& b : program.buffers) places_.push_back({place(b.bytes), b.bytes});
  places_.push_back({place(program.scratch_bytes), program.scratch_bytes});
  place_bodies(program);
}

void GuardedMachine::reserve(const Executable& program) {
  for (const ExecutableBuffer& b : program.buffers) reserved_ += whole_pages(b.bytes) + kGuardBytes;
  for (const ScanProgram& scan : program.scans) reserve(scan.body);
}

void GuardedMachine::place_bodies(const Executable& program) {
  for (const ScanProgram& scan : program.scans) {
    std::vector<std::byte*>& buffers = bodies_[&scan.body];
    for (const ExecutableBuffer& b : scan.body.buffers) {
      buffers.push_back(is_source(b.role) ? nullptr : place(b.bytes));
      if (buffers.back() != nullptr) places_.push_back({buffers.back(), b.bytes});
    }
    place_bodies(scan.body);
  }
}

GuardedMachine::~GuardedMachine() { munmap(reservation_, reserved_); }

std::byte* GuardedMachine::place(int64_t bytes) {
  const size_t pages = whole_pages(bytes);
  std::byte* begin = reservation_ + used_;
  used_ += pages + kGuardBytes;
  EINC_CHECK(pages == 0 || mprotect(begin, pages, PROT_READ | PROT_WRITE) == 0, "no memory of {} bytes", bytes);
  std::memset(begin, 0xFF, pages);
  return guard_ == Guard::before ? begin : begin + pages - bytes;
}

int GuardedMachine::find(BufferRole role, const std::string& name) const {
  for (size_t i = 0; i < program_.buffers.size(); ++i)
    if (program_.buffers[i].role == role && program_.buffers[i].name == name) return static_cast<int>(i);
  return -1;
}

void GuardedMachine::set(uint32_t buffer, const HostArray& array) {
  EINC_CHECK(static_cast<int64_t>(array.bytes.size()) == places_[buffer].bytes, "'{}' is of another size", program_.buffers[buffer].name);
  std::memcpy(places_[buffer].base, array.bytes.data(), array.bytes.size());
}

HostArray GuardedMachine::get(uint32_t buffer) const {
  const Place& p = places_[buffer];
  return {program_.buffers[buffer].dtype, program_.buffers[buffer].shape, std::vector<std::byte>(p.base, p.base + p.bytes)};
}

void GuardedMachine::run(uint64_t seed, uint64_t step) {
  const FaultHandler handler;
  Running whole{program_, {}, {}};
  for (size_t b = 0; b < program_.buffers.size(); ++b) whole.buffers.push_back(places_[b].base);
  run(whole, seed, step);
}

void GuardedMachine::run(const Running& running, uint64_t seed, uint64_t step) {
  const std::vector<Launch>& launches = running.program.launches;
  copy_all(running, running.program.snapshots);
  for (size_t l = 0; l < launches.size(); ++l)
    if (launches[l].scan >= 0)
      run_scan(running, launches[l], seed, step);
    else if (launches[l].when != LaunchWhen::unbounded || functions_[launches[l].function] != nullptr)
      launch(running, l, seed, step);
  copy_all(running, running.program.copies);
}

void GuardedMachine::copy_all(const Running& running, const std::vector<BufferCopy>& copies) {
  for (const BufferCopy& copy : copies)
    std::memcpy(running.buffers[copy.target], running.buffers[copy.value], static_cast<size_t>(running.program.buffers[copy.target].bytes));
}

void GuardedMachine::run_scan(const Running& outside, const Launch& launch, uint64_t seed, uint64_t step) {
  const ScanProgram& scan = outside.program.scans[static_cast<size_t>(launch.scan)];
  const auto place = [&](const ScanBuffer& b) { return outside.buffers[launch.buffers[b.place]] + b.offset; };
  Running running{scan.body, bodies_.at(&scan.body), {}};
  for (const ScanBuffer& b : scan.buffers) running.buffers[b.buffer] = place(b);
  for (const ScanBuffer& b : scan.initial)
    std::memcpy(running.buffers[b.buffer], place(b), static_cast<size_t>(scan.body.buffers[b.buffer].bytes));
  const int64_t count = iterations_of(outside.iterations, scan.length, scan.all_pieces);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t t = scan.reversed ? count - 1 - i : i;
    for (const ScanBuffer& b : scan.buffers) running.buffers[b.buffer] = place(b) + t * b.step;
    running.iterations = iteration_inside(outside.iterations, t, scan.length, scan.all_pieces);
    for (const ExecutableBuffer& b : scan.body.buffers)  // an iteration leaves nothing to the next but carries
      if (!is_source(b.role))
        std::memset(running.buffers[static_cast<size_t>(&b - scan.body.buffers.data())], 0xFF, static_cast<size_t>(b.bytes));
    run(running, seed, step);
  }
}

void GuardedMachine::launch(const Running& running, size_t index, uint64_t seed, uint64_t step) {
  const Launch& launch = running.program.launches[index];
  std::vector<void*> pointers;
  for (uint32_t b : launch.buffers) pointers.push_back(running.buffers[b]);
  std::vector<uint64_t> keys;
  for (const std::string& stream : launch.streams) {
    const PhiloxKey key = random_key(seed, stream + stream_suffix(running.iterations));
    keys.push_back(uint64_t{key[1]} << 32 | key[0]);
  }
  IndexFault fault;
  const KernelArguments arguments{
      pointers.data(), keys.data(), step, &fault, static_cast<int32_t>(index), places_[program_.buffers.size()].base};
  if (faults(functions_[launch.function], arguments, launch.domain))
    throw GuardHit(fmt::format("launch {} ({}) touches {}", index, launch.label, whereabouts(faulted)));
  if (fault.launch >= 0) throw RuntimeFailure(FailureKind::data, fmt::format("index out of range: {} at {}", fault.value, fault.place));
}

std::string GuardedMachine::whereabouts(const std::byte* address) const {
  if (address < reservation_ || address >= reservation_ + reserved_) return "memory of nobody";
  size_t nearest = 0;
  const auto distance = [&](size_t i) {
    const Place& p = places_[i];
    return address < p.base ? p.base - address : address >= p.base + p.bytes ? address - (p.base + p.bytes) + 1 : 0;
  };
  for (size_t i = 1; i < places_.size(); ++i)
    if (distance(i) < distance(nearest)) nearest = i;
  const Place& p = places_[nearest];
  const std::string name = nearest == program_.buffers.size()       ? "the scratch memory"
                           : nearest > program_.buffers.size()      ? "a value of an iteration"
                           : program_.buffers[nearest].name.empty() ? fmt::format("buffer {}", nearest)
                                                                    : fmt::format("'{}'", program_.buffers[nearest].name);
  return address < p.base ? fmt::format("{} bytes before {}", p.base - address, name)
                          : fmt::format("{} bytes after the {} of {}", address - (p.base + p.bytes), p.bytes, name);
}

}  // namespace einc
