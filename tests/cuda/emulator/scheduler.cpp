// SPDX-License-Identifier: Apache-2.0
#include "scheduler.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "emulator.h"

#ifdef EINC_EMULATOR_TSAN  // its kernels run under ThreadSanitizer; this file never does
extern "C" {
void* __tsan_create_fiber(unsigned flags);
void __tsan_destroy_fiber(void* fiber);
void __tsan_switch_to_fiber(void* fiber, unsigned flags);
void* __tsan_get_current_fiber();
void __tsan_acquire(void* address);
void __tsan_release(void* address);
}
#define EMU_TSAN(...) __VA_ARGS__
#else
#define EMU_TSAN(...)
#endif

// Saves the registers that a call keeps on this stack, whose top goes to *from, and goes on where the other stack was left.
extern "C" void emulator_switch_stack(void** from, void* to);
#if defined(__x86_64__)
asm(R"(
.text
emulator_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
)");
#elif defined(__aarch64__)
asm(R"(
.text
emulator_switch_stack:
  sub sp, sp, #160
  stp x29, x30, [sp, #0]
  stp x19, x20, [sp, #16]
  stp x21, x22, [sp, #32]
  stp x23, x24, [sp, #48]
  stp x25, x26, [sp, #64]
  stp x27, x28, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x29, x30, [sp, #0]
  ldp x19, x20, [sp, #16]
  ldp x21, x22, [sp, #32]
  ldp x23, x24, [sp, #48]
  ldp x25, x26, [sp, #64]
  ldp x27, x28, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
)");
#else
#error "the emulator switches stacks in assembly of x86-64 and arm64"
#endif

namespace emulator {
namespace {

constexpr size_t kStackBytes = 128 << 10, kGuardBytes = 4096;
// What a stack that is left ends with: so many words, and where among them the address to go on at stands.
#if defined(__x86_64__)
constexpr size_t kSavedWords = 6, kReturnWord = 6;
#else
constexpr size_t kSavedWords = 20, kReturnWord = 1;
#endif
constexpr unsigned kWarp = 32;

enum class State { ready, at_block, at_warp, done };

struct GroupedCopy {
  EmuCopy copy;
  unsigned group;
};

struct Fiber {
  EmuThread ids;
  State state = State::ready;
  void* stack_top = nullptr;
  int line = 0;  // of the block's barrier
  unsigned mask = 0;
  EmuSlot slot{};
  std::vector<GroupedCopy> copies;   // under way, in order
  unsigned groups = 0;               // closed
  std::vector<EmuProduct> products;  // under way, in order
  [[maybe_unused]] void* tsan = nullptr;
};

// Of each collective the slots of all lanes, taken when the last one came; by the lowest lane of its mask.
struct Warp {
  EmuSlot slots[kWarp][kWarp];
  unsigned generation[kWarp] = {};
  char order[kWarp][2] = {};
};

struct Machine {
  std::vector<Fiber> fibers;
  std::vector<Warp> warps;
  std::vector<std::byte*> stacks;
  std::vector<void*> tsan_fibers;
  EmuThread* current = nullptr;
  Fiber* running = nullptr;
  void* own_stack = nullptr;
  [[maybe_unused]] void* own_tsan = nullptr;
  EmuCall* call = nullptr;
  void** arguments = nullptr;
  std::string failure;
  // What ThreadSanitizer sees of barriers; two each in turn, so that who wakes late does not take a later event's clock.
  unsigned generation = 0;
  char barrier[2] = {}, begins = 0, ends = 0;  // threads begin after the block before has ended, and after nothing of their own
};
Machine machine;
std::atomic<unsigned long long> multiplied_flops = 0;

void leave() {
  Fiber* me = machine.running;
  EMU_TSAN(__tsan_switch_to_fiber(machine.own_tsan, 1);)
  emulator_switch_stack(&me->stack_top, machine.own_stack);
}

void enter(Fiber& fiber) {
  machine.running = &fiber;
  machine.current = &fiber.ids;
  EMU_TSAN(__tsan_switch_to_fiber(fiber.tsan, 1);)  // 1: the switch orders nothing
  emulator_switch_stack(&machine.own_stack, fiber.stack_top);
}

void fail(const char* why) {
  if (machine.failure.empty()) machine.failure = why;
}

void begin_fiber() {
  EMU_TSAN(__tsan_acquire(&machine.begins);)
  machine.call(machine.arguments);
  if (!machine.running->copies.empty()) fail("a thread ends while its cp_async16 is under way");
  if (!machine.running->products.empty()) fail("a thread ends while its product is under way");
  EMU_TSAN(__tsan_release(&machine.ends);)
  machine.running->state = State::done;
  leave();
  std::abort();
}

void block_barrier(int line) {
  [[maybe_unused]] char* order = &machine.barrier[machine.generation & 1];
  EMU_TSAN(__tsan_release(order);)
  machine.running->state = State::at_block;
  machine.running->line = line;
  leave();
  EMU_TSAN(__tsan_acquire(order);)
}

const EmuSlot* collective(unsigned mask, const EmuSlot* mine) {
  Fiber& me = *machine.running;
  if (!(mask >> me.ids.lane & 1)) fail("a lane is not in its own mask");
  Warp& warp = machine.warps[static_cast<size_t>(&me - machine.fibers.data()) / kWarp];
  const auto lowest = static_cast<unsigned>(__builtin_ctz(mask));
  [[maybe_unused]] char* order = &warp.order[lowest][warp.generation[lowest] & 1];
  EMU_TSAN(__tsan_release(order);)
  me.slot = *mine;
  me.mask = mask;
  me.state = State::at_warp;
  leave();
  EMU_TSAN(__tsan_acquire(order);)
  return warp.slots[lowest];
}

void copy_push(EmuCopy copy) { machine.running->copies.push_back({copy, machine.running->groups}); }

void copy_commit() { ++machine.running->groups; }

bool copy_take(int pending, EmuCopy* copy) {
  Fiber& me = *machine.running;
  if (me.copies.empty() || me.copies.front().group + static_cast<unsigned>(pending) >= me.groups) return false;
  *copy = me.copies.front().copy;
  me.copies.erase(me.copies.begin());
  return true;
}

void product_push(const EmuProduct* product) { machine.running->products.push_back(*product); }

bool product_take(EmuProduct* product) {
  std::vector<EmuProduct>& products = machine.running->products;
  if (products.empty()) return false;
  *product = products.front();
  products.erase(products.begin());
  return true;
}

void multiplied(unsigned long long flops) { multiplied_flops.fetch_add(flops, std::memory_order_relaxed); }

bool release_block() {
  size_t live = 0, waiting = 0;
  int line = 0;
  bool same = true;
  for (const Fiber& f : machine.fibers) {
    if (f.state != State::done) ++live;
    if (f.state != State::at_block) continue;
    if (waiting++ > 0 && f.line != line) same = false;
    line = f.line;
  }
  if (waiting == 0 || waiting != live) return false;
  if (!same) fail("__syncthreads reached at different places");
  if (live != machine.fibers.size()) fail("__syncthreads after some threads of the block ended");
  for (Fiber& f : machine.fibers)
    if (f.state == State::at_block) f.state = State::ready;
  ++machine.generation;
  return true;
}

// The collective whose mask begins with `lane` of the warp, when every thread that the mask names has come.
bool release_warp(size_t first, unsigned lane) {
  const size_t count = std::min<size_t>(kWarp, machine.fibers.size() - first);
  Fiber* warp = &machine.fibers[first];
  const unsigned mask = warp[lane].mask;
  if (warp[lane].state != State::at_warp || static_cast<unsigned>(__builtin_ctz(mask)) != lane) return false;
  for (unsigned k = 0; k < kWarp; ++k)
    if (mask >> k & 1 && (k >= count || warp[k].state != State::at_warp || warp[k].mask != mask)) return false;
  Warp& state = machine.warps[first / kWarp];
  for (unsigned k = 0; k < kWarp; ++k)
    if (mask >> k & 1) {
      state.slots[lane][k] = warp[k].slot;
      warp[k].state = State::ready;
    }
  ++state.generation[lane];
  return true;
}

bool release() {
  bool any = release_block();
  for (size_t first = 0; first < machine.fibers.size(); first += kWarp)
    for (unsigned lane = 0; lane < kWarp && first + lane < machine.fibers.size(); ++lane) any = release_warp(first, lane) || any;
  return any;
}

void make_stacks(size_t count) {
  while (machine.stacks.size() < count) {
    void* memory = mmap(nullptr, kStackBytes + kGuardBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || mprotect(memory, kGuardBytes, PROT_NONE) != 0) std::abort();
    machine.stacks.push_back(static_cast<std::byte*>(memory) + kGuardBytes);
    void* tsan = nullptr;
    EMU_TSAN(tsan = __tsan_create_fiber(0);)
    machine.tsan_fibers.push_back(tsan);
  }
}

void prepare(Fiber& fiber, unsigned number, const Shape& shape, EmuDim block, unsigned char* shared) {
  const EmuDim& size = shape.block;
  fiber.state = State::ready;
  fiber.copies.clear();
  fiber.products.clear();
  fiber.groups = 0;
  fiber.ids = {{number % size.x, number / size.x % size.y, number / (size.x * size.y)}, block, size, shape.grid, number % kWarp, shared};
  fiber.tsan = machine.tsan_fibers[number];
  auto** top = reinterpret_cast<void**>(machine.stacks[number] + kStackBytes) - 2 - kSavedWords;
  top[kReturnWord] = reinterpret_cast<void*>(&begin_fiber);
  fiber.stack_top = top;
}

// Until all threads have ended or something fails.
void run_threads(const std::vector<unsigned>& order) {
  EMU_TSAN(__tsan_release(&machine.begins);)
  while (machine.failure.empty()) {
    bool ran = false;
    for (const unsigned t : order)
      if (machine.fibers[t].state == State::ready && machine.failure.empty()) {
        enter(machine.fibers[t]);
        ran = true;
      }
    if (std::all_of(machine.fibers.begin(), machine.fibers.end(), [](const Fiber& f) { return f.state == State::done; })) break;
    if (machine.failure.empty() && !release() && !ran) fail("deadlock: not every thread that a barrier or shuffle names reaches it");
  }
  EMU_TSAN(for (Fiber& f
                : machine.fibers) if (f.state != State::done) {
    __tsan_switch_to_fiber(f.tsan, 1);
    __tsan_release(&machine.ends);
    __tsan_switch_to_fiber(machine.own_tsan, 1);
  } __tsan_acquire(&machine.ends);)
}

std::vector<unsigned> numbers(unsigned count, Order order, uint64_t& random) {
  std::vector<unsigned> result(count);
  for (unsigned i = 0; i < count; ++i) result[i] = order == 1 ? count - 1 - i : i;
  for (unsigned i = count; order >= 2 && i > 1; --i) {
    random = random * 6364136223846793005ull + 1442695040888963407ull;
    std::swap(result[i - 1], result[(random >> 33) % i]);
  }
  return result;
}

}  // namespace

unsigned long long flops_on_tensor_cores() { return multiplied_flops; }

const EmuScheduler* scheduler() {
  static const EmuScheduler table{&machine.current, block_barrier, collective,   fail,         copy_push,
                                  copy_commit,      copy_take,     product_push, product_take, multiplied};
  return &table;
}

std::string run_kernel(const Shape& shape, EmuShared static_shared, Order order, EmuCall* call, void** arguments) {
  const unsigned threads = shape.block.x * shape.block.y * shape.block.z;
  make_stacks(threads);
  machine.fibers.resize(threads);
  machine.warps.assign((threads + kWarp - 1) / kWarp, {});
  machine.call = call;
  machine.arguments = arguments;
  machine.failure.clear();
  EMU_TSAN(machine.own_tsan = __tsan_get_current_fiber();)
  std::vector<unsigned char> shared(shape.shared_bytes + 16);
  auto* aligned = reinterpret_cast<unsigned char*>((reinterpret_cast<uintptr_t>(shared.data()) + 15) & ~uintptr_t{15});
  uint64_t random = order;
  for (const unsigned number : numbers(shape.grid.x * shape.grid.y * shape.grid.z, order, random)) {
    const EmuDim block{number % shape.grid.x, number / shape.grid.x % shape.grid.y, number / shape.grid.x / shape.grid.y};
    std::memset(aligned, 0xFF, shape.shared_bytes);
    if (static_shared.begin) std::memset(static_shared.begin, 0xFF, static_cast<size_t>(static_shared.end - static_shared.begin));
    for (unsigned t = 0; t < threads; ++t) prepare(machine.fibers[t], t, shape, block, aligned);
    run_threads(numbers(threads, order, random));
    if (machine.failure.empty()) continue;
    // Left in the middle of a call: not used again. Of mappings a process has 65,530, and each stack is two.
    for (std::byte* stack : machine.stacks) munmap(stack - kGuardBytes, kStackBytes + kGuardBytes);
    machine.stacks.clear();
    EMU_TSAN(for (void* fiber : machine.tsan_fibers) __tsan_destroy_fiber(fiber);)
    machine.tsan_fibers.clear();
    return "block (" + std::to_string(block.x) + ", " + std::to_string(block.y) + ", " + std::to_string(block.z) + "): " + machine.failure;
  }
  return {};
}

}  // namespace emulator
