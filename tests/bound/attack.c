#include "bound/attack.h"

#include <math.h>
#include <stdlib.h>

#include "bound/draw.h"
#include "fuse/fuse.h"
#include "model/model.h"
#include "partition/partition.h"

/* Sums of thousands of terms in two orders. */
#define ROUNDING 1e-9
#define MAX_PRINTED 12

const double WEIGHTS[N_WEIGHTS] = {0.05, 0.3, 0.6, 0.9};

/* ---- bounds ----------------------------------------------------------------------------- */

/* Add the executions of computation c to its ops: `times` each, and those of the computations that
 * it calls: a condition runs once more than its loop. */
static void count_times(const sw_program *program, int32_t c, double times, double *of_op)
{
	const sw_computation *computation = &program->computations.data[c];
	for (size_t i = 0; i < computation->ops.len; i++) {
		const sw_op *op = sw_op_at(program, computation->ops.data[i]);
		of_op[computation->ops.data[i]] += times;
		bool loop = op->opcode == SW_OP_WHILE;
		double inner = loop ? (double)sw_op_trips(op) : 1;
		bool runs = sw_is_region(op) || op->opcode == SW_OP_CALL;
		for (uint32_t k = 0; runs && k < op->n_called; k++)
			count_times(program, op->called[k],
			            times * (loop && k == 0 ? inner + 1 : inner), of_op);
	}
}

static const double *times_of(const sw_program *program, sw_arena *arena)
{
	double *times = SW_NEW_N(arena, double, program->ops.len + 1);
	count_times(program, program->entry, 1, times);
	return times;
}

void bounds_init(bounds *b, const sw_program *program, const sw_sidecar *sidecar,
                 const sw_rule *const *rules, const sw_cluster *cluster)
{
	sw_roles roles;
	*b = (bounds){.program = program};
	sw_arena_init(&b->arena);
	sw_roles_init(&roles, program, sidecar);
	double *op_s = SW_NEW_N(&b->arena, double, program->ops.len + 1);
	bool *attention = SW_NEW_N(&b->arena, bool, program->ops.len + 1);
	bool *shares_kernel = SW_NEW_N(&b->arena, bool, program->ops.len + 1);
	bool *scores = SW_NEW_N(&b->arena, bool, program->ops.len + 1);
	sw_fuse_mark_softmaxes(program, cluster->device.fusion, attention, shares_kernel, scores);
	for (sw_id id = 0; id < program->ops.len; id++)
		if (roles.planned[sw_op_at(program, id)->computation])
			op_s[id] = sw_bound_op_s(cluster, program, id, rules[id], attention[id],
			                         shares_kernel[id]);
	b->op_s = op_s;
	b->times = times_of(program, &b->arena);
	b->least = sw_bound_least(program, sidecar, cluster, &b->arena);
	b->kernels_s = sw_bound_kernels_s(program, sidecar, rules, cluster, false);
	b->step_s = sw_bound_step_s(program, sidecar, cluster, false, 1);
	for (int32_t i = 0; i < N_WEIGHTS; i++)
		b->weighted_s[i] = sw_bound_weighted_s(program, sidecar, cluster, WEIGHTS[i]);
	sw_roles_clear(&roles);
}

void bounds_clear(bounds *b)
{
	sw_arena_clear(&b->arena);
	*b = (bounds){0};
}

/* ---- comparing -------------------------------------------------------------------------- */

static void describe(const attacker *a, const char *part, char *what, size_t bytes)
{
	snprintf(what, bytes, "seed %llu, %s on %s, %s%s%s", (unsigned long long)a->seed,
	         a->program, a->cluster, a->plan, *part ? ", op " : "", part);
}

/* Compare seconds with a bound; return whether they lie below it. */
static bool compare(attacker *a, nearest *near, const char *part, double seconds, double bound_s)
{
	bound_s *= a->factor;
	if (bound_s <= 0)
		return false;
	double ratio = seconds / bound_s;
	if (near->ratio == 0 || ratio < near->ratio) {
		near->ratio = ratio;
		describe(a, part, near->what, sizeof(near->what));
	}
	if (ratio >= 1 - ROUNDING)
		return false;
	a->violations++;
	return !a->silent && a->violations <= MAX_PRINTED;
}

static void print_violation(const attacker *a, const char *kind, const char *part, double seconds,
                            double bound_s)
{
	char what[320];
	describe(a, part, what, sizeof(what));
	fprintf(stderr, "%s: %s of %.9g s, below the bound of %.9g s\n", what, kind, seconds,
	        bound_s * a->factor);
}

static void print_op(const attacker *a, const sw_plan *plan, sw_id id, const sw_strategy *strategy,
                     double seconds, double bound_s)
{
	sw_text text = {0};
	print_violation(a, "local ops", sw_op_at(plan->program, id)->name, seconds, bound_s);
	sw_rule_print(plan->program, id, plan->rules[id], &text);
	sw_text_add(&text, "\n  strategy: ");
	sw_strategy_print(&plan->cluster->atoms, plan->rules[id], strategy, &text);
	fprintf(stderr, "  %s\n", text.data);
	sw_text_clear(&text);
}

/* Give the seconds of all local ops to the ops of the plan for which they were written. */
static void sum_by_op(const sw_plan *plan, const sw_program *local, const sw_origins *origins,
                      double *seconds)
{
	sw_arena arena;
	sw_arena_init(&arena);
	const double *times = times_of(local, &arena);
	size_t at = 0;
	for (sw_id id = 0; id < local->ops.len; id++) {
		while (at + 1 < origins->items.len && origins->items.data[at + 1].first <= id)
			at++;
		const sw_origin *origin = &origins->items.data[at];
		if (origins->items.len > 0 && origin->first <= id && origin->op != SW_NO_ID &&
		    origin->value == SW_NO_ID && times[id] > 0)
			seconds[origin->op] += times[id] * sw_cost_op(plan->cluster, local, id);
	}
	sw_arena_clear(&arena);
}

/* Where kernels hold several ops, the seconds of one op are not played: they are a price of the
 * planner's. */
static bool plays_ops(const sw_plan *plan)
{
	return plan->cluster->device.fusion == SW_FUSION_NONE;
}

static void compare_ops(attacker *a, const sw_plan *plan, const bounds *own,
                        const sw_program *local, const sw_origins *origins)
{
	double *seconds = calloc(plan->program->ops.len + 1, sizeof(*seconds));
	assert_non_null(seconds);
	sum_by_op(plan, local, origins, seconds);
	for (sw_id id = 0; id < plan->program->ops.len; id++) {
		const char *name = sw_op_at(plan->program, id)->name;
		double bound_s = own->times[id] * own->op_s[id];
		if (compare(a, &a->op, name, seconds[id], bound_s))
			print_op(a, plan, id, &plan->strategies[id], seconds[id], bound_s);
	}
	free(seconds);
}

/* ---- the ends of kernels ---------------------------------------------------------------- */

static bool holds_product(const sw_program *program, const sw_kernel_ops *kernel)
{
	bool holds = false;
	for (uint32_t i = 0; i < kernel->n_ops; i++)
		holds |= sw_is_dot(sw_op_at(program, kernel->ops[i]));
	return holds;
}

/* Return the op of the plan that a local op was written for and is of the same kind as. */
static sw_id written_for(const sw_plan *plan, const sw_program *local, const sw_origins *origins,
                         sw_id id)
{
	const sw_origin *origin = sw_origin_of(origins, id);
	if (!origin || origin->op == SW_NO_ID || origin->value != SW_NO_ID)
		return SW_NO_ID;
	bool same = sw_op_at(local, id)->opcode == sw_op_at(plan->program, origin->op)->opcode;
	return same ? origin->op : SW_NO_ID;
}

static void note_kernel(attacker *a, const sw_plan *plan, sw_id op, const char *is)
{
	char what[320];
	describe(a, sw_op_at(plan->program, op)->name, what, sizeof(what));
	if (!a->silent && a->violations < MAX_PRINTED)
		fprintf(stderr, "%s: its kernel %s\n", what, is);
	a->violations++;
}

/* The op of the plan whose kernel a local op is in, if it is of the kind that `bytes` are of. */
static sw_id counted_in(const sw_plan *plan, const sw_program *local, const sw_origins *origins,
                        const sw_kernels *kernels, const double *bytes, sw_id id)
{
	sw_id op = written_for(plan, local, origins, id);
	bool counted = op != SW_NO_ID && kernels->owner[id] != SW_NO_ID && !isnan(bytes[op]);
	return counted ? op : SW_NO_ID;
}

/* Compare the kernels of the local program with what is said of ends and links: none of them holds a
 * product, none has two ends, and none an end and a link that launches one of its own. */
static void compare_ends(attacker *a, const sw_plan *plan, const bounds *own,
                         const sw_program *local, const sw_origins *origins)
{
	sw_kernels kernels;
	sw_kernels_find(&kernels, local, plan->cluster->device.fusion);
	sw_id *end_of = malloc((kernels.list.len + 1) * sizeof(*end_of));
	assert_non_null(end_of);
	for (size_t i = 0; i < kernels.list.len; i++)
		end_of[i] = SW_NO_ID;
	for (sw_id id = 0; id < local->ops.len; id++) {
		sw_id end = counted_in(plan, local, origins, &kernels, own->least.end_bytes, id);
		if (end == SW_NO_ID)
			continue;
		uint32_t kernel = kernels.owner[id];
		if (holds_product(local, &kernels.list.data[kernel]))
			note_kernel(a, plan, end, "holds a product");
		if (end_of[kernel] != SW_NO_ID && end_of[kernel] != end)
			note_kernel(a, plan, end, "is that of another end");
		end_of[kernel] = end;
	}
	for (sw_id id = 0; id < local->ops.len; id++) {
		sw_id link = counted_in(plan, local, origins, &kernels, own->least.link_bytes, id);
		if (link == SW_NO_ID)
			continue;
		uint32_t kernel = kernels.owner[id];
		if (holds_product(local, &kernels.list.data[kernel]))
			note_kernel(a, plan, link, "holds a product");
		if (end_of[kernel] != SW_NO_ID && own->least.launches[link])
			note_kernel(a, plan, link, "is that of an end");
	}
	free(end_of);
	sw_kernels_clear(&kernels);
}

static void compare_whole(attacker *a, nearest *near, const char *kind, double seconds,
                          double own_s, double asked_s)
{
	double bound_s = SW_MAX(own_s, asked_s);
	if (compare(a, near, "", seconds, bound_s))
		print_violation(a, kind, "", seconds, bound_s);
}

/* Compare kernels and collectives together, where the bound is more than that of the kernels. */
static void compare_weighted(attacker *a, const sw_program_cost *cost, const bounds *own,
                             const bounds *asked)
{
	for (int32_t i = 0; i < N_WEIGHTS; i++) {
		double weight = WEIGHTS[i];
		if (own->weighted_s[i] <= weight * own->kernels_s * (1 + ROUNDING))
			continue;
		compare_whole(a, &a->weighted, "kernels and collectives",
		              weight * cost->compute_s + (1 - weight) * cost->least_communication_s,
		              own->weighted_s[i], asked->weighted_s[i]);
	}
}

outcome attack(attacker *a, const sw_plan *plan, const bounds *own, const bounds *asked,
               bool played)
{
	sw_program *local = NULL, *whole = NULL;
	sw_origins origins = {0};
	sw_program_cost cost;
	sw_error err = {0};
	outcome o = {0};
	if (sw_partition_with_origins(plan, &whole, &origins, &err) != SW_OK) {
		a->refused++;
		sw_origins_clear(&origins);
		return o;
	}
	a->attacks++;
	if (plays_ops(plan))
		compare_ops(a, plan, own, whole, &origins);
	else
		compare_ends(a, plan, own, whole, &origins);
	assert_int_equal(sw_fuse(whole, plan->cluster->device.fusion, &local, &err), SW_OK);
	sw_program_free(whole);
	sw_cost_program(plan->cluster, local, &cost);
	o = (outcome){.ok = true,
	              .kernels_s = cost.compute_s,
	              .sum_s = WEIGHTS[1] * cost.compute_s +
	                       (1 - WEIGHTS[1]) * cost.least_communication_s};
	compare_whole(a, plays_ops(plan) ? &a->kernels : &a->fused, "kernels", o.kernels_s,
	              own->kernels_s, asked->kernels_s);
	compare_weighted(a, &cost, own, asked);
	if (played) {
		o.ok = sw_simulate_plan(plan, &cost, &o.step_s, &err) == SW_OK;
		a->played += o.ok;
		if (o.ok)
			compare_whole(a, &a->step, "a step", o.step_s, own->step_s, asked->step_s);
	}
	sw_origins_clear(&origins);
	sw_program_free(local);
	return o;
}

/* ---- ops alone -------------------------------------------------------------------------- */

/* Look for the cheapest strategy of one op; return its seconds, moves excluded. */
static double attack_op(attacker *a, const sw_analysis *analysis, drawer *d, sw_id id,
                        const bounds *own, int32_t draws)
{
	const sw_plan *plan = d->plan;
	sw_strategy best = sw_strategy_none(&plan->cluster->atoms);
	double least_s = sw_cost_op(plan->cluster, plan->program, id);
	for (int32_t i = 0; i < draws && least_s > 0; i++) {
		sw_program_cost cost;
		sw_strategy s = i % 2 ? draw_atoms(d, id, best) : draw_grid(d, id);
		if (sw_strategy_is_none(&s) || !draw_possible(d, id, &s) ||
		    !sw_price_local(analysis, id, &s, d->layouts, &cost))
			continue;
		a->strategies++;
		if (compare(a, &a->op, sw_op_at(plan->program, id)->name, cost.compute_s,
		            own->op_s[id]))
			print_op(a, plan, id, &s, cost.compute_s, own->op_s[id]);
		if (cost.compute_s < least_s)
			best = s;
		least_s = fmin(least_s, cost.compute_s);
	}
	return least_s;
}

void attack_strategies(attacker *a, const sw_plan *plan, const bounds *own, const bounds *asked,
                       int32_t draws)
{
	sw_sidecar sidecar;
	sw_analysis analysis;
	sw_arena arena;
	if (!plays_ops(plan))
		return;
	sw_arena_init(&arena);
	sw_sidecar_default(plan->program, &sidecar);
	sw_analysis_init(&analysis, plan, &sidecar, (sw_analysis_options){.no_overlap = true});
	drawer d = drawer_new(plan, sw_random_bits(a->seed, 11, 0), &arena);
	double sum = 0;
	for (sw_id id = 0; id < plan->program->ops.len; id++) {
		const sw_op *op = sw_op_at(plan->program, id);
		if (own->times[id] > 0 && !sw_is_region(op) && op->opcode != SW_OP_PARAMETER)
			sum += own->times[id] * attack_op(a, &analysis, &d, id, own, draws);
	}
	compare_whole(a, &a->kernels, "the cheapest kernels", sum, own->kernels_s,
	              asked->kernels_s);
	sw_analysis_clear(&analysis);
	sw_sidecar_clear(&sidecar);
	sw_arena_clear(&arena);
}

/* ---- the account ------------------------------------------------------------------------ */

void attacker_print(const attacker *a)
{
	printf("%lld strategies of single ops, %lld attacks, %lld of them played, "
	       "%lld violations, %lld plans refused\n",
	       (long long)a->strategies, (long long)a->attacks, (long long)a->played,
	       (long long)a->violations, (long long)a->refused);
	printf("  nearest op      %.6f: %s\n", a->op.ratio, a->op.what);
	printf("  nearest kernels %.6f: %s\n", a->kernels.ratio, a->kernels.what);
	printf("  nearest fused   %.6f: %s\n", a->fused.ratio, a->fused.what);
	printf("  nearest sum     %.6f: %s\n", a->weighted.ratio, a->weighted.what);
	printf("  nearest step    %.6f: %s\n", a->step.ratio, a->step.what);
}
