/* plan_files: files of plans, for the tests of this folder. */
#ifndef SW_TESTS_PLAN_PLAN_FILES_H
#define SW_TESTS_PLAN_PLAN_FILES_H

#include "planned/planned.h"
#include "search/search.h"

/* Return a path in the build folder, unique to this process, by number. */
const char *scratch(int number);
/* Remove these files: the teardown of a group of tests. */
int remove_scratch(void **state);
void assert_same_decisions(const sw_plan *a, const sw_plan *b);

#endif
