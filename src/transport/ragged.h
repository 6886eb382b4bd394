/* ragged-all-to-all, on top of the transport's functions. */
#ifndef SW_TRANSPORT_RAGGED_H
#define SW_TRANSPORT_RAGGED_H

#include "transport/transport.h"

/* in: what is sent, what is overwritten, then per member of the group (and piece) where its rows
 * begin in mine, how many I send it, where they go in its result, how many come from it. Rows are
 * along the first dimension. `name` is for errors. */
sw_status sw_ragged_all_to_all(sw_transport *t, const char *name, const int32_t *ranks, int32_t n,
                               const sw_tensor in[6], sw_tensor out, sw_error *err);

#endif
