// SPDX-License-Identifier: Apache-2.0
// The words of a schedule's text, for its printer and its reader.
#pragma once
#include <array>
#include <string_view>

#include "compiler/lower/buffer_plan.h"
#include "compiler/lower/kernel_names.h"
#include "compiler/lower/library_calls.h"
#include "runtime/program/executable.h"
#include "runtime/program/library_product.h"

namespace einc {

inline constexpr int64_t kScheduleFormat = 1;

std::string_view name_of(LaunchWhen when);
std::string_view name_of(ProductSums sums);
std::string_view name_of(LibraryActivation activation);
std::string_view name_of(BufferPlace place);

// What a plug-in's attention reads and makes, in the order in which it is written.
struct AttentionOperand {
  std::string_view name;
  AttentionCall::Operand AttentionCall::*operand;
  einc_attention_steps einc_attention_problem::*steps;
};
inline constexpr std::array<AttentionOperand, 9> kAttentionOperands{{
    {"q", &AttentionCall::q, &einc_attention_problem::q},
    {"k", &AttentionCall::k, &einc_attention_problem::k},
    {"v", &AttentionCall::v, &einc_attention_problem::v},
    {"o", &AttentionCall::o, &einc_attention_problem::o},
    {"log_sum", &AttentionCall::log_sum, &einc_attention_problem::log_sum},
    {"d_o", &AttentionCall::d_o, &einc_attention_problem::d_o},
    {"d_q", &AttentionCall::d_q, &einc_attention_problem::d_q},
    {"d_k", &AttentionCall::d_k, &einc_attention_problem::d_k},
    {"d_v", &AttentionCall::d_v, &einc_attention_problem::d_v},
}};

}  // namespace einc
