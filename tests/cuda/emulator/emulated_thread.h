// SPDX-License-Identifier: Apache-2.0
// What a kernel compiled for the host and the scheduler of its threads know of each other. Plain C data: the kernel's side is compiled at
// run time, with sanitizers or without, and bound by einc_bind.
#pragma once

struct EmuDim {
  unsigned x = 1, y = 1, z = 1;
};

// What one lane hands to a collective of its warp.
struct EmuSlot {
  unsigned words[8];
};

struct EmuCopy {
  void* to;
  const void* from;
  unsigned bytes;
};

// A product of four warps that has begun, as one thread does its part; `a`: of the four lanes that hold its two rows.
struct EmuProduct {
  float (*sums)[4];
  unsigned a[4][4];
  unsigned long long a_operand, b_operand;  // a_operand 0: in `a`
  int groups;                               // of eight columns
  bool add;
  float (*value)(unsigned bits);
};

struct EmuThread {
  EmuDim thread, block, block_size, grid_size;
  unsigned lane;
  unsigned char* shared;  // dynamic shared memory of the block
};

struct EmuScheduler {
  EmuThread* const* current;  // the thread that runs
  void (*block_barrier)(int line);
  // Waits for every lane of the mask; then what each of the 32 handed in.
  const EmuSlot* (*collective)(unsigned mask, const EmuSlot* mine);
  void (*fail)(const char* why);
  // Copies of this thread that have begun: `push` one, close the group, take the oldest of all but the newest `pending` groups.
  void (*copy_push)(EmuCopy copy);
  void (*copy_commit)();
  bool (*copy_take)(int pending, EmuCopy* copy);
  // Products of this thread that have begun: `push` one, take the oldest.
  void (*product_push)(const EmuProduct* product);
  bool (*product_take)(EmuProduct* product);
  // Of a warp on tensor cores: FLOPs that it has done.
  void (*multiplied)(unsigned long long flops);
};

// The kernel's static shared memory: all of it is in one section.
struct EmuShared {
  char *begin, *end;
};

using EmuBind = EmuShared(const EmuScheduler*);
using EmuCall = void(void** arguments);
