/* SPDX-License-Identifier: Apache-2.0 */
/* The library as a C program sees it: what a linear regression computes can be said in a few lines of C. */
#include "check.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

int failures = 0;

static const char kLinear[] =
    "dim batch, features = 3\n"
    "input x: f32[batch features]\n"
    "input y: f32[batch]\n"
    "param w: [features] ~ normal(0, 1)\n"
    "state seen: f32[] ~ zeros\n"
    "p = einsum(x, w, \"batch features, features -> batch\")\n"
    "output p\n"
    "seen <- seen + 1\n"
    "minimize mean((p - y)^2) using sgd(lr = 0.1)\n";

einc_model* compile_linear(const char* more, einc_purpose purpose) {
  char text[1024];
  snprintf(text, sizeof text, "%s%s", kLinear, more);
  einc_options* options = einc_options_new();
  CHECK(options != NULL);
  CHECK_OK(einc_options_set_dim(options, "batch", 4));
  CHECK_OK(einc_options_set_code_cache(options, ""));
  CHECK_OK(einc_options_set_purpose(options, purpose));
  einc_model* model = NULL;
  CHECK_OK(einc_compile_text(text, "linear.ein", options, &model));
  einc_options_free(options);
  return model;
}

static void test_description(const einc_model* model) {
  CHECK(strcmp(einc_model_name(model), "linear.ein") == 0 && einc_model_trains(model) == 1);
  const char* name = NULL;
  int64_t value = 0;
  CHECK(einc_model_dim_count(model) == 2);
  CHECK_OK(einc_model_dim(model, 1, &name, &value));
  CHECK(strcmp(name, "features") == 0 && value == 3);
  CHECK(einc_model_tensor_count(model, EINC_INPUT) == 2 && einc_model_tensor_count(model, EINC_PARAM) == 1);
  CHECK(einc_model_tensor_count(model, EINC_OUTPUT) == 1 && einc_model_tensor_count(model, EINC_STATE) >= 1);
  einc_tensor_info info;
  CHECK_OK(einc_model_tensor(model, EINC_INPUT, 0, &info));
  CHECK(strcmp(info.name, "x") == 0 && info.dtype == EINC_F32 && info.rank == 2 && info.bytes == 48);
  CHECK(strcmp(info.axes[0], "batch") == 0 && strcmp(info.axes[1], "features") == 0 && info.shape[0] == 4 && info.shape[1] == 3);
}

static void test_report(const einc_model* model) {
  einc_report* report = NULL;
  CHECK_OK(einc_model_report(model, EINC_REPORT_JSON, &report));
  CHECK(strstr(einc_report_text(report), "\"model\": \"linear.ein\"") != NULL);
  einc_report_free(report);
  CHECK_OK(einc_model_report(model, EINC_REPORT_HTML, &report));
  CHECK(strstr(einc_report_text(report), "<html") != NULL);
  einc_report_free(report);
  einc_options* options = einc_options_new();
  CHECK_OK(einc_options_set_report_device(options, "h200"));
  CHECK_OK(einc_report_of_text(kLinear, NULL, options, EINC_REPORT_JSON, &report));
  const char* text = einc_report_text(report);
  CHECK(strstr(text, "\"model\": \"model.ein\"") != NULL && strstr(text, "h200") != NULL && strstr(text, "\"free_dims\"") != NULL);
  einc_report_free(report);
  einc_options_free(options);
}

/* One step of gradient descent by hand. */
static void test_step(einc_session* session) {
  static float x[12], y[4], w[3] = {0.5F, -1, 2};
  const int64_t x_shape[] = {4, 3}, y_shape[] = {4}, w_shape[] = {3};
  for (int i = 0; i < 12; ++i) x[i] = sinf((float)i);
  for (int i = 0; i < 4; ++i) y[i] = cosf((float)i);
  CHECK_OK(einc_session_bind(session, "x", EINC_F32, x_shape, 2, x));
  CHECK_OK(einc_session_set(session, "y", EINC_F32, y_shape, 1, y));
  CHECK_OK(einc_session_bind(session, "w", EINC_F32, w_shape, 1, w));
  double p[4], gradient[3] = {0, 0, 0}, loss = 0;
  for (int i = 0; i < 4; ++i) {
    p[i] = 0.5 * (double)x[3 * i] - (double)x[3 * i + 1] + 2 * (double)x[3 * i + 2];
    loss += (p[i] - (double)y[i]) * (p[i] - (double)y[i]) / 4;
    for (int k = 0; k < 3; ++k) gradient[k] += (p[i] - (double)y[i]) * (double)x[3 * i + k] / 2;
  }
  double measured = 0, evaluated = 0;
  CHECK_OK(einc_session_evaluate(session, &evaluated));
  CHECK_OK(einc_session_step(session));
  CHECK_OK(einc_session_loss(session, &measured));
  CHECK(fabs(measured - loss) < 1e-5 && fabs(evaluated - loss) < 1e-5);
  einc_tensor tensor;
  CHECK_OK(einc_session_read(session, EINC_OUTPUT, "p", &tensor));
  CHECK(tensor.dtype == EINC_F32 && tensor.rank == 1 && tensor.shape[0] == 4 && tensor.bytes == 16);
  for (int i = 0; i < 4; ++i) CHECK(fabs((double)((const float*)tensor.data)[i] - p[i]) < 1e-5);
  CHECK_OK(einc_session_read(session, EINC_GRADIENT, "w", &tensor));
  for (int k = 0; k < 3; ++k) CHECK(fabs((double)((const float*)tensor.data)[k] - gradient[k]) < 1e-5);
  CHECK_OK(einc_session_read(session, EINC_PARAM, "w", &tensor));
  CHECK(tensor.data == w && fabs((double)w[0] - (0.5 - 0.1 * gradient[0])) < 1e-5); /* written where it is bound */
  CHECK_OK(einc_session_read(session, EINC_INPUT, "x", &tensor));
  CHECK(tensor.data == x);
  CHECK_OK(einc_session_read(session, EINC_STATE, "seen", &tensor));
  CHECK(tensor.rank == 0 && *(const float*)tensor.data == 1);
  uint64_t steps = 0;
  CHECK_OK(einc_session_steps(session, &steps));
  CHECK(steps == 1);
}

/* What one session saves another loads. */
static void test_files(const einc_model* model, einc_session* session) {
  einc_session* other = NULL;
  CHECK_OK(einc_session_new(model, 1, &other));
  CHECK_OK(einc_session_init(other, 7));
  CHECK_OK(einc_session_save(session, "c_test.safetensors", EINC_SAVE_PARAMS));
  CHECK_OK(einc_session_load(other, "c_test.safetensors", NULL));
  CHECK(einc_session_missing(other) == 0 && einc_session_missing_name(other, 0) == NULL);
  einc_tensor a, b;
  CHECK_OK(einc_session_read(session, EINC_PARAM, "w", &a));
  CHECK_OK(einc_session_read(other, EINC_PARAM, "w", &b));
  CHECK(a.bytes == b.bytes && memcmp(a.data, b.data, a.bytes) == 0);
  int found = 1;
  CHECK_OK(einc_session_resume(other, "c_test_nothing", &found));
  CHECK(found == 0);
  CHECK_OK(einc_session_save_checkpoint(session, "c_test_checkpoint", 2));
  CHECK_OK(einc_session_resume(other, "c_test_checkpoint", &found));
  uint64_t steps = 0;
  CHECK_OK(einc_session_steps(other, &steps));
  CHECK(found == 1 && steps == 1);
  einc_session_free(other);
}

static void test_pullback(void) {
  einc_model* model = compile_linear("", EINC_PULLBACK);
  einc_session* session = NULL;
  CHECK_OK(einc_session_new(model, 1, &session));
  float x[12], cotangent[4] = {1, 2, 3, 4}, w[3] = {1, 2, 3};
  const int64_t x_shape[] = {4, 3}, cotangent_shape[] = {4}, w_shape[] = {3};
  for (int i = 0; i < 12; ++i) x[i] = (float)i;
  CHECK_OK(einc_session_set(session, "x", EINC_F32, x_shape, 2, x));
  CHECK_OK(einc_session_set(session, "w", EINC_F32, w_shape, 1, w));
  CHECK_OK(einc_session_set(session, "cotangent.p", EINC_F32, cotangent_shape, 1, cotangent));
  CHECK_OK(einc_session_run(session));
  einc_tensor gradient;
  CHECK_OK(einc_session_read(session, EINC_OUTPUT, "gradient.x", &gradient));
  for (int i = 0; i < 12; ++i) CHECK(((const float*)gradient.data)[i] == cotangent[i / 3] * w[i % 3]);
  CHECK_OK(einc_session_read(session, EINC_OUTPUT, "gradient.w", &gradient));
  CHECK(((const float*)gradient.data)[0] == 0 * 1 + 3 * 2 + 6 * 3 + 9 * 4);
  CHECK_OK(einc_session_read(session, EINC_OUTPUT, "gradient.y", &gradient)); /* p does not depend on y */
  CHECK(((const float*)gradient.data)[0] == 0);
  einc_session_free(session);
  einc_model_free(model);
}

int main(void) {
  CHECK(einc_abi_version() == EINC_C_ABI && strcmp(einc_version(), EINC_VERSION) == 0);
  einc_model* model = compile_linear("", EINC_TRAINING);
  if (model == NULL) return 1;
  test_description(model);
  test_report(model);
  einc_session* session = NULL;
  CHECK_OK(einc_session_new(model, 1, &session));
  test_step(session);
  test_files(model, session);
  einc_model_free(model); /* the session lives on */
  CHECK_OK(einc_session_run(session));
  einc_session_free(session);
  test_pullback();
  test_errors();
  test_threads();
  if (failures == 0) puts("all as it should be");
  return failures == 0 ? 0 : 1;
}
