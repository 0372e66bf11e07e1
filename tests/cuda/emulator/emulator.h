// SPDX-License-Identifier: Apache-2.0
// The emulated GPU, for tests: a shared library in the place of NVIDIA's (EINC_CUDA_PATH names the folder), whose kernels are the very text
// that NVRTC would get, compiled for the host. What a stream is given runs when somebody waits for it, as late as CUDA allows.
#pragma once
#include <cstddef>
#include <string>

namespace emulator {

// In which order the blocks of a kernel and the threads of a block run: 0 ascending (at first), 1 descending, else a seed to shuffle by.
void set_order(unsigned order);
// How many GPUs there are, all alike: 1 at first. And how many kernels number `device` was given.
void set_devices(int count);
unsigned long long kernels_on(int device);
// The newest compute capability that NVRTC makes code for: 120 at first.
void set_newest_arch(int arch);
// How much memory the GPU has. 4 GiB at first.
void set_memory(size_t bytes);
size_t used_memory();
// How often a function of the driver's, NVRTC's or cuBLASLt's was called.
unsigned long long calls(const std::string& function);
// How many algorithms cuBLASLt offers for a product, 1 at first; and the number of the one that the last product was given.
void set_gemm_candidates(int count);
int last_gemm_algorithm();
// How many of them, from the first one on, it refuses when a product is to use them; none at first.
void set_unusable_candidates(int count);
// Whether cuBLASLt has epilogues: at first it does; or it offers algorithms for them that it refuses then. And the epilogue of the last
// product.
enum class Epilogues { offered, unusable, missing };
void set_epilogues(Epilogues which);
unsigned last_gemm_epilogue();
// What lies between two events takes 1 ms; this, where a product with an epilogue or a plug-in's attention is part of it.
void set_epilogue_milliseconds(float time);
// The widest head that the plug-in's attention takes, 128 at first.
void set_widest_head(long long width);
// From inside a kernel: it fails at the end of what its present thread does.
void stop(const char* why);
// After a kernel failed every call fails, as on a GPU, until this.
void recover();
// Threads of kernels that have begun, since the process began.
unsigned long long threads_run();
// FLOPs that kernels have done on tensor cores, since the process began; a library's products are not among them.
unsigned long long flops_on_tensor_cores();

}  // namespace emulator
