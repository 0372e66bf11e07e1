// SPDX-License-Identifier: Apache-2.0
// The names offered as near ones come in one order whatever the hash table does: same input, same message.
#include "compiler/elaborate/builtins.h"

#include <doctest/doctest.h>

#include <algorithm>

TEST_CASE("built-in names are sorted") {
  const std::vector<std::string> names = einc::builtin_names();
  CHECK(names.size() > 50);
  CHECK(std::is_sorted(names.begin(), names.end()));
}
