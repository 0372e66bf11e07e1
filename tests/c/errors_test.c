/* SPDX-License-Identifier: Apache-2.0 */
/* Every status a C program can bring about, and that nothing crashes on null. EINC_INTERNAL is tests/unit/api's. */
#include "check.h"

static void test_wrong_programs(void) {
  einc_model* model = NULL;
  CHECK_FAILS(einc_compile_text("input x: f32[3]\noutput y = x + z\n", "wrong.ein", NULL, &model), EINC_PROGRAM, "wrong.ein:2:16");
  CHECK(model == NULL && einc_diagnostic_count() == 1);
  einc_diagnostic diagnostic;
  CHECK(einc_diagnostic_at(0, &diagnostic) == EINC_OK);
  CHECK(diagnostic.code[0] == 'E' && diagnostic.line == 2 && diagnostic.column == 16 && diagnostic.end_column == 17);
  CHECK(strcmp(diagnostic.file, "wrong.ein") == 0 && strstr(diagnostic.message, "z") != NULL && diagnostic.is_warning == 0);
  CHECK(strstr(einc_last_error(), "output y = x + z") != NULL); /* the line, above the caret */
  CHECK(einc_diagnostic_at(1, &diagnostic) == EINC_USAGE && einc_diagnostic_at(0, NULL) == EINC_USAGE);
}

static void test_wrong_calls(einc_model* model, einc_session* session) {
  const int64_t shape[] = {4, 3}, wrong[] = {3, 4};
  float x[12] = {0};
  einc_tensor tensor;
  einc_tensor_info info;
  einc_model* other = NULL;
  double loss = 0;
  CHECK_FAILS(einc_compile_text("dim n\ninput x: f32[n]\noutput y = x\n", NULL, NULL, &other), EINC_USAGE, "n has no value");
  CHECK(einc_diagnostic_count() == 0);
  CHECK_FAILS(einc_session_set(session, "nobody", EINC_F32, shape, 2, x), EINC_USAGE, "no input, param or state 'nobody'");
  CHECK_FAILS(einc_session_set(session, "x", EINC_F64, shape, 2, x), EINC_USAGE, "'x' is f32[4 3]");
  CHECK_FAILS(einc_session_set(session, "x", EINC_F32, wrong, 2, x), EINC_USAGE, "given as f32[3 4]");
  CHECK_FAILS(einc_session_set(session, "x", (einc_dtype)99, shape, 2, x), EINC_USAGE, "99 is no dtype");
  CHECK_FAILS(einc_session_set(session, "x", EINC_F32, shape, 1000, x), EINC_USAGE, "rank 1000");
  CHECK_FAILS(einc_session_set(session, "x", EINC_F32, NULL, 2, x), EINC_USAGE, "`shape` is null");
  CHECK_FAILS(einc_session_set(session, "x", EINC_F32, shape, 2, NULL), EINC_USAGE, "null address");
  CHECK_FAILS(einc_session_bind(session, "x", EINC_F32, shape, 2, (char*)x + 1), EINC_USAGE, "aligned");
  CHECK_FAILS(einc_session_read(session, EINC_OUTPUT, "p", &tensor), EINC_USAGE, "before a run");
  CHECK_FAILS(einc_session_read(session, (einc_role)9, "p", &tensor), EINC_USAGE, "no role");
  CHECK_FAILS(einc_session_loss(session, &loss), EINC_USAGE, "before a step");
  CHECK_FAILS(einc_model_tensor(model, EINC_INPUT, 2, &info), EINC_USAGE, "index 2 of 2");
  CHECK_FAILS(einc_model_tensor(model, (einc_role)-1, 0, &info), EINC_USAGE, "index 0 of 0");
  CHECK_FAILS(einc_session_save_checkpoint(session, "c_test_checkpoint", 0), EINC_USAGE, "keeps 0");
  einc_options* options = einc_options_new();
  CHECK_FAILS(einc_options_set_target(options, (einc_target)7), EINC_USAGE, "7 is no target");
  CHECK_FAILS(einc_options_set_precision(options, (einc_precision)-1), EINC_USAGE, "no precision");
  CHECK_FAILS(einc_options_set_purpose(options, (einc_purpose)5), EINC_USAGE, "no purpose");
  CHECK_OK(einc_options_set_report_device(options, "abacus"));
  einc_report* report = NULL;
  CHECK_FAILS(einc_report_of_text("input x: f32[3]\noutput y = x\n", NULL, options, EINC_REPORT_JSON, &report), EINC_USAGE,
              "no device `abacus`");
  CHECK_FAILS(einc_model_report(model, (einc_report_form)8, &report), EINC_USAGE, "no form");
  einc_options_free(options);
}

static void test_null(void) {
  einc_model* model = NULL;
  CHECK_FAILS(einc_compile_file(NULL, NULL, &model), EINC_USAGE, "einc_compile_file: `path` is null");
  CHECK_FAILS(einc_compile_text("", NULL, NULL, NULL), EINC_USAGE, "`model` is null");
  CHECK_FAILS(einc_session_new(NULL, 0, NULL), EINC_USAGE, "`model` is null");
  CHECK_FAILS(einc_session_run(NULL), EINC_USAGE, "`session` is null");
  CHECK_FAILS(einc_options_set_dim(NULL, "n", 1), EINC_USAGE, "`options` is null");
  CHECK(einc_model_tensor_count(NULL, EINC_INPUT) == 0 && einc_model_dim_count(NULL) == 0 && einc_model_trains(NULL) == 0);
  CHECK(strcmp(einc_model_name(NULL), "") == 0 && strcmp(einc_report_text(NULL), "") == 0 && einc_session_missing(NULL) == 0);
  einc_model_free(NULL);
  einc_session_free(NULL);
  einc_options_free(NULL);
  einc_report_free(NULL);
}

static void test_files_and_values(einc_session* session) {
  einc_model* model = NULL;
  CHECK_FAILS(einc_compile_file("no/such/file.ein", NULL, &model), EINC_RESOURCE, "no/such/file.ein");
  CHECK_FAILS(einc_session_load(session, "no/such/file.safetensors", NULL), EINC_RESOURCE, "no/such/file.safetensors");
  FILE* damaged = fopen("c_test_damaged.safetensors", "wb");
  fputs("\x10", damaged);
  fclose(damaged);
  CHECK_FAILS(einc_session_load(session, "c_test_damaged.safetensors", NULL), EINC_DATA, "c_test_damaged.safetensors");
  CHECK_FAILS(einc_session_save(session, "no/such/folder/w.safetensors", EINC_SAVE_PARAMS), EINC_RESOURCE, "no/such/folder");

  const char* lookup = "input ids: i32[n=2]\nparam table: f32[rows=5] ~ ones\noutput y = table[rows = ids]\n";
  const int32_t ids[] = {4, 5};
  const int64_t shape[] = {2};
  CHECK_OK(einc_compile_text(lookup, "lookup.ein", NULL, &model));
  einc_session* other = NULL;
  CHECK_OK(einc_session_new(model, 1, &other));
  CHECK_OK(einc_session_set(other, "ids", EINC_I32, shape, 1, ids));
  CHECK_FAILS(einc_session_run(other), EINC_DATA, "'ids' at [1] is 5");
  einc_session_free(other);
  einc_model_free(model);
}

/* A step that would store what is not finite changes nothing. */
static void test_numeric(einc_session* session) {
  const int64_t x_shape[] = {4, 3}, w_shape[] = {3};
  float x[12], w[3] = {1, 1, 1};
  for (int i = 0; i < 12; ++i) x[i] = 1e38F;
  CHECK_OK(einc_session_set(session, "x", EINC_F32, x_shape, 2, x));
  CHECK_OK(einc_session_set(session, "w", EINC_F32, w_shape, 1, w));
  CHECK_FAILS(einc_session_step(session), EINC_NUMERIC, "loss is inf");
  einc_tensor tensor;
  CHECK_OK(einc_session_read(session, EINC_PARAM, "w", &tensor));
  CHECK(memcmp(tensor.data, w, sizeof w) == 0);
}

void test_errors(void) {
  test_wrong_programs();
  test_null();
  einc_model* model = compile_linear("", EINC_TRAINING);
  einc_session* session = NULL;
  CHECK_OK(einc_session_new(model, 1, &session));
  test_wrong_calls(model, session);
  test_files_and_values(session);
  test_numeric(session);
  einc_session_free(session);
  einc_model_free(model);
  model = compile_linear("", EINC_INFERENCE);
  CHECK_OK(einc_session_new(model, 1, &session));
  CHECK_FAILS(einc_session_step(session), EINC_USAGE, "no training step");
  einc_session_free(session);
  einc_model_free(model);
}
