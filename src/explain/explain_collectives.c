/* The collectives of the partitioned program by their cost in a step, those of similar layers
 * summed; and the cost of avoiding the most expensive. */
#include "explain/internal.h"

#include <stdlib.h>
#include <string.h>

/* rows, from the most expensive on, for which the cost of avoiding them is computed */
#define MAX_AVOIDED_ROWS 10

typedef struct collective_row {
	const char *what, *opcode, *why;
	uint32_t atoms;
	size_t origin, last;  /* of the first collective, and of the last so far */
	int64_t count, bytes; /* executions in a step; payload of each */
	double seconds;       /* of all executions */
	int64_t moves;        /* distinct redistributions; each of them would have to be avoided */
} collective_row;

typedef struct collective_table {
	sw_anatomy *a;
	const sw_explained *what;
	sw_map index;
	SW_VEC(collective_row) rows;
} collective_table;

/* Count the executions of each computation in a step as it is costed: loops of unknown trip count
 * run once, each branch runs. Freed by free(). */
static int64_t *count_trips(const sw_program *program)
{
	int64_t *trips = sw_alloc(sizeof(*trips) * (program->computations.len + 1));
	SW_VEC(int32_t) open = {0};
	trips[program->entry] = 1;
	sw_vec_push(&open, program->entry);
	while (open.len > 0) {
		int32_t c = open.data[--open.len];
		const sw_computation *computation = &program->computations.data[c];
		for (size_t i = 0; i < computation->ops.len; i++) {
			const sw_op *op = sw_op_at(program, computation->ops.data[i]);
			int64_t times = op->opcode == SW_OP_WHILE
			                        ? SW_MAX(op->attrs->loop.trip_count, 1)
			                        : 1;
			for (uint32_t k = 0; sw_is_region(op) && k < op->n_called; k++) {
				trips[op->called[k]] = trips[c] * times;
				sw_vec_push(&open, op->called[k]);
			}
		}
	}
	sw_vec_clear(&open);
	return trips;
}

/* Describe what is sent: a value on its way from layout to layout, or what a local op exchanges
 * with its neighbours. */
static void describe(collective_table *l, const sw_origin *o, sw_text *what, sw_text *why)
{
	const sw_plan *plan = l->what->plan;
	if (o->value != SW_NO_ID) {
		sw_anatomy_label(l->a, o->value, what);
		sw_describe_layout(l->a, plan, o->value,
		                   &l->what->origins->layouts.items.data[o->from], why);
		sw_text_add(why, " -> ");
		sw_describe_layout(l->a, plan, o->value,
		                   &l->what->origins->layouts.items.data[o->to], why);
		return;
	}
	const sw_op *op = o->op == SW_NO_ID ? NULL : sw_op_at(l->a->program, o->op);
	if (op && op->n_results > 0)
		sw_anatomy_label(l->a, op->first_result, what);
	sw_text_add(why, "exchanged inside the op");
	for (int32_t a = 0; op && a < plan->cluster->atoms.n; a++) {
		const sw_choice *c = &plan->strategies[o->op].atom[a];
		const sw_factor *factor =
			c->kind == SW_CHOICE_SPLIT ? &plan->rules[o->op]->factors[c->index] : NULL;
		if (factor && factor->exchange != SW_EXCHANGE_NONE) {
			sw_text_addf(why, ": %s", sw_exchange_name(factor->exchange));
			break;
		}
	}
}

static int64_t payload_of(const collective_table *l, sw_id id, uint32_t atoms,
                          int64_t operand_bytes)
{
	const sw_op *op = sw_op_at(l->what->local, id);
	int64_t group = op->opcode == SW_OP_COLLECTIVE_PERMUTE
	                        ? 2
	                        : sw_atoms_group_size(&l->what->plan->cluster->atoms, atoms);
	return sw_collective_payload_bytes(sw_op_counted_as(op), operand_bytes, group);
}

static void add_collective(collective_table *l, sw_id id, size_t origin, int64_t trips,
                           uint32_t atoms, int64_t operand_bytes)
{
	const sw_op *op = sw_op_at(l->what->local, id);
	sw_text what = {0}, why = {0}, key = {0};
	describe(l, &l->what->origins->items.data[origin], &what, &why);
	const char *folded = sw_anatomy_fold(l->a, what.data ? what.data : "");
	int64_t bytes = payload_of(l, id, atoms, operand_bytes);
	sw_text_addf(&key, "%s\n%s\n%s\n%u %lld", folded, sw_collective_word(op), why.data, atoms,
	             (long long)bytes);
	uint32_t fresh = (uint32_t)l->rows.len,
		 number = sw_map_intern(&l->index, key.data, key.len, fresh);
	if (number == fresh)
		sw_vec_push(&l->rows,
		            ((collective_row){.what = folded,
		                              .opcode = sw_collective_word(op),
		                              .atoms = atoms,
		                              .why = sw_arena_text(&l->a->arena, why.data),
		                              .origin = origin,
		                              .last = SIZE_MAX,
		                              .bytes = bytes}));
	collective_row *x = &l->rows.data[number];
	x->count += trips;
	x->moves += x->last != origin;
	x->last = origin;
	x->seconds += (double)trips *
	              sw_cost_collective_op_seconds(l->what->plan->cluster, l->what->local, id);
	sw_text_clear(&what);
	sw_text_clear(&why);
	sw_text_clear(&key);
}

static void add_collectives(collective_table *l)
{
	const sw_program *local = l->what->local;
	const sw_origins *origins = l->what->origins;
	int64_t *trips = count_trips(local);
	size_t origin = 0;
	for (sw_id id = 0; id < local->ops.len; id++) {
		sw_collective_kind kind;
		uint32_t atoms;
		int64_t bytes;
		while (origin + 1 < origins->items.len &&
		       origins->items.data[origin + 1].first <= id)
			origin++;
		if (!sw_cost_collective_op(l->what->plan->cluster, local, id, &kind, &atoms,
		                           &bytes))
			continue;
		add_collective(l, id, origin, trips[sw_op_at(local, id)->computation], atoms,
		               bytes);
	}
	free(trips);
}

static int by_seconds(const void *a, const void *b)
{
	const collective_row *x = a, *y = b;
	if (x->seconds != y->seconds)
		return x->seconds < y->seconds ? 1 : -1;
	int order = strcmp(x->what, y->what);
	return order ? order : (x->origin > y->origin) - (x->origin < y->origin);
}

static json_t *row_json(collective_table *l, const collective_row *x)
{
	sw_text axes = {0};
	sw_describe_axes(l->what->plan, x->atoms, &axes);
	double payload = (double)x->count * (double)x->bytes;
	json_t *json =
		json_pack("{s:s, s:s, s:s, s:s, s:I, s:I, s:f, s:f}", "what", x->what, "collective",
	                  x->opcode, "over", axes.data, "why", x->why, "count",
	                  (json_int_t)x->count, "payload_bytes", (json_int_t)x->bytes, "seconds",
	                  x->seconds, "bandwidth", x->seconds > 0 ? payload / x->seconds : 0);
	sw_text_clear(&axes);
	return json;
}

/* Add the cost of avoiding all redistributions of the row: each costs as much as the first. */
static void add_avoidance(collective_table *l, sw_avoider *avoider, const collective_row *x,
                          json_t *json)
{
	const sw_origin *o = &l->what->origins->items.data[x->origin];
	sw_avoidance best = {0};
	sw_text instead = {0};
	if (o->value != SW_NO_ID)
		sw_avoid(avoider, o, &best);
	if (!best.possible) {
		json_object_set_new(json, "instead", json_null());
		return;
	}
	sw_avoidance_print(avoider, &best, &instead);
	double n = (double)x->moves;
	json_object_set_new(json, "instead",
	                    json_pack("{s:s, s:f, s:f, s:f, s:I, s:I}", "choice", instead.data,
	                              "seconds", n * best.seconds, "compute_s", n * best.compute_s,
	                              "communication_s", n * best.communication_s, "payload_bytes",
	                              (json_int_t)(x->moves * best.payload_bytes), "memory_bytes",
	                              (json_int_t)(x->moves * best.memory_bytes)));
	sw_text_clear(&instead);
}

json_t *sw_explain_collectives(sw_anatomy *a, const sw_explained *what)
{
	collective_table l = {.a = a, .what = what};
	json_t *list = json_array();
	sw_avoider *avoider = sw_avoider_new(what, a);
	add_collectives(&l);
	if (l.rows.len > 0)
		qsort(l.rows.data, l.rows.len, sizeof(collective_row), by_seconds);
	for (size_t i = 0; i < l.rows.len; i++) {
		json_t *json = row_json(&l, &l.rows.data[i]);
		if (i < MAX_AVOIDED_ROWS)
			add_avoidance(&l, avoider, &l.rows.data[i], json);
		json_array_append_new(list, json);
	}
	sw_avoider_free(avoider);
	sw_map_clear(&l.index);
	sw_vec_clear(&l.rows);
	return list;
}
