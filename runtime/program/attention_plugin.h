// SPDX-License-Identifier: Apache-2.0
/* Attention by a library of somebody else's, as a shared library that exports the functions below (tests and einc's own plug-in for cuDNN
   are two). C, so that it may be built by any compiler, apart from einc.

   For batch b, query head h, query i and key j, with key head n = h / (query_heads / key_heads):
     s[i][j] = scale * sum over d of q[b][h][i][d] * k[b][n][j][d], for EINC_ATTENTION_CAUSAL only where j <= i
     log_sum[i] = log(sum over j of exp(s[i][j]))
     o[b][h][i][e] = sum over j of exp(s[i][j] - log_sum[i]) * v[b][n][j][e]
   and, backward, the gradients d_q, d_k and d_v of the sum of o * d_o, those of a key head summed over its query heads. */
#ifndef EINC_ATTENTION_PLUGIN_H
#define EINC_ATTENTION_PLUGIN_H
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define EINC_ATTENTION_ABI 1

/* Elements from one batch, head and row to the next; elements of a head lie side by side. Of a size of 1 the step means nothing. */
typedef struct einc_attention_steps {
  int64_t batch, head, row;
} einc_attention_steps;

enum { EINC_ATTENTION_FORWARD, EINC_ATTENTION_BACKWARD };
enum { EINC_ATTENTION_BF16, EINC_ATTENTION_F16 };
enum { EINC_ATTENTION_NO_MASK, EINC_ATTENTION_CAUSAL };

/* All fields are 8 bytes wide: two problems are the same when their bytes are. */
typedef struct einc_attention_problem {
  int64_t direction, dtype, mask;
  int64_t keeps_log_sum;                                /* a forward writes log_sum */
  int64_t deterministic;                                /* a backward gives the same bits each time */
  int64_t batch, query_heads, key_heads, queries, keys; /* sizes */
  int64_t head_size, value_size;                        /* of q and k, of v and o */
  double scale;
  einc_attention_steps q, k, v, o, log_sum; /* log_sum is f32, the others of `dtype` */
  einc_attention_steps d_o, d_q, d_k, d_v;  /* of a backward, which reads the five above and d_o */
} einc_attention_problem;

/* Addresses in the GPU's memory, of the first elements. */
typedef struct einc_attention_buffers {
  uint64_t q, k, v, o, log_sum, d_o, d_q, d_k, d_v;
} einc_attention_buffers;

typedef struct einc_attention_plan einc_attention_plan;

/* EINC_ATTENTION_ABI of what the plug-in was built with. */
int einc_attention_abi(void);
/* Whose attention, and which version: "cuDNN 9.19.0". Lasts as long as the library. */
const char* einc_attention_version(void);
/* For the GPU whose context is current. NULL where the library has no way to do it: einc_attention_error tells why. */
einc_attention_plan* einc_attention_create(const einc_attention_problem* problem);
void einc_attention_destroy(einc_attention_plan* plan);
size_t einc_attention_workspace(const einc_attention_plan* plan);
/* Enqueues it on a CUstream, which may be captured; a plan runs once outside of captures first. 0 on success. `workspace` is aligned to 256
   bytes, and one run's at a time. */
int einc_attention_run(const einc_attention_plan* plan, const einc_attention_buffers* buffers, uint64_t workspace, void* stream);
/* What was wrong with this thread's last call that failed, in a line. */
const char* einc_attention_error(void);

#ifdef __cplusplus
}
#endif
#endif
