/* ragged: ragged-all-to-all, implemented with the transport's functions. */
#ifndef SW_TRANSPORT_RAGGED_H
#define SW_TRANSPORT_RAGGED_H

#include "transport/transport.h"

/* in: the rows to send; the result's initial value; then per member of the group (and piece): the
 * first row to send from the input, the number of rows to send, the first row to write in that
 * member's result, and the number of rows to receive. Rows are along the first dimension. `name` is
 * for errors. */
sw_status sw_ragged_all_to_all(sw_transport *t, const char *name, const int32_t *ranks, int32_t n,
                               const sw_tensor in[6], sw_tensor out, sw_error *err);

#endif
