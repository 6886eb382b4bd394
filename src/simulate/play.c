/*
 * Play the devices of a cluster, event by event.
 *
 * A device has a clock of its own, and runs ahead on it until it must wait: until then it affects
 * no other device. Its collective stream takes its starts in their order. Since all devices run one
 * program, the k-th start is the same op everywhere: a WAVE, in which each group has a MEETING that
 * begins when the streams of all its members have arrived. Meetings under way share links
 * (link_sharing.c). The next event is the earliest begin or end of a meeting; an end lets its
 * members go on. So no device acts in the past of another.
 *
 * Of a loop the first iterations are played. Then every device skips to the end at the pace of the
 * latter half of them. This is exact where iterations have reached a steady state (at once where
 * one device stands for all: collectives that were under way when the loop began end within one
 * iteration). All devices skip the same iterations, so that waves stay the same everywhere.
 *
 * The host launches kernels and collectives in their order, each a launch_interval after the one
 * before, without waiting for the device, a collective collective_launches more for each of its
 * members; nothing begins before it is launched. A kernel that stands for several is launched while
 * it runs.
 *
 * Where a collective under way takes a share of its devices, a kernel that may run beside one is an
 * event too: it runs slower as long as a collective is under way.
 *
 * O(played ops * devices + events * meetings under way).
 */
#include "simulate/simulator.h"

#include <math.h>
#include <stdlib.h>

/* ---- trace ------------------------------------------------------------------------------ */

/* Trace an event of a device, once for each rank that it stands for. */
static void record(simulator *p, int32_t number, sw_track track, sw_id op, int64_t bytes,
                   double begin, double end)
{
	bool all = p->n_devices < p->code->cluster->n_devices;
	int32_t first = all ? 0 : number,
		last = all ? p->trace_ranks : SW_MIN(number + 1, p->trace_ranks);
	const sw_op *of = sw_op_at(p->code->program, op);
	for (int32_t rank = first; p->trace && end > begin && rank < last; rank++)
		sw_trace_add(p->trace, &(sw_trace_event){rank, track, of->name,
		                                         sw_op_opcode_name(of), bytes, begin, end});
}

/* ---- a device --------------------------------------------------------------------------- */

static void enter(device *d, const code_block *what, const instruction *loop)
{
	sw_vec_push(&d->frames, ((call_frame){.block = what, .loop = loop, .middle = d->sum}));
}

static double extrapolate(double now, double then, double times)
{
	return now + times * (now - then);
}

/* Skip the iterations that are not played. */
static void skip_iterations(simulator *p, int32_t number, const call_frame *f)
{
	device_account *sum = &p->devices[number].sum;
	const device_account *middle = &f->middle;
	const instruction *loop = f->loop;
	double begin = sum->now;
	double times = (double)(loop->iterations - loop->played) /
	               (double)(loop->played - loop->played / 2);
	*sum = (device_account){extrapolate(sum->now, middle->now, times),
	                        extrapolate(sum->compute_s, middle->compute_s, times),
	                        extrapolate(sum->exposed_s, middle->exposed_s, times),
	                        extrapolate(sum->busy_s, middle->busy_s, times),
	                        extrapolate(sum->host, middle->host, times)};
	record(p, number, SW_TRACK_KERNELS, loop->op, -1, begin, sum->now);
}

/* Leave the topmost frame, whose block is done, or begin the next iteration. */
static void leave(simulator *p, int32_t number)
{
	device *d = &p->devices[number];
	call_frame *f = &d->frames.data[d->frames.len - 1];
	f->at = 0;
	f->iteration++;
	if (f->loop && f->iteration == f->loop->played / 2)
		f->middle = d->sum;
	if (f->loop && f->iteration < f->loop->played)
		return;
	if (f->loop && f->iteration < f->loop->iterations)
		skip_iterations(p, number, f);
	d->frames.len--;
}

/* Make the device wait until wave `last` has ended. Returns false if it has. */
static bool await(device *d, int64_t last, sw_id op)
{
	d->awaited = last < d->stream.ended ? -1 : last;
	d->waiting_at = op;
	return d->awaited >= 0;
}

/* Return when what is launched next may begin, of `launches` launches over `seconds`. */
static double launch(device *d, double launches, double seconds)
{
	double each_s = d->code->who->cluster.device.launch_interval_s;
	d->sum.host += each_s * launches;
	return fmax(d->sum.now, d->sum.host - seconds * (1 - 1 / fmax(launches, 1)));
}

static void compute(simulator *p, int32_t number, const instruction *kernel, double seconds)
{
	device_account *sum = &p->devices[number].sum;
	record(p, number, SW_TRACK_KERNELS, kernel->op, -1, sum->now, sum->now + seconds);
	sum->now += seconds;
	sum->compute_s += seconds;
}

static double share_of(const device *d)
{
	return d->code->who->cluster.device.transfer_share;
}

/* Run a kernel ahead. Returns false if a collective may take a share of the device; the kernel's
 * seconds are then found as it runs. */
static bool compute_ahead(simulator *p, int32_t number, const instruction *kernel)
{
	device *d = &p->devices[number];
	d->sum.now = launch(d, kernel->launches, kernel->seconds);
	if (share_of(d) > 0 && (d->stream.meeting || d->stream.taken < d->stream.given.len)) {
		d->kernel = kernel;
		d->remaining_s = kernel->seconds;
		return false;
	}
	compute(p, number, kernel, kernel->seconds);
	return true;
}

/* Run one instruction. Returns false if the device must wait. */
static bool step(simulator *p, int32_t number, const instruction *i)
{
	device *d = &p->devices[number];
	switch (i->kind) {
	case KERNEL:
		return (i->who && !sw_owner_is(i->who, number)) || compute_ahead(p, number, i);
	case START:
		start_collective(p, number, i->collective, launch(d, i->launches, 0));
		break;
	case DONE:
		return !await(d, d->wave_of[i->collective], i->op);
	case CALL:
		enter(d, i->block, NULL);
		break;
	case LOOP:
		if (i->iterations > 0)
			enter(d, i->block, i);
		break;
	}
	return true;
}

/* Run a device until it waits, or its program has ended; then it waits for all that it has
 * started. */
static void run(simulator *p, int32_t number)
{
	device *d = &p->devices[number];
	while (d->frames.len > 0) {
		call_frame *f = &d->frames.data[d->frames.len - 1];
		if (f->at == f->block->n)
			leave(p, number);
		else if (!step(p, number, &f->block->at[f->at++]))
			return;
	}
	await(d, d->stream.started - 1, SW_NO_ID);
}

/* Resume a device whose awaited wave has ended. The part of the wait in which its stream was in a
 * meeting is exposed communication. */
static void resume(simulator *p, int32_t number)
{
	device *d = &p->devices[number];
	double begin = d->sum.now, end = fmax(begin, d->stream.free);
	d->awaited = -1;
	for (size_t i = 0; i < d->stream.busy.len; i++) {
		const interval *busy = &d->stream.busy.data[i];
		d->sum.exposed_s += fmax(0, busy->end - fmax(busy->begin, begin));
	}
	d->stream.busy.len = 0;
	if (d->waiting_at != SW_NO_ID)
		record(p, number, SW_TRACK_WAITS, d->waiting_at, -1, begin, end);
	d->sum.now = end;
	run(p, number);
}

/* ---- kernels beside collectives --------------------------------------------------------- */

static double speed_of(const device *d)
{
	return d->stream.running ? 1 - share_of(d) : 1;
}

/* Return when the kernel under way ends at its present speed. */
static double kernel_end(const simulator *p, const device *d)
{
	return d->kernel ? fmax(p->clock, d->sum.now) + d->remaining_s / speed_of(d) : INFINITY;
}

static void advance_kernels(simulator *p, double next)
{
	for (int32_t i = 0; p->shares && i < p->n_devices; i++) {
		device *d = &p->devices[i];
		d->ends = kernel_end(p, d) <= next;
		d->remaining_s -= fmax(0, next - fmax(p->clock, d->sum.now)) * speed_of(d);
	}
}

static void end_kernels(simulator *p)
{
	for (int32_t i = 0; p->shares && i < p->n_devices; i++) {
		device *d = &p->devices[i];
		const instruction *kernel = d->kernel;
		if (!kernel || !d->ends)
			continue;
		d->kernel = NULL;
		compute(p, i, kernel, p->clock - d->sum.now);
		run(p, i);
	}
}

/* ---- events ----------------------------------------------------------------------------- */

static void begin_meetings(simulator *p)
{
	size_t left = 0;
	for (size_t i = 0; i < p->ready.len; i++) {
		const meeting m = p->ready.data[i];
		if (m.begin > p->clock) {
			p->ready.data[left++] = m;
			continue;
		}
		for (int32_t k = 0; k < m.group->size; k++)
			p->devices[m.group->members[k]].stream.running = true;
		sw_vec_push(&p->running, m);
		sw_vec_push(&p->flows, ((link_flow){.group = m.group,
		                                    .wave = m.wave,
		                                    .remaining_s = m.group->seconds}));
	}
	p->ready.len = left;
	share_links(p->flows.data, p->flows.len, p->n_links, p->scratch);
}

static void end_for(simulator *p, int32_t number, const meeting *m)
{
	device *d = &p->devices[number];
	const played_collective *what = &p->code->collectives.data[m->collective];
	record(p, number, SW_TRACK_COLLECTIVES, what->op, what->operand_bytes, m->begin, p->clock);
	sw_vec_push(&d->stream.busy, ((interval){m->begin, p->clock}));
	d->sum.busy_s += p->clock - m->begin;
	d->stream.free = p->clock;
	d->stream.meeting = d->stream.running = false;
	d->stream.ended++;
	arrive_at_meeting(p, number);
	if (d->awaited >= 0 && d->awaited < d->stream.ended)
		resume(p, number);
}

/* Move the meetings whose flows end at `next` from the running ones to `ended`. */
static void take_ended(simulator *p, double next, meeting *ended, size_t *n_ended)
{
	size_t left = 0;
	*n_ended = 0;
	for (size_t i = 0; i < p->flows.len; i++) {
		link_flow f = p->flows.data[i];
		bool ends = p->clock + f.remaining_s / f.rate <= next;
		f.remaining_s = fmax(0, f.remaining_s - (next - p->clock) * f.rate);
		if (ends) {
			ended[(*n_ended)++] = p->running.data[i];
			continue;
		}
		p->flows.data[left] = f;
		p->running.data[left++] = p->running.data[i];
	}
	p->flows.len = p->running.len = left;
}

/* Return the time of the next event; infinite: there is none. */
static double next_event(const simulator *p)
{
	double next = INFINITY;
	for (size_t i = 0; i < p->flows.len; i++)
		next = fmin(next, p->clock + p->flows.data[i].remaining_s / p->flows.data[i].rate);
	for (size_t i = 0; i < p->ready.len; i++)
		next = fmin(next, p->ready.data[i].begin);
	for (int32_t i = 0; p->shares && i < p->n_devices; i++)
		next = fmin(next, kernel_end(p, &p->devices[i]));
	return next;
}

static void advance(simulator *p, double next, meeting *ended)
{
	size_t n_ended;
	take_ended(p, next, ended, &n_ended);
	advance_kernels(p, next);
	p->clock = next;
	for (size_t i = 0; i < n_ended; i++) {
		wave_at(p, ended[i].wave)->open--;
		for (int32_t m = 0; m < ended[i].group->size; m++)
			end_for(p, ended[i].group->members[m], &ended[i]);
	}
	end_kernels(p);
	close_waves(p);
	begin_meetings(p);
}

/* ---- the whole -------------------------------------------------------------------------- */

static void simulator_init(simulator *p, const code *codes, const int32_t *code_of)
{
	size_t n_collectives = p->code->collectives.len;
	sw_arena_init(&p->arena);
	p->n_links = count_links(p->code->cluster);
	p->scratch = SW_NEW_N(&p->arena, double, 2 * p->n_links);
	p->groups = SW_NEW_N(&p->arena, device_groups, n_collectives);
	p->devices = SW_NEW_N(&p->arena, device, p->n_devices);
	for (int32_t d = 0; d < p->n_devices; d++) {
		p->devices[d].wave_of = SW_NEW_N(&p->arena, int64_t, n_collectives);
		p->devices[d].awaited = -1;
		p->devices[d].code = &codes[code_of ? code_of[d] : 0];
		p->shares = p->shares || share_of(&p->devices[d]) > 0;
		enter(&p->devices[d], p->devices[d].code->entry, NULL);
	}
}

static void simulator_clear(simulator *p)
{
	for (int32_t d = 0; d < p->n_devices; d++) {
		sw_vec_clear(&p->devices[d].frames);
		sw_vec_clear(&p->devices[d].stream.given);
		sw_vec_clear(&p->devices[d].stream.busy);
	}
	for (size_t i = p->closed; i < p->waves.len; i++)
		free(p->waves.data[i].meetings);
	sw_vec_clear(&p->waves);
	sw_vec_clear(&p->ready);
	sw_vec_clear(&p->running);
	sw_vec_clear(&p->flows);
	sw_arena_clear(&p->arena);
}

/* Share of a step: smaller times are rounding. */
#define ROUNDING 1e-9

/* Break a step down into parts that add up to it: all that is not computation is waiting. */
static sw_breakdown break_down(const device_account *sum, double step_time_s)
{
	double rounding_s = ROUNDING * step_time_s, waited = fmax(0, step_time_s - sum->compute_s);
	double exposed = fmin(sum->exposed_s, waited), hidden = sum->busy_s - exposed;
	if (waited - exposed <= rounding_s)
		exposed = waited;
	return (sw_breakdown){.compute_s = sum->compute_s,
	                      .exposed_comm_s = exposed,
	                      .idle_s = waited - exposed,
	                      .hidden_comm_s = hidden <= rounding_s ? 0 : hidden};
}

sw_status play(const code *codes, const int32_t *code_of, int32_t n_devices, sw_trace *trace,
               int32_t trace_ranks, sw_breakdown *breakdowns, double *step_time_s, sw_error *err)
{
	simulator p = {.code = codes,
	               .n_devices = n_devices,
	               .trace = trace,
	               .trace_ranks = trace_ranks};
	simulator_init(&p, codes, code_of);
	meeting *ended = sw_alloc((size_t)n_devices * sizeof(*ended));
	for (int32_t d = 0; d < n_devices; d++)
		run(&p, d);
	for (double next; isfinite(next = next_event(&p));)
		advance(&p, next, ended);
	*step_time_s = 0;
	bool stuck = false;
	for (int32_t d = 0; d < n_devices; d++) {
		stuck = stuck || p.devices[d].frames.len > 0;
		*step_time_s = fmax(*step_time_s, p.devices[d].sum.now);
	}
	for (int32_t d = 0; d < n_devices; d++)
		breakdowns[d] = break_down(&p.devices[d].sum, *step_time_s);
	free(ended);
	simulator_clear(&p);
	return stuck ? sw_fail(err, SW_ERR_INTERNAL,
	                       "simulate: a device waits for a collective that has not begun")
	             : SW_OK;
}
