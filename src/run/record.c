#include "run/record.h"

/* ---- recording -------------------------------------------------------------------------- */

static void add_event(const sw_record *r, sw_record_events *events, sw_track track, sw_id op,
                      double begin_s, double end_s)
{
	sw_id common = r->origin ? r->origin[op] : op;
	sw_record_event event = {(int32_t)track, common, begin_s - r->begin_s, end_s - r->begin_s};
	if (common != SW_NO_ID)
		sw_vec_push(events, event);
}

static void end_wait(sw_record *r, sw_id op, double begin_s)
{
	double end_s = sw_now_s();
	r->waited_s += end_s - begin_s;
	if (r->detailed)
		add_event(r, &r->own, SW_TRACK_WAITS, op, begin_s, end_s);
}

static sw_status collective(void *context, const sw_program *program, sw_id op, const sw_tensor *in,
                            sw_tensor *out, sw_error *err)
{
	sw_record *r = context;
	double begin = sw_now_s();
	sw_status status = sw_transport_collective(r->transport, program, op, in, out, err);
	end_wait(r, op, begin);
	return status;
}

/* The interpreter's ticket is an index into the list of collectives that this step has begun, which
 * holds the op and the transport's ticket. */
static sw_status begin(void *context, const sw_program *program, sw_id op, const sw_tensor *in,
                       sw_tensor *out, uint64_t *ticket, sw_error *err)
{
	sw_record *r = context;
	struct sw_record_begun begun = {.op = op};
	sw_status status =
		sw_transport_begin(r->transport, program, op, in, out, &begun.ticket, err);
	*ticket = r->begun.len;
	if (status == SW_OK)
		sw_vec_push(&r->begun, begun);
	return status;
}

static sw_status finish(void *context, uint64_t ticket, sw_error *err)
{
	sw_record *r = context;
	struct sw_record_begun begun = r->begun.data[ticket];
	double begin_s = sw_now_s();
	sw_status status = sw_transport_finish(r->transport, begun.ticket, err);
	end_wait(r, begun.op, begin_s);
	return status;
}

static void drain(void *context)
{
	sw_transport_drain(((sw_record *)context)->transport);
}

/* Communication ops are timed around the call to the transport, without the walker's work around
 * it. */
static bool is_kernel(const sw_op *op)
{
	switch ((sw_opcode)op->opcode) {
	case SW_OP_ASYNC_START:
	case SW_OP_ASYNC_UPDATE:
	case SW_OP_ASYNC_DONE:
		return false;
	default:
		return sw_opcode_class((sw_opcode)op->opcode) != SW_CLASS_COLLECTIVE;
	}
}

static void timing(void *context, sw_id op, double begin_s, double end_s)
{
	sw_record *r = context;
	if (is_kernel(sw_op_at(r->program, op)))
		add_event(r, &r->own, SW_TRACK_KERNELS, op, begin_s, end_s);
}

static void watch(void *context, const sw_program *program, sw_id op, double begin_s, double end_s)
{
	(void)program;
	sw_record *r = context;
	add_event(r, &r->performed, SW_TRACK_COLLECTIVES, op, begin_s, end_s);
}

void sw_record_init(sw_record *record, sw_transport *transport, const sw_program *program,
                    const sw_program *common, const sw_id *origin, bool detailed)
{
	*record = (sw_record){.transport = transport,
	                      .program = program,
	                      .common = common,
	                      .origin = origin,
	                      .detailed = detailed};
	if (detailed)
		sw_transport_watch(transport, watch, record);
}

void sw_record_clear(sw_record *record)
{
	if (record->transport)
		sw_transport_watch(record->transport, NULL, NULL);
	sw_vec_clear(&record->begun);
	sw_vec_clear(&record->own);
	sw_vec_clear(&record->performed);
}

static sw_record_cores read_cores(const sw_record *r)
{
	return (sw_record_cores){sw_thread_times_of(sw_thread_number()),
	                         sw_transport_thread_times(r->transport)};
}

static sw_thread_times times_between(sw_thread_times before, sw_thread_times after)
{
	return (sw_thread_times){after.cpu_s - before.cpu_s, after.delayed_s - before.delayed_s};
}

sw_record_cores sw_record_used(const sw_record *record)
{
	sw_record_cores now = read_cores(record);
	return (sw_record_cores){times_between(record->before.own, now.own),
	                         times_between(record->before.transport, now.transport)};
}

sw_status sw_record_step(sw_record *record, sw_error *err)
{
	sw_status status =
		record->detailed ? record->transport->ops->barrier(record->transport, err) : SW_OK;
	record->begun.len = record->own.len = record->performed.len = 0;
	record->waited_s = 0;
	record->before = read_cores(record);
	record->begin_s = sw_now_s();
	return status;
}

void sw_record_options(sw_record *record, sw_interpret_options *options)
{
	options->collective = collective;
	options->begin = begin;
	options->finish = finish;
	options->drain = drain;
	options->collective_context = record;
	options->timing = record->detailed ? timing : NULL;
	options->timing_context = record;
}

/* ---- gathering -------------------------------------------------------------------------- */

static int64_t operand_bytes(const sw_program *program, const sw_op *op)
{
	int64_t bytes = 0;
	for (uint32_t i = 0; i < op->n_operands; i++)
		bytes += sw_shape_bytes(sw_value_shape(program, op->operands[i]));
	return bytes;
}

static void add_events(const sw_record *r, int32_t rank, const sw_record_event *events, int64_t n,
                       sw_trace *trace)
{
	for (int64_t i = 0; i < n; i++) {
		const sw_op *op = sw_op_at(r->common, events[i].op);
		sw_trace_add(trace,
		             &(sw_trace_event){
				     .rank = rank,
				     .track = (sw_track)events[i].track,
				     .name = op->name,
				     .category = sw_op_opcode_name(op),
				     .bytes = is_kernel(op) ? -1 : operand_bytes(r->common, op),
				     .begin_s = events[i].begin_s,
				     .end_s = events[i].end_s,
			     });
	}
}

/* Receive from one rank after the other, so that only one list exists besides the trace. */
static sw_status receive_all(const sw_record *r, const int64_t *counts, sw_trace *trace,
                             sw_error *err)
{
	sw_transport *t = r->transport;
	sw_record_events theirs = {0};
	sw_status status = SW_OK;
	for (int32_t rank = 1; rank < t->size && status == SW_OK; rank++) {
		sw_vec_reserve(&theirs, (size_t)counts[rank] + 1);
		status = t->ops->permute(t, -1, rank, NULL, theirs.data,
		                         counts[rank] * (int64_t)sizeof(*theirs.data), err);
		if (status == SW_OK)
			add_events(r, rank, theirs.data, counts[rank], trace);
	}
	sw_vec_clear(&theirs);
	return status;
}

/* Pass zeros' buffer as well: a permute without a source fills its output with zeros. */
static sw_status send_own(const sw_record *r, int64_t count, sw_error *err)
{
	sw_record_events all = {0}, zeros = {0};
	sw_vec_reserve(&all, (size_t)count + 1);
	sw_vec_reserve(&zeros, (size_t)count + 1);
	for (size_t i = 0; i < r->own.len; i++)
		sw_vec_push(&all, r->own.data[i]);
	for (size_t i = 0; i < r->performed.len; i++)
		sw_vec_push(&all, r->performed.data[i]);
	sw_status status = r->transport->ops->permute(r->transport, 0, -1, all.data, zeros.data,
	                                              count * (int64_t)sizeof(*all.data), err);
	sw_vec_clear(&all);
	sw_vec_clear(&zeros);
	return status;
}

sw_status sw_record_gather(const sw_record *record, sw_trace *trace, sw_error *err)
{
	sw_transport *t = record->transport;
	int64_t mine = (int64_t)(record->own.len + record->performed.len);
	int64_t *counts = sw_alloc((size_t)t->size * sizeof(*counts));
	sw_status status =
		t->ops->all_gather(t, t->everyone, t->size, &mine, counts, sizeof(mine), err);
	if (status == SW_OK && t->rank == 0) {
		add_events(record, 0, record->own.data, (int64_t)record->own.len, trace);
		add_events(record, 0, record->performed.data, (int64_t)record->performed.len,
		           trace);
		status = receive_all(record, counts, trace, err);
	} else if (status == SW_OK) {
		status = send_own(record, mine, err);
	}
	free(counts);
	return status;
}
