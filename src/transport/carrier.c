/* The workspace of a carrier, and the text of calls and failures. */
#include "transport/carrier.h"

#include <string.h>

void sw_carrier_init(sw_carrier *carrier, const sw_transport_ops *ops, int32_t rank, int32_t size)
{
	carrier->everyone = sw_alloc((size_t)size * sizeof(*carrier->everyone));
	for (int32_t r = 0; r < size; r++)
		carrier->everyone[r] = r;
	carrier->base = (sw_transport){.ops = ops,
	                               .rank = rank,
	                               .size = size,
	                               .everyone = carrier->everyone,
	                               .neighbours = size};
	carrier->inputs = sw_alloc((size_t)size * sizeof(*carrier->inputs));
	carrier->order = sw_alloc((size_t)size * sizeof(*carrier->order));
	carrier->force = SW_ALGORITHM_COUNT;
}

void sw_carrier_clear(sw_carrier *carrier)
{
	for (int32_t l = 0; l < SW_LANES; l++) {
		sw_vec_clear(&carrier->lanes[l].sends);
		sw_vec_clear(&carrier->lanes[l].receives);
	}
	free(carrier->everyone);
	free(carrier->inputs);
	free(carrier->order);
	free(carrier->scratch);
	sw_map_clear(&carrier->choices);
}

sw_lane *sw_carrier_lane(sw_carrier *carrier, int32_t lane)
{
	carrier->lanes[lane].sends.len = carrier->lanes[lane].receives.len = 0;
	return &carrier->lanes[lane];
}

void sw_lane_send(sw_lane *lane, int32_t peer, const void *from, int64_t bytes)
{
	sw_vec_push(&lane->sends, ((sw_message){peer, bytes, {.from = from}}));
}

void sw_lane_receive(sw_lane *lane, int32_t peer, void *into, int64_t bytes)
{
	sw_vec_push(&lane->receives, ((sw_message){peer, bytes, {.into = into}}));
}

sw_status sw_carrier_exchange(sw_carrier *carrier, const sw_carrier_call *call, sw_error *err)
{
	sw_status status = carrier->begin(carrier, call, 0, err);
	return status ? status : carrier->finish(carrier, 0, err);
}

void *sw_carrier_scratch(sw_carrier *carrier, int64_t bytes)
{
	if (!carrier->scratch || carrier->scratch_bytes < bytes) {
		free(carrier->scratch);
		carrier->scratch = sw_try_alloc((size_t)SW_MAX(bytes, 64));
		carrier->scratch_bytes = carrier->scratch ? bytes : 0;
	}
	return carrier->scratch;
}

uint64_t sw_call_code(const sw_carrier_call *call)
{
	uint64_t code = sw_hash_bytes(call->what, strlen(call->what), 0);
	code = sw_hash_u64(code, (uint64_t)call->monoid);
	code = sw_hash_u64(code, call->monoid ? (uint64_t)call->type : 0);
	code = sw_hash_u64(code, (uint64_t)call->amount);
	return sw_hash_u64(code, (uint64_t)call->ranks);
}

const char *sw_call_print(const sw_carrier_call *call, char *text)
{
	if (call->monoid)
		snprintf(text, SW_CALL_TEXT, "%s (%s of %lld %s among %d ranks)", call->what,
		         sw_monoid_name(call->monoid), (long long)call->amount,
		         sw_type_name(call->type), call->ranks);
	else
		snprintf(text, SW_CALL_TEXT, "%s (%lld bytes among %d ranks)", call->what,
		         (long long)call->amount, call->ranks);
	return text;
}

sw_status sw_carrier_broken_status(const sw_error *why)
{
	return why && why->code == SW_NO ? SW_NO : SW_ERR_IO;
}

void sw_carrier_reason(int32_t rank, const sw_error *why, char *text, size_t size)
{
	if (why && why->file[0] && why->line)
		snprintf(text, size, "rank %d: %s:%d: %s", rank, why->file, why->line,
		         why->message);
	else if (why && why->file[0])
		snprintf(text, size, "rank %d: %s: %s", rank, why->file, why->message);
	else
		snprintf(text, size, "rank %d: %s", rank,
		         why && why->message[0] ? why->message : "gave up");
}
