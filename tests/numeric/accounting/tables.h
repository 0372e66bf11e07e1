// SPDX-License-Identifier: Apache-2.0
// What the accounting suites share: the tables of this folder and the reports of its models.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "compiler/pipeline/pipeline.h"
#include "compiler/report/report.h"

namespace einc::accounting {

// The cells of each line of a table in this folder, comments left out.
std::vector<std::vector<std::string>> rows_of(const std::string& file);
// "B=8 D=4"; "-" sets nothing.
Bindings dims_of(const std::string& text);
// A model of models/, or of examples/ when its name starts with @.
Compilation compiled(const std::string& model, const std::string& dims);
nlohmann::json report_of(const std::string& model, const std::string& dims, Detail detail = Detail::totals);
std::string text_of(const std::string& model, const std::string& dims);
// What `einc estimate ARGUMENTS --report=json` prints.
nlohmann::json estimate_of(const std::string& arguments);
// The sum of the quantities named by JSON pointers that + joins, each with an integer factor before it (or - alone) when one is written:
// 8/a/b+-/c. In an array a step may be an index, an element's name, or key=part: the sum over the elements whose key holds that part.
int64_t quantity_of(const nlohmann::json& report, const std::string& terms);
// Whether the quantity is what is expected: exactly an integer; a decimal fraction (41.65, 3.14e23) when rounded to its digits.
bool gives(const nlohmann::json& report, const std::string& terms, const std::string& expected);

}  // namespace einc::accounting
