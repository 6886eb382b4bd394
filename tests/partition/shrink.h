/* shrink: make a failing trial smaller while it fails in the same way. */
#ifndef SW_TESTS_PARTITION_SHRINK_H
#define SW_TESTS_PARTITION_SHRINK_H

#include "partition/trial.h"

/* Drop outputs, turn ops into inputs (with the values they had), run loops once, and take decisions
 * back. The trial is replaced; *o is its outcome. */
void shrink(trial *t, outcome *o);

#endif
