/* What the files of this folder share. */
#ifndef SW_PLAN_INTERNAL_H
#define SW_PLAN_INTERNAL_H

#include "plan/plan.h"

#endif
