/* SPDX-License-Identifier: Apache-2.0 */
/* The compiler and its runtime from C, and from every language that calls C: a shared library, libeinc_c, of plain functions.
 *
 *   einc_options* options = einc_options_new();
 *   einc_options_set_dim(options, "batch", 32);
 *   einc_model* model = NULL;
 *   if (einc_compile_file("model.ein", options, &model) != EINC_OK) fputs(einc_last_error(), stderr);
 *   einc_session* session = NULL;
 *   einc_session_new(model, 0, &session);
 *   einc_session_init(session, 1);
 *   einc_session_bind(session, "x", EINC_F32, shape, 2, x);
 *   einc_session_run(session);
 *
 * Errors: a function that can fail returns an einc_status, and einc_last_error() tells what was wrong. Results are written through the
 * last parameters, and only on EINC_OK. No C++ exception leaves the library. A null handle, name or result is EINC_USAGE, not a crash;
 * functions that free take null.
 * Strings are UTF-8 that ends in a null byte. Pointers that come back belong to the handle that they were asked of, and last until it is
 * freed, unless a comment says less.
 * Threads: a model and options that nobody changes may be used by any number of threads at once. A session is used by one thread at a
 * time; different sessions, of one model too, do not disturb each other. The last error is each thread's own.
 * Compatibility: within one EINC_C_ABI functions, structs and constants keep their meaning, and new ones may join them. */
#ifndef EINC_C_H
#define EINC_C_H

#include <stddef.h>
#include <stdint.h>

#include "einc/version.h"

#define EINC_C_ABI 1

#if defined(_WIN32)
#define EINC_API
#else
#define EINC_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Whose fault it is. The values are the exit statuses of the command line. */
typedef enum einc_status {
  EINC_OK = 0,
  EINC_PROGRAM = 1,  /* the program's text is wrong; the message shows the lines */
  EINC_USAGE = 2,    /* a call is wrong: no such tensor, another dtype or shape, a dim without a value */
  EINC_DATA = 3,     /* a file or a value is wrong: an index outside its table, a damaged file */
  EINC_RESOURCE = 4, /* no memory, no file, no GPU, or a processor without what the code needs */
  EINC_NUMERIC = 5,  /* a step would have stored a number that is not finite; nothing changed */
  EINC_INTERNAL = 70 /* a defect of einc: please report it */
} einc_status;

typedef enum einc_dtype {
  EINC_F64 = 1,
  EINC_F32,
  EINC_BF16,
  EINC_F16,
  EINC_F8E4M3,
  EINC_F8E5M2,
  EINC_I64,
  EINC_I32,
  EINC_U16,
  EINC_U8,
  EINC_BOOL /* a byte of 0 or 1 */
} einc_dtype;

/* What replaces the program's own precision policy. */
typedef enum einc_precision {
  EINC_AS_WRITTEN = 0,
  EINC_PRECISION_F32,
  EINC_PRECISION_TF32,
  EINC_PRECISION_BF16,
  EINC_PRECISION_F16,
  EINC_PRECISION_FP8
} einc_precision;

typedef enum einc_target {
  EINC_CPU = 0,   /* machine code for this processor */
  EINC_CUDA,      /* kernels for this machine's NVIDIA GPU; tensors are copied when they are read */
  EINC_REFERENCE, /* the interpreter, in f64: slow */
} einc_target;

typedef enum einc_purpose {
  EINC_TRAINING = 0, /* einc_session_step and einc_session_run */
  EINC_INFERENCE,    /* einc_session_run alone: no optimizer state, no code for a step */
  EINC_PULLBACK      /* einc_session_run alone, which also gives gradients of the outputs: see einc/einc.h */
} einc_purpose;

/* What a tensor is to its program. */
typedef enum einc_role {
  EINC_INPUT = 0,
  EINC_PARAM,
  EINC_STATE,
  EINC_OUTPUT,
  EINC_GRADIENT /* of the minimized loss by a param, in the last step: named as the param; only for einc_session_read */
} einc_role;

typedef enum einc_report_form { EINC_REPORT_JSON = 0, EINC_REPORT_HTML, EINC_REPORT_TEXT } einc_report_form;

typedef enum einc_saved { EINC_SAVE_PARAMS = 0, EINC_SAVE_PARAMS_AND_STATES } einc_saved;

typedef struct einc_options einc_options; /* how to compile */
typedef struct einc_model einc_model;     /* a compiled program */
typedef struct einc_session einc_session; /* a program with values for its tensors */
typedef struct einc_report einc_report;   /* a report's text */

/* A tensor of a program. A unit axis has the name "". A scalar has rank 0. */
typedef struct einc_tensor_info {
  const char* name; /* an input's or output's name, the path of a param or state: "h.0.attn.w" */
  einc_dtype dtype;
  size_t rank;
  const char* const* axes;
  const int64_t* shape;
  size_t bytes;
} einc_tensor_info;

/* Values of a tensor, row-major without gaps, to be read. They stay where they are until the session changes them. */
typedef struct einc_tensor {
  einc_dtype dtype;
  size_t rank;
  const int64_t* shape; /* until the next einc_session_read of this session */
  size_t bytes;
  const void* data;
} einc_tensor;

/* A place in a program's text. Lines and columns count from 1, 0: none; the end is just behind the place. */
typedef struct einc_diagnostic {
  int is_warning;
  const char* code; /* "E0301" */
  const char* message;
  const char* hint; /* what to write instead; "": none */
  const char* file;
  uint32_t line, column, end_line, end_column;
} einc_diagnostic;

/* ---- The library ---- */
EINC_API uint32_t einc_abi_version(void); /* EINC_C_ABI of the library: a program checks that it is the one it was compiled with */
EINC_API const char* einc_version(void);  /* "0.1.0" */
/* Of the last function of this thread that failed: what was wrong, with the program's lines and carets where its text is. Lasts until the
 * thread's next call that fails. */
EINC_API const char* einc_last_error(void);
/* The same as data, one by one, for EINC_PROGRAM; of other errors there are none. EINC_USAGE: no such diagnostic. */
EINC_API size_t einc_diagnostic_count(void);
EINC_API einc_status einc_diagnostic_at(size_t index, einc_diagnostic* diagnostic);

/* ---- Options. Null stands for options that nobody has changed. ---- */
EINC_API einc_options* einc_options_new(void); /* null: out of memory */
EINC_API void einc_options_free(einc_options* options);
EINC_API einc_status einc_options_set_dim(einc_options* options, const char* name, int64_t value);
EINC_API einc_status einc_options_set_precision(einc_options* options, einc_precision precision);
EINC_API einc_status einc_options_set_target(einc_options* options, einc_target target);
EINC_API einc_status einc_options_set_purpose(einc_options* options, einc_purpose purpose);
/* Bytes that a session may take at most: see einc/einc.h. */
EINC_API einc_status einc_options_set_memory_limit(einc_options* options, int64_t bytes);
/* The machine that reports speak of, a name of `einc --list-devices`; "": this processor. */
EINC_API einc_status einc_options_set_report_device(einc_options* options, const char* device);
EINC_API einc_status einc_options_add_import_folder(einc_options* options, const char* folder);
/* Where machine code is kept; "": nowhere. Without this call: ~/.cache/einc. */
EINC_API einc_status einc_options_set_code_cache(einc_options* options, const char* folder);

/* ---- Models ---- */
EINC_API einc_status einc_compile_file(const char* path, const einc_options* options, einc_model** model);
/* `name` stands for the text in messages; null: "model.ein". Imports are looked for beside it. */
EINC_API einc_status einc_compile_text(const char* text, const char* name, const einc_options* options, einc_model** model);
EINC_API void einc_model_free(einc_model* model); /* its sessions may live on */
EINC_API const char* einc_model_name(const einc_model* model);
EINC_API int einc_model_trains(const einc_model* model); /* 1: it has a training step */
EINC_API size_t einc_model_dim_count(const einc_model* model);
EINC_API einc_status einc_model_dim(const einc_model* model, size_t index, const char** name, int64_t* value);
EINC_API size_t einc_model_tensor_count(const einc_model* model, einc_role role);
EINC_API einc_status einc_model_tensor(const einc_model* model, einc_role role, size_t index, einc_tensor_info* info);

/* ---- Reports. JSON as of `einc FILE --report=json`. ---- */
EINC_API einc_status einc_model_report(const einc_model* model, einc_report_form form, einc_report** report);
/* Of a program that is not compiled further: dims may be left without values. */
EINC_API einc_status einc_report_of_file(const char* path, const einc_options* options, einc_report_form form, einc_report** report);
EINC_API einc_status einc_report_of_text(const char* text, const char* name, const einc_options* options, einc_report_form form,
                                         einc_report** report);
EINC_API const char* einc_report_text(const einc_report* report);
EINC_API void einc_report_free(einc_report* report);

/* ---- Sessions ---- */
/* Inputs, params and states are zero until they are set. `threads`: 0: as many as the machine has. Results are the same for any number. */
EINC_API einc_status einc_session_new(const einc_model* model, int threads, einc_session** session);
EINC_API void einc_session_free(einc_session* session);
/* Params and states as their initialisers say; the random draws of runs and steps follow from the same seed. */
EINC_API einc_status einc_session_init(einc_session* session, uint64_t seed);
/* Values of an input, param or state, copied into the session. */
EINC_API einc_status einc_session_set(einc_session* session, const char* name, einc_dtype dtype, const int64_t* shape, size_t rank,
                                      const void* data);
/* From now on the tensor lies in the caller's memory, which outlives the session or the next bind or set of this name: nothing is copied,
 * and a step writes new params and states there. Inputs are never written. The memory is aligned as its elements are. */
EINC_API einc_status einc_session_bind(einc_session* session, const char* name, einc_dtype dtype, const int64_t* shape, size_t rank,
                                       void* data);
/* Params and states by their paths from a .safetensors or .npz file. `names`: a file that says what tensors are called there; null: as
 * here. Params that the file lacks keep their values; einc_session_missing tells how many those were. */
EINC_API einc_status einc_session_load(einc_session* session, const char* path, const char* names);
EINC_API size_t einc_session_missing(const einc_session* session);
EINC_API const char* einc_session_missing_name(const einc_session* session, size_t index);        /* null: no such one */
EINC_API einc_status einc_session_save(einc_session* session, const char* path, einc_saved what); /* .safetensors, whole or not at all */
/* A checkpoint of params, states, seed and steps, of which the newest `keep` stay; and the way on from the newest: *found is 0 where there
 * is none. */
EINC_API einc_status einc_session_save_checkpoint(einc_session* session, const char* folder, int keep);
EINC_API einc_status einc_session_resume(einc_session* session, const char* folder, int* found);
EINC_API einc_status einc_session_run(einc_session* session);                    /* the outputs, and the program's own states */
EINC_API einc_status einc_session_step(einc_session* session);                   /* a training step: new params and states */
EINC_API einc_status einc_session_loss(einc_session* session, double* loss);     /* of the last step */
EINC_API einc_status einc_session_evaluate(einc_session* session, double* loss); /* of the params as they are, without dropout */
EINC_API einc_status einc_session_steps(const einc_session* session, uint64_t* steps);
/* EINC_USAGE when there are none: before a run or step, or overwritten. */
EINC_API einc_status einc_session_read(einc_session* session, einc_role role, const char* name, einc_tensor* tensor);

#ifdef __cplusplus
}
#endif
#endif
