/* SPDX-License-Identifier: Apache-2.0
   What an engine of processes gives: a table of C functions, so that it may live in a shared library of its own. Functions return 0, or a
   positive number that `describe` explains. Calls come from one thread at a time, but `stop` at any time. */
#pragma once
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define EINC_TRANSPORT_VERSION 2
#define EINC_TRANSPORT_STOPPED INT32_MIN
#define EINC_TRANSPORT_SYMBOL "einc_open_transport"

typedef struct EincTransport {
  int32_t version;
  int32_t rank, size; /* of the processes */
  void* context;
  /* To process p go send_bytes[p] bytes, which lie in `send` behind those for processes before it; so it is with what comes. All processes
     between which bytes go call it in the same order; where nothing goes, none waits. -1 - p: process p has not come to it within the
     limit. */
  int (*exchange)(void* context, const void* send, const int64_t* send_bytes, void* receive, const int64_t* receive_bytes);
  const char* (*describe)(void* context, int error);
  /* How long an exchange may wait from now on; 0: for ever, as at first. */
  void (*limit)(void* context, double seconds);
  /* The exchange in progress, if there is one, ends soon with EINC_TRANSPORT_STOPPED; so does every later one. */
  void (*stop)(void* context);
  /* All processes are there, and will call nothing any more. */
  void (*finish)(void* context);
  /* Ends all processes, this one with that status. Does not return. */
  void (*end_all)(void* context, int status);
} EincTransport;

/* The symbol EINC_TRANSPORT_SYMBOL of the library: starts the engine, once for a process. Null: it cannot be started. */
typedef const EincTransport* EincOpenTransport(void);

#ifdef __cplusplus
}
#endif
