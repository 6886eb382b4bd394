/* shrink: a failing trial made smaller, as long as it fails in the same way. */
#ifndef SW_TESTS_PARTITION_SHRINK_H
#define SW_TESTS_PARTITION_SHRINK_H

#include "partition/trial.h"

/* Outputs are dropped, ops become inputs (with the values they had), loops are turned once,
 * decisions are taken back. The trial is replaced; *o is its outcome. */
void shrink(trial *t, outcome *o);

#endif
