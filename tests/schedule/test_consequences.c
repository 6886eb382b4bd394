/*
 * The overlaps that AxoNN arranges on purpose (section IV) are consequences here: in planned
 * programs, collectives run beside the kernels that its authors put there.
 */
#include "schedule/scheduled.h"

#include "interpret/interpret.h"

typedef struct tally {
	int of, hidden;
} tally;

static bool is_dot(const entry *e, sw_id op)
{
	return sw_op_at(e->program, op)->opcode == SW_OP_DOT;
}

/* Look at a reduction of activations or of their gradients: made by a dot, and needed by further
 * dots. It is hidden if a weight's gradient, a dot that no other dot needs, is between start and
 * done. */
static void look_at_activation_reduction(const scheduled *s, const entry *e, sw_id start, tally *t)
{
	const sw_computation *c = sw_entry(e->program);
	sw_id done = done_of(e, start);
	bool hidden = false;
	(void)s;
	if (!is_dot(e, maker_of(e, start)) || !leads_to(e, done, SW_OP_DOT))
		return;
	for (int32_t i = e->place[start] + 1; i < e->place[done]; i++)
		hidden = hidden ||
		         (is_dot(e, c->ops.data[i]) && !leads_to(e, c->ops.data[i], SW_OP_DOT));
	t->of++;
	t->hidden += hidden;
}

static bool has_time(const scheduled *s, const entry *e, sw_id start)
{
	return kernels_between_s(s, e, start, done_of(e, start)) >=
	       sw_cost_collective_op_seconds(&s->cluster, e->program, start);
}

/* Look at a reduction of a weight's gradient: no dot needs it any more. It is hidden if the kernels
 * between take longer. */
static void look_at_gradient_reduction(const scheduled *s, const entry *e, sw_id start, tally *t)
{
	if (!is_dot(e, maker_of(e, start)) || leads_to(e, done_of(e, start), SW_OP_DOT))
		return;
	t->of++;
	t->hidden += has_time(s, e, start);
}

/* Look at a gather of a parameter that a dot reads. It is hidden if the kernels between take
 * longer. */
static void look_at_gather(const scheduled *s, const entry *e, sw_id start, tally *t)
{
	bool at_rest = sw_op_at(e->program, maker_of(e, start))->opcode == SW_OP_PARAMETER;
	if (!at_rest || !leads_to(e, done_of(e, start), SW_OP_DOT))
		return;
	t->of++;
	t->hidden += has_time(s, e, start);
}

typedef void look_fn(const scheduled *s, const entry *e, sw_id start, tally *t);

static tally look_at_all(const scheduled *s, look_fn *look, bool reductions)
{
	entry e;
	tally t = {0};
	entry_init(&e, s->scheduled);
	const sw_computation *c = sw_entry(s->scheduled);
	for (size_t i = 0; i < c->ops.len; i++) {
		sw_opcode begun = begun_by(&e, c->ops.data[i]);
		if (reductions ? begun == SW_OP_ALL_REDUCE || begun == SW_OP_REDUCE_SCATTER
		               : begun == SW_OP_ALL_GATHER)
			look(s, &e, c->ops.data[i], &t);
	}
	entry_clear(&e);
	return t;
}

/* Check that at least `min_n` collectives are of the kind and that a `share` of them is hidden;
 * without overlap none of them is in two halves. */
static void check_hidden(const char *strategy, look_fn *look, bool reductions, int min_n,
                         double share)
{
	scheduled s;
	assert_true(open_op_by_op("gpt", "local-2x4", strategy, NULL, 0, &s));
	schedule(&s, "all", 0);
	tally t = look_at_all(&s, look, reductions);
	if (t.of < min_n || t.hidden < share * t.of)
		fail_msg("%s: %d of %d are hidden", strategy, t.hidden, t.of);
	schedule(&s, "none", 0);
	t = look_at_all(&s, look, reductions);
	assert_int_equal(t.of, 0);
	close_scheduled(&s);
}

static void reductions_of_activation_gradients_hide_behind_weight_gradients(void **state)
{
	(void)state;
	check_hidden("megatron:tp=4", look_at_activation_reduction, true, 7,
	             1. / 4); /* half of them belong to the forward pass */
}

static void reductions_of_weight_gradients_hide_behind_the_backward_pass(void **state)
{
	(void)state;
	check_hidden("dp", look_at_gradient_reduction, true, 8, 0.8);
	check_hidden("zero3", look_at_gradient_reduction, true, 7, 0.8);
}

static void gathers_of_weights_are_ahead_of_their_dots(void **state)
{
	(void)state;
	check_hidden("zero3", look_at_gather, false, 8, 0.8);
}

/* Return the share of the waiting without overlap that the schedule leaves. */
static double part_left(const scheduled *s)
{
	sw_program_cost cost;
	sw_cost_program(&s->cluster, s->local, &cost);
	double before = sw_schedule_seconds(&s->cluster, s->local) - cost.compute_s;
	assert_true(before > 0);
	return (sw_schedule_seconds(&s->cluster, s->scheduled) - cost.compute_s) / before;
}

/* Almost no waiting is left where kernels take longer than collectives. */
static void little_waiting_is_left(void **state)
{
	static const struct {
		const char *name, *cluster, *strategy;
		double share;
		bool fused;
	} cases[] = {
		{"gpt", "local-2x4", "dp", 0.01, false},
		{"gpt", "local-2x4", "zero3", 0.01, false},
		{"gpt-scan", "local-2x4", "dp", 0.01, false},
		{"gpt-scan", "local-2x4", "zero3", 0.01, false},
		{"gpt", "lab-4x1", "dp", 0.01, false},
		{"gpt", "lab-4x1", "zero1", 0.1, false},
		{"gpt", "lab-4x1", "zero3", 0.1, false},
		{"gpt", "lab-2x4", "dp", 0.01, false},
		{"lstm-lm-tiny", "lab-4x1", "dp", 0.05, false},
		{"moe-mixtral-tiny", "lab-4x1", "zero1", 0.01, false},
		{"unet-tiny", "lab-unequal", "zero1", 0.01, false},
		/* tokens go to their experts' rows and back, one after the other */
		{"moe-mixtral-tiny", "a100-8x8", "dp", 0.14, true},
	};
	(void)state;
	for (size_t i = 0; i < SW_COUNT(cases); i++) {
		scheduled s;
		sw_program_cost cost;
		assert_true(cases[i].fused ? open_fixture(cases[i].name, cases[i].cluster,
		                                          cases[i].strategy, &s)
		                           : open_op_by_op(cases[i].name, cases[i].cluster,
		                                           cases[i].strategy, NULL, 0, &s));
		schedule(&s, "all", 0);
		sw_cost_program(&s.cluster, s.local, &cost);
		assert_true(cost.compute_s > cost.communication_s);
		double left = part_left(&s);
		if (left > cases[i].share)
			fail_msg("%s, %s, %s: %.0f %% is left", cases[i].name, cases[i].cluster,
			         cases[i].strategy, 100 * left);
		close_scheduled(&s);
	}
}

/* Gathers of weights and reduce-scatters of each iteration hide even where the program has little
 * spare memory: the kernels that make a collective's operand or read its result are small, and may
 * move where no other kernel may. */
static void little_spare_memory_is_enough(void **state)
{
	static const struct {
		const char *name, *strategy, *remat;
		int32_t microbatches;
		int64_t part; /* memory beyond the need: a fraction 1 / part of it */
		double share;
	} cases[] = {
		{"gpt", "zero3", "blocks", 4, 20, 0.4},
		{"llama-gqa-tiny", "zero1", "blocks", 1, 100, 0.4},
		{"moe-gshard-tiny", "axonn:2,1,4,1", "blocks", 1, 25, 0.4},
		{"t5-tiny", "megatron:tp=2", "none", 1, 50, 0.3},
	};
	(void)state;
	for (size_t i = 0; i < SW_COUNT(cases); i++) {
		scheduled s;
		assert_true(open_op_by_op(cases[i].name, "local-2x4", cases[i].strategy,
		                           cases[i].remat, cases[i].microbatches, &s));
		int64_t needed = sw_placement_bytes(s.local),
			limit = needed + needed / cases[i].part;
		schedule(&s, "all", limit);
		assert_true(sw_placement_bytes(s.scheduled) <= limit);
		double left = part_left(&s);
		if (left > cases[i].share)
			fail_msg("%s, %s: %.0f %% is left", cases[i].name, cases[i].strategy,
			         100 * left);
		close_scheduled(&s);
	}
}

/* Halve the speed of the links after the program was scheduled. */
static void halve_link_speeds(sw_cluster *cluster)
{
	for (int32_t l = 0; l < cluster->n_levels; l++) {
		cluster->levels[l].latency_s *= 2;
		cluster->levels[l].bandwidth /= 2;
		cluster->levels[l].flow_bandwidth /= 2;
	}
}

/* Collectives that take longer than predicted still hide, because few begin and none at the last
 * moment. */
static void little_waiting_is_left_if_collectives_are_late(void **state)
{
	static const struct {
		const char *name, *strategy;
		double share;
	} cases[] = {{"moe-mixtral-tiny", "dp", 0.3}, {"moe-mixtral-tiny", "zero1", 0.22}};
	(void)state;
	for (size_t i = 0; i < SW_COUNT(cases); i++) {
		scheduled s;
		assert_true(open_op_by_op(cases[i].name, "lab-4x1", cases[i].strategy, NULL, 0, &s));
		schedule(&s, "all", 0);
		halve_link_speeds(&s.cluster);
		double left = part_left(&s);
		if (left > cases[i].share)
			fail_msg("%s, %s: %.0f %% is left", cases[i].name, cases[i].strategy,
			         100 * left);
		close_scheduled(&s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reductions_of_activation_gradients_hide_behind_weight_gradients),
		cmocka_unit_test(reductions_of_weight_gradients_hide_behind_the_backward_pass),
		cmocka_unit_test(gathers_of_weights_are_ahead_of_their_dots),
		cmocka_unit_test(little_waiting_is_left),
		cmocka_unit_test(little_spare_memory_is_enough),
		cmocka_unit_test(little_waiting_is_left_if_collectives_are_late),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
