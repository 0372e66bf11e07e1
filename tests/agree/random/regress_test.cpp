// Programs that were once compiled wrongly.
#include "tests/support/agree.h"

using namespace einc;

TEST_CASE("programs once compiled wrongly agree") { check_regress_programs(disagreement); }
