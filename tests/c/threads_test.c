/* SPDX-License-Identifier: Apache-2.0 */
/* One model, a session on each of four threads: equal bits; and each thread's last error is its own. */
#include "check.h"

#include <pthread.h>

enum { kThreads = 4 };

typedef struct Work {
  const einc_model* model;
  int number;
  float w[3];
  int error_is_own;
} Work;

static void* train(void* argument) {
  Work* work = argument;
  const int64_t x_shape[] = {4, 3}, y_shape[] = {4};
  float x[12], y[4] = {1, 2, 3, 4};
  for (int i = 0; i < 12; ++i) x[i] = (float)(i % 5) - 2;
  einc_session* session = NULL;
  if (einc_session_new(work->model, 1 + work->number % 2, &session) != EINC_OK) return NULL;
  einc_session_init(session, 3);
  einc_session_set(session, "x", EINC_F32, x_shape, 2, x);
  einc_session_set(session, "y", EINC_F32, y_shape, 1, y);
  char name[16];
  snprintf(name, sizeof name, "wrong_%d", work->number);
  for (int step = 0; step < 50; ++step) {
    einc_session_step(session);
    einc_session_set(session, name, EINC_F32, x_shape, 2, x);
    work->error_is_own += strstr(einc_last_error(), name) != NULL;
  }
  einc_tensor w;
  if (einc_session_read(session, EINC_PARAM, "w", &w) == EINC_OK) memcpy(work->w, w.data, sizeof work->w);
  einc_session_free(session);
  return NULL;
}

void test_threads(void) {
  einc_model* model = compile_linear("", EINC_TRAINING);
  pthread_t threads[kThreads];
  Work work[kThreads];
  for (int i = 0; i < kThreads; ++i) {
    work[i] = (Work){model, i, {0, 0, 0}, 0};
    CHECK(pthread_create(&threads[i], NULL, train, &work[i]) == 0);
  }
  for (int i = 0; i < kThreads; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
  for (int i = 0; i < kThreads; ++i) {
    CHECK(memcmp(work[i].w, work[0].w, sizeof work[i].w) == 0);
    CHECK(work[i].w[0] != 0);
    CHECK(work[i].error_is_own == 50);
  }
  einc_model_free(model);
}
