// Random programs: machine code gives what the interpreter gives. ctest runs 2000 in four parts that can run at once;
// EINC_RANDOM_PROGRAMS=FIRST:COUNT runs other seeds.
#include "tests/support/agree.h"

using namespace einc;

TEST_CASE("random programs agree") { check_random_programs(1, 500, disagreement); }
