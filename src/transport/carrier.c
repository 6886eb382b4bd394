/* The working space of a carrier, and what its calls and its failures are called. */
#include "transport/carrier.h"

#include <string.h>

void sw_carrier_init(sw_carrier *carrier, const sw_transport_ops *ops, int32_t rank, int32_t size)
{
	carrier->base = (sw_transport){.ops = ops, .rank = rank, .size = size};
	carrier->sends = sw_alloc((size_t)size * sizeof(*carrier->sends));
	carrier->receives = sw_alloc((size_t)size * sizeof(*carrier->receives));
	carrier->inputs = sw_alloc((size_t)size * sizeof(*carrier->inputs));
}

void sw_carrier_clear(sw_carrier *carrier)
{
	free(carrier->sends);
	free(carrier->receives);
	free(carrier->inputs);
	free(carrier->scratch);
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

uint64_t sw_call_code(const sw_call *call)
{
	uint64_t code = sw_hash_bytes(call->what, strlen(call->what), 0);
	code = sw_hash_u64(code, (uint64_t)call->monoid);
	code = sw_hash_u64(code, call->monoid ? (uint64_t)call->type : 0);
	code = sw_hash_u64(code, (uint64_t)call->amount);
	return sw_hash_u64(code, (uint64_t)call->ranks);
}

const char *sw_call_print(const sw_call *call, char *text)
{
	if (call->monoid)
		snprintf(text, SW_CALL_TEXT, "%s (%s of %lld %s among %d ranks)", call->what,
		         sw_monoid_name(call->monoid), (long long)call->amount, sw_type_name(call->type),
		         call->ranks);
	else
		snprintf(text, SW_CALL_TEXT, "%s (%lld bytes among %d ranks)", call->what,
		         (long long)call->amount, call->ranks);
	return text;
}

void sw_carrier_reason(int32_t rank, const sw_error *why, char *text, size_t size)
{
	if (why && why->file[0] && why->line)
		snprintf(text, size, "rank %d: %s:%d: %s", rank, why->file, why->line, why->message);
	else if (why && why->file[0])
		snprintf(text, size, "rank %d: %s: %s", rank, why->file, why->message);
	else
		snprintf(text, size, "rank %d: %s", rank,
		         why && why->message[0] ? why->message : "gave up");
}
