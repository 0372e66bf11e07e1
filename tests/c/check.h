/* SPDX-License-Identifier: Apache-2.0 */
/* What the C tests share: checks that go on after a failure, and count. */
#ifndef EINC_TESTS_C_CHECK_H
#define EINC_TESTS_C_CHECK_H
#include <einc/c.h>
#include <stdio.h>
#include <string.h>

extern int failures;

#define CHECK(condition) \
  ((condition) ? (void)0 : (void)(++failures, fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition)))

/* The status, and a piece of the message. */
#define CHECK_FAILS(call, status, piece)                                                                                \
  do {                                                                                                                  \
    const einc_status got_ = (call);                                                                                    \
    if (got_ != (status) || strstr(einc_last_error(), (piece)) == NULL)                                                 \
      ++failures, fprintf(stderr, "%s:%d: %s gives %d: %s\n", __FILE__, __LINE__, #call, (int)got_, einc_last_error()); \
  } while (0)

#define CHECK_OK(call)                                                                                                                     \
  do {                                                                                                                                     \
    const einc_status got_ = (call);                                                                                                       \
    if (got_ != EINC_OK) ++failures, fprintf(stderr, "%s:%d: %s gives %d: %s\n", __FILE__, __LINE__, #call, (int)got_, einc_last_error()); \
  } while (0)

/* The linear model of both suites, compiled without a code cache; null after a failure. */
einc_model* compile_linear(const char* more, einc_purpose purpose);

void test_errors(void);
void test_threads(void);
#endif
