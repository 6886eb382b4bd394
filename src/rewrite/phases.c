/* Report a program's phases: parts, sums, stored values, and the op that refuses. */
#include "rewrite/phasing.h"

static sw_part part_of(const sw_phasing *p, sw_id id)
{
	if (p->timing.touched[id] || p->timing.sunk[id])
		return SW_PART_BODY;
	if (p->phase[id] >= p->n)
		return SW_PART_APPLY;
	return p->phase[id] == 0 ? SW_PART_HOISTED : SW_PART_BETWEEN;
}

static void count_leaving(const sw_phasing *p, sw_id value, sw_phase *phase)
{
	sw_shape shape = sw_value_shape(p->timing.program, value);
	sw_monoid monoid = p->timing.value[value].monoid;
	shape.type = sw_sum_type(shape.type, monoid);
	phase->n_leaving++;
	phase->n_sums += monoid != SW_MONOID_NONE;
	*(monoid == SW_MONOID_NONE ? &phase->stored_bytes : &phase->sum_bytes) +=
		sw_shape_bytes(shape);
}

/* Count an op. A sunk op counts with the phase before which it would otherwise stand. */
static void count_op(sw_phases *phases, sw_phase *bodies, const sw_phasing *p, sw_id id)
{
	const sw_program *program = p->timing.program;
	const sw_op *op = sw_op_at(program, id);
	sw_part part = part_of(p, id);
	double flops = sw_op_flops(program, id);
	phases->flops += flops;
	((uint8_t *)(uintptr_t)phases->part)[id] = (uint8_t)part;
	if (op->opcode == SW_OP_PARAMETER || op->opcode == SW_OP_CONSTANT)
		return;
	if (part != SW_PART_BODY) {
		int32_t *count[] = {[SW_PART_HOISTED] = &phases->hoisted,
		                    [SW_PART_BETWEEN] = &phases->between,
		                    [SW_PART_APPLY] = &phases->apply};
		++*count[part];
		return;
	}
	sw_phase *phase = &bodies[SW_MIN(p->phase[id], p->n - 1)];
	phase->ops++;
	phase->flops += flops;
	for (uint32_t k = 0; k < op->n_results; k++)
		if (p->leaves[op->first_result + k])
			count_leaving(p, op->first_result + k, phase);
}

/* List the values that leave the loop, in the program's order: sums, or stored values. */
static int32_t list_leaving(const sw_phasing *p, int32_t phase, bool sums, sw_leaving *list)
{
	const sw_program *program = p->timing.program;
	const sw_computation *entry = sw_entry(program);
	int32_t n = 0;
	for (size_t i = 0; i < entry->ops.len; i++) {
		const sw_op *op = sw_op_at(program, entry->ops.data[i]);
		for (uint32_t k = 0; k < op->n_results; k++) {
			sw_id value = op->first_result + k;
			sw_monoid monoid = p->timing.value[value].monoid;
			if (p->leaves[value] && p->phase[entry->ops.data[i]] == phase &&
			    (monoid != SW_MONOID_NONE) == sums)
				list[n++] = (sw_leaving){value, p->reader[value], monoid};
		}
	}
	return n;
}

static void list_split(sw_phases *phases, const sw_timing *timing)
{
	size_t n = timing->program->ops.len;
	int8_t *split = SW_NEW_N(&phases->arena, int8_t, n + 1);
	for (sw_id id = 0; id < n; id++) {
		bool runs = timing->touched[id] || timing->sunk[id];
		bool splits = runs && timing->choice[id].kind == SW_CHOICE_SPLIT;
		split[id] = splits ? (int8_t)timing->choice[id].index : -1;
	}
	phases->split = split;
	phases->touched = sw_arena_copy(&phases->arena, timing->touched, n * sizeof(bool));
}

static void describe(sw_phases *phases, const sw_phasing *p, int32_t microbatches)
{
	const sw_computation *entry = sw_entry(p->timing.program);
	sw_phase *bodies = SW_NEW_N(&phases->arena, sw_phase, p->n + 1);
	phases->microbatches = microbatches;
	phases->n = p->n;
	phases->phases = bodies;
	phases->part = SW_NEW_N(&phases->arena, uint8_t, p->timing.program->ops.len + 1);
	for (size_t i = 0; i < entry->ops.len; i++)
		count_op(phases, bodies, p, entry->ops.data[i]);
	list_split(phases, &p->timing);
	for (int32_t k = 0; k < p->n; k++) {
		sw_leaving *list = SW_NEW_N(&phases->arena, sw_leaving, bodies[k].n_leaving + 1);
		int32_t sums = list_leaving(p, k, true, list);
		list_leaving(p, k, false, list + sums);
		bodies[k].leaving = list;
	}
}

static void describe_refusal(sw_phases *phases, const sw_phasing *p, int32_t microbatches)
{
	const sw_op *op = sw_op_at(p->timing.program, p->timing.refuses);
	phases->refused = microbatches;
	phases->refuses = sw_arena_text(&phases->arena, op->name);
	phases->opcode = sw_arena_text(&phases->arena, sw_op_opcode_name(op));
	phases->why = sw_arena_text(&phases->arena, p->timing.why);
	phases->path = sw_arena_text(&phases->arena, sw_phasing_path(p));
}

/* Most microbatches that are looked for, whatever the batch: each is an iteration, of which one this
 * short takes longer to begin than to compute. */
#define MAX_MICROBATCHES (1 << 20)

/* A phase needs a body: p.n is 0 where no op reads the inputs that have the batch. */
static void find_possible(sw_phases *phases, const sw_program *program, const sw_sidecar *sidecar,
                          size_t most)
{
	sw_phasing p;
	*phases = (sw_phases){0};
	sw_arena_init(&phases->arena);
	sw_phasing_init(&p, program, sidecar);
	phases->batch = p.batch;
	SW_VEC(int64_t) possible = {0};
	for (int64_t m = 2; m <= SW_MIN(p.batch, MAX_MICROBATCHES) && possible.len < most; m++) {
		if (p.batch % m != 0)
			continue;
		bool fits = sw_phasing_find(&p, (int32_t)m) && p.n > 0;
		if (fits && possible.len == 0)
			describe(phases, &p, (int32_t)m);
		if (fits)
			sw_vec_push(&possible, m);
		else if (!phases->refused && p.timing.refuses != SW_NO_ID)
			describe_refusal(phases, &p, (int32_t)m);
	}
	phases->possible.n = (int32_t)possible.len;
	phases->possible.v =
		sw_arena_copy(&phases->arena, possible.data, sizeof(int64_t) * possible.len);
	sw_vec_clear(&possible);
	sw_phasing_clear(&p);
}

void sw_phases_init(sw_phases *phases, const sw_program *program, const sw_sidecar *sidecar)
{
	find_possible(phases, program, sidecar, SIZE_MAX);
}

void sw_phases_init_least(sw_phases *phases, const sw_program *program, const sw_sidecar *sidecar)
{
	find_possible(phases, program, sidecar, 1);
}

void sw_phases_clear(sw_phases *phases)
{
	sw_arena_clear(&phases->arena);
}
