/* SPDX-License-Identifier: Apache-2.0 */
/* Trains a classifier from C: compiles a program from text, binds memory that is not copied, steps, saves, and reads the result.
 *   classifier [weights.safetensors]     where to save */
#include <einc/c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char* const kProgram =
    "dim batch, features = 2, hidden = 16, classes = 3\n"
    "input x: f32[batch features]\n"
    "input label: i32[batch]\n"
    "param w1: [features hidden] ~ xavier(fan_in = features)\n"
    "param b1: [hidden] ~ zeros\n"
    "param w2: [hidden classes] ~ xavier(fan_in = hidden)\n"
    "h = tanh(einsum(x, w1, \"batch features, features hidden -> batch hidden\") + b1)\n"
    "output logits = einsum(h, w2, \"batch hidden, hidden classes -> batch classes\")\n"
    "minimize mean(cross_entropy(logits, label, classes)) using adam(lr = 0.02)\n";

enum { kBatch = 96, kFeatures = 2, kClasses = 3 };

/* Ends the program with einc's exit status when a call failed. */
static void check(einc_status status) {
  if (status == EINC_OK) return;
  fprintf(stderr, "%s\n", einc_last_error());
  exit((int)status);
}

static void print_tensors(const einc_model* model, einc_role role, const char* title) {
  for (size_t i = 0; i < einc_model_tensor_count(model, role); ++i) {
    einc_tensor_info tensor;
    check(einc_model_tensor(model, role, i, &tensor));
    printf("%s %s: [", title, tensor.name);
    for (size_t k = 0; k < tensor.rank; ++k) printf("%s%s=%lld", k > 0 ? " " : "", tensor.axes[k], (long long)tensor.shape[k]);
    printf("], %zu bytes\n", tensor.bytes);
  }
}

/* Points of three rays from the middle. */
static void make_data(float* x, int32_t* label) {
  static const float kDirection[kClasses][kFeatures] = {{1.0F, 0.0F}, {-0.5F, 0.9F}, {-0.5F, -0.9F}};
  for (int i = 0; i < kBatch; ++i) {
    const float length = 0.3F + 0.02F * (float)(i / kClasses), bend = 0.2F * (float)(i % 5 - 2) / 2.0F;
    label[i] = i % kClasses;
    x[2 * i] = length * kDirection[label[i]][0] + bend;
    x[2 * i + 1] = length * kDirection[label[i]][1] - bend;
  }
}

static int count_right(const einc_tensor* logits, const int32_t* label) {
  const float* score = logits->data;
  int right = 0;
  for (int i = 0; i < kBatch; ++i) {
    int best = 0;
    for (int k = 1; k < kClasses; ++k)
      if (score[kClasses * i + k] > score[kClasses * i + best]) best = k;
    right += best == label[i];
  }
  return right;
}

int main(int argc, char** argv) {
  static float x[kBatch * kFeatures];
  static int32_t label[kBatch];
  const int64_t x_shape[] = {kBatch, kFeatures}, label_shape[] = {kBatch};
  if (einc_abi_version() != EINC_C_ABI) return fprintf(stderr, "libeinc_c is of another version\n"), EINC_RESOURCE;

  einc_options* options = einc_options_new();
  check(einc_options_set_dim(options, "batch", kBatch));
  einc_model* model = NULL;
  check(einc_compile_text(kProgram, "classifier.ein", options, &model));
  einc_options_free(options);
  print_tensors(model, EINC_INPUT, "input");
  print_tensors(model, EINC_PARAM, "param");

  einc_session* session = NULL;
  check(einc_session_new(model, /*threads=*/0, &session));
  check(einc_session_init(session, /*seed=*/1));
  make_data(x, label);
  check(einc_session_bind(session, "x", EINC_F32, x_shape, 2, x)); /* no copy: what x holds at a step counts */
  check(einc_session_bind(session, "label", EINC_I32, label_shape, 1, label));

  double first = 0, last = 0;
  check(einc_session_step(session));
  check(einc_session_loss(session, &first));
  for (int step = 1; step < 200; ++step) check(einc_session_step(session));
  check(einc_session_loss(session, &last));
  check(einc_session_run(session));
  einc_tensor logits;
  check(einc_session_read(session, EINC_OUTPUT, "logits", &logits));
  const int right = count_right(&logits, label);
  printf("loss %.4f, after 200 steps %.4f; %d of %d right\n", first, last, right, (int)kBatch);
  if (argc > 1) check(einc_session_save(session, argv[1], EINC_SAVE_PARAMS));

  einc_session_free(session);
  einc_model_free(model);
  return last < first && right > 90 ? 0 : 1;
}
