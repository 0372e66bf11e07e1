// SPDX-License-Identifier: Apache-2.0
// Products of matrices by cuBLASLt.
#include "tests/support/library_products.h"

using namespace einc::library_products;

TEST_CASE("products of every orientation") { check_orientations(); }
TEST_CASE("products in batches, with offsets and shared operands") { check_batches(); }
TEST_CASE("products of all formats") { check_formats(); }
TEST_CASE("products with epilogues") { check_epilogues(); }
