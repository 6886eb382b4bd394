/* What the files of this folder share. */
#ifndef SW_PARTITION_INTERNAL_H
#define SW_PARTITION_INTERNAL_H

#include "partition/partition.h"

/* Writes one move of local value x, whose layout is `before`; returns the value in layout move->after. */
sw_id sw_lower_move(sw_coordinates *coordinates, sw_shape whole, const sw_layout *before, const sw_move *move, sw_id x);

#endif
