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
  for (const ExecutableBuffer& b : program.buffers) reserved_ += whole_pages(b.bytes) + kGuardBytes;
  reserved_ += whole_pages(program.scratch_bytes) + kGuardBytes;
  void* at = mmap(nullptr, reserved_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) throw RuntimeFailure(FailureKind::resource, fmt::format("no room for {} bytes", reserved_));
  reservation_ = static_cast<std::byte*>(at);
  used_ = kGuardBytes;
  for (const ExecutableBuffer& b : program.buffers) places_.push_back({place(b.bytes), b.bytes});
  places_.push_back({place(program.scratch_bytes), program.scratch_bytes});
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
  copy_all(program_.snapshots);
  for (size_t l = 0; l < program_.launches.size(); ++l)
    if (program_.launches[l].when != LaunchWhen::unbounded || functions_[program_.launches[l].function] != nullptr) launch(l, seed, step);
  copy_all(program_.copies);
}

void GuardedMachine::copy_all(const std::vector<BufferCopy>& copies) {
  for (const BufferCopy& copy : copies)
    std::memcpy(places_[copy.target].base, places_[copy.value].base, static_cast<size_t>(places_[copy.target].bytes));
}

void GuardedMachine::launch(size_t index, uint64_t seed, uint64_t step) {
  const Launch& launch = program_.launches[index];
  std::vector<void*> pointers;
  for (uint32_t b : launch.buffers) pointers.push_back(places_[b].base);
  std::vector<uint64_t> keys;
  for (const std::string& stream : launch.streams) {
    const PhiloxKey key = random_key(seed, stream);
    keys.push_back(uint64_t{key[1]} << 32 | key[0]);
  }
  IndexFault fault;
  const KernelArguments arguments{pointers.data(), keys.data(), step, &fault, static_cast<int32_t>(index), places_.back().base};
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
                           : program_.buffers[nearest].name.empty() ? fmt::format("buffer {}", nearest)
                                                                    : fmt::format("'{}'", program_.buffers[nearest].name);
  return address < p.base ? fmt::format("{} bytes before {}", p.base - address, name)
                          : fmt::format("{} bytes after the {} of {}", address - (p.base + p.bytes), p.bytes, name);
}

}  // namespace einc
