/* Products, their ways and the messages of their flows: what joint_bound.c makes a problem of. */
#include "bound/joint.h"

#include <math.h>
#include <string.h>

#include "program/attributes.h"

#define MAX_ENTRIES 3e7 /* of all tables of a piece */
#define MAX_ENTRIES_OF_ALL 1e8
#define RADIUS 6 /* uses, as far as products of repeated layers have like surroundings */

/* What a way of a product means for one flow: for a source, in how many parts an element is (x) as
 * how many partial sums; for a sink, in how many parts it is read (x), as how many sums at most;
 * and into how many parts each class of dimensions is split (flows.h). */
typedef struct holding {
	double x, sums;
	int32_t split[SW_MAX_RANK]; /* per class */
} holding;

/* ---- messages --------------------------------------------------------------------------- */

/* Return what the way of a source, or of a sink for its operand, means for the flow. Copies of a
 * sink may each work on a sum of their own; state is one sum. */
static holding holding_in(const sw_bound_flow *flow, bool is_sink, const sw_product_kind *kind,
                          const sw_product_way *way)
{
	uint32_t which = is_sink ? flow->operand : 0;
	const sw_rule *rule = kind->rule;
	const sw_dim_map *dims = is_sink ? rule->operands[which] : rule->results[0];
	int32_t rank = is_sink ? rule->operand_ranks[which] : rule->result_ranks[0];
	bool coarse = way->passes[0] == 0;
	double passed = coarse ? 1 : way->passes[0] * way->passes[1];
	holding h = {.x = way->copies * passed, .sums = passed};
	if (is_sink)
		h.sums = flow->through_state ? 1 : coarse ? way->copies : way->passes[which];
	for (int32_t f = 0; f < rule->n_factors; f++) {
		if (sw_rule_has_factor(rule, !is_sink, (int32_t)which, f))
			continue;
		h.x *= way->parts[f];
		h.sums *= is_sink ? 1 : way->parts[f];
	}
	for (int32_t c = 0; c < flow->n_classes; c++)
		h.split[c] = 1;
	for (int32_t d = 0; d < rank; d++) {
		int8_t class = is_sink ? flow->sink_class[d] : flow->source_class[d];
		for (int32_t r = 0; r < dims[d].n; r++) {
			int32_t parts = way->parts[dims[d].refs[r].factor];
			if (class == SW_NO_CLASS)
				h.x *= parts; /* each reads another copy of the element */
			else if (class != SW_PLACED && flow->n_classes > 0)
				h.split[class] *= parts;
		}
	}
	return h;
}

/* Return how many messages each element takes at least, as a mean over the parts; README.md proves
 * that no sequence of moves takes fewer. */
static double messages(const sw_bound_flow *flow, const holding *source, const holding *sink)
{
	double summed = flow->summed ? source->sums - 1 : 0;
	if (source->sums > sink->sums)
		return fmax(summed, (source->sums - sink->sums) + (sink->x - sink->sums));
	double there = 1, needed = 1; /* of all elements, in a part: at the source, and read */
	for (int32_t c = 0; c < flow->n_classes && source->sums == 1; c++) {
		needed /= sink->split[c];
		there /= SW_MAX(source->split[c], sink->split[c]);
	}
	double missing = sink->x * (1 - there / needed);
	return fmax(fmax(missing, summed), sink->x - source->x);
}

/* ---- products and flows ------------------------------------------------------------------------ */

/* What the ways of a product follow from. */
static void describe(const sw_program *program, sw_id id, const division *d, sw_text *key)
{
	const sw_op *op = sw_op_at(program, id);
	key->len = 0;
	sw_text_addf(key, "%d %d %d %lld %d;", op->opcode, d->attention, d->shares_kernel,
	             (long long)d->microbatches, d->split);
	for (uint32_t i = 0; i < op->n_operands + op->n_results; i++) {
		sw_shape shape = sw_value_shape(
			program, i < op->n_operands ? op->operands[i]
						    : op->first_result + i - op->n_operands);
		sw_text_addf(key, "%d[", shape.type);
		for (int32_t k = 0; k < shape.rank; k++)
			sw_text_addf(key, "%lld,", (long long)shape.dims[k]);
	}
	sw_attributes_key((sw_opcode)op->opcode, op->attrs, key);
}

/* Find the ways of the products that may be ends of flows: those that no other op may become equal
 * to. Sets is_product. */
static void find_products(joint *j, division *d, int32_t level, ways_choice of,
                          const sw_bound_marked *m, bool *is_product)
{
	const sw_bound_marks *marks = &m->marks;
	const sw_program *program = d->program;
	const sw_computation *entry = &program->computations.data[program->entry];
	int32_t *members = SW_NEW_N(&j->arena, int32_t, program->ops.len + 1);
	sw_map known = {0}; /* product by description */
	sw_text key = {0};
	sw_product_kind *kinds = SW_NEW_N(&j->arena, sw_product_kind, entry->ops.len + 1);
	j->products = SW_NEW_N(&j->arena, joint_product, entry->ops.len + 1);
	for (sw_id id = 0; id < program->ops.len; id++)
		members[marks->any.twins[id]]++;
	for (size_t i = 0; i < entry->ops.len; i++) {
		sw_id id = entry->ops.data[i];
		if (!sw_is_dot(sw_op_at(program, id)) || members[marks->any.twins[id]] > 1)
			continue;
		sw_bound_loop_apply(&marks->any, marks, id, d);
		describe(program, id, d, &key);
		uint32_t like = sw_map_get(&known, key.data, key.len);
		if (like == SW_ABSENT) {
			like = (uint32_t)j->n_products;
			if (!sw_bound_product(d, level, of, id, m->rules[id], &j->arena,
			                      &kinds[like]))
				continue;
			sw_map_put(&known, key.data, key.len, like);
		}
		j->products[j->n_products++] = (joint_product){.op = id, .kind = &kinds[like]};
		is_product[id] = true;
	}
	sw_map_clear(&known);
	sw_text_clear(&key);
}

/* List the different holdings of a kind's ways. */
static int32_t list_holdings(joint *j, const sw_bound_flow *flow, bool is_sink,
                             const sw_product_kind *kind, holding *all, const uint16_t **of)
{
	uint16_t *number = SW_NEW_N(&j->arena, uint16_t, kind->n_ways);
	int32_t n = 0;
	for (int32_t w = 0; w < kind->n_ways; w++) {
		int32_t i = 0;
		all[n] = holding_in(flow, is_sink, kind, &kind->ways[w]);
		while (memcmp(&all[i], &all[n], sizeof(*all)) != 0)
			i++;
		number[w] = (uint16_t)i;
		n += i == n;
	}
	*of = number;
	return n;
}

static const message_table *make_table(joint *j, const sw_bound_flow *flow,
                                       const sw_product_kind *source, const sw_product_kind *sink)
{
	message_table *x = SW_NEW_N(&j->arena, message_table, 1);
	holding *from = sw_alloc(sizeof(*from) * (size_t)(source->n_ways + sink->n_ways + 2)),
		*to = from + source->n_ways + 1;
	x->n[0] = list_holdings(j, flow, false, source, from, &x->of[0]);
	x->n[1] = list_holdings(j, flow, true, sink, to, &x->of[1]);
	double *table = SW_NEW_N(&j->arena, double, (size_t)x->n[0] * (size_t)x->n[1]);
	for (int32_t a = 0; a < x->n[0]; a++)
		for (int32_t b = 0; b < x->n[1]; b++)
			table[a * x->n[1] + b] = messages(flow, &from[a], &to[b]);
	x->messages = table;
	free(from);
	return x;
}

/* The table of a flow, made once for flows that are alike. */
static const message_table *table_of(joint *j, const sw_bound_flow *flow,
                                     const sw_product_kind *source, const sw_product_kind *sink,
                                     sw_map *known, const message_table **tables)
{
	struct {
		const sw_product_kind *source, *sink;
		int32_t operand, through_state, summed, n_classes;
		int8_t classes[2][SW_MAX_RANK];
	} key;
	memset(&key, 0, sizeof(key));
	key.source = source;
	key.sink = sink;
	key.operand = (int32_t)flow->operand;
	key.through_state = flow->through_state;
	key.summed = flow->summed;
	key.n_classes = flow->n_classes;
	memcpy(key.classes[0], flow->source_class, sizeof(key.classes[0]));
	memcpy(key.classes[1], flow->sink_class, sizeof(key.classes[1]));
	uint32_t next = (uint32_t)known->len;
	uint32_t number = sw_map_intern(known, &key, sizeof(key), next);
	if (number == next)
		tables[next] = make_table(j, flow, source, sink);
	return tables[number];
}

static void set_channels(joint *j, const sw_bound_flow_list *flows, double parts, double bandwidth,
                         size_t n_ops)
{
	int32_t *number = SW_NEW_N(&j->arena, int32_t, n_ops + 1);
	const message_table **tables = SW_NEW_N(&j->arena, const message_table *, flows->n + 1);
	sw_map known = {0};
	j->channels = SW_NEW_N(&j->arena, channel, flows->n + 1);
	for (int32_t p = 0; p < j->n_products; p++)
		number[j->products[p].op] = p;
	for (size_t f = 0; f < flows->n; f++) {
		const sw_bound_flow *of = &flows->at[f];
		int32_t source = number[of->source], sink = number[of->sink];
		j->channels[j->n_channels++] =
			(channel){.ends = {source, sink},
		                  .may_read_copy = of->may_read_copy,
		                  .table = table_of(j, of, j->products[source].kind,
		                                    j->products[sink].kind, &known, tables),
		                  .message_s = of->bytes * of->share / parts / bandwidth};
		j->products[source].is_copied |= of->may_read_copy;
	}
	sw_map_clear(&known);
}

/* ---- all --------------------------------------------------------------------------------- */

static double entries_of(const joint *j, const joint_piece *piece)
{
	double entries = 0;
	for (int32_t c = 0; c < piece->n_channels; c++) {
		const int32_t *ends = j->channels[piece->channels[c].channel].ends;
		entries += (double)j->products[ends[0]].n_ways * j->products[ends[1]].n_ways;
	}
	for (int32_t p = 0; p < piece->n_products; p++) {
		const joint_product *product = &j->products[piece->products[p].product];
		entries += product->is_copied ? pow(product->n_ways, 2) : 0;
	}
	return entries;
}

/* Are the tables small enough to be solved? */
static bool is_small(const joint *j)
{
	double all = 0, most = 0;
	for (int32_t i = 0; i < j->n_pieces; i++) {
		double entries = entries_of(j, &j->pieces[i]);
		all += entries;
		most = fmax(most, entries);
	}
	return most <= MAX_ENTRIES && all <= MAX_ENTRIES_OF_ALL;
}

/* Cut the problem where layers repeat: like products have like surroundings. */
static void cut(joint *j, const sw_program *program)
{
	sw_arena arena;
	sw_arena_init(&arena);
	sw_equivalence repeats = sw_program_equivalence(program, RADIUS, &arena);
	int32_t *class_of = SW_NEW_N(&arena, int32_t, j->n_products + 1), n = 0;
	sw_map seen = {0};
	for (int32_t p = 0; p < j->n_products; p++) {
		const joint_product *product = &j->products[p];
		uint64_t key[] = {repeats.number[product->op], (uint64_t)(uintptr_t)product->kind};
		class_of[p] = (int32_t)sw_map_intern(&seen, key, sizeof(key), (uint32_t)n);
		n += class_of[p] == n;
	}
	sw_joint_cut(j, class_of, n);
	sw_map_clear(&seen);
	sw_arena_clear(&arena);
}

/* Find products and flows, as one piece or in several; false: there are none, or too many ways. */
static bool joint_init(joint *j, const sw_bound_marked *m, int32_t level, ways_choice of)
{
	const sw_program *program = m->program;
	*j = (joint){.cluster = m->cluster, .rest_s = m->with_any_products_s};
	sw_arena_init(&j->arena);
	division d = division_of(m->cluster, program);
	bool *is_product = SW_NEW_N(&j->arena, bool, program->ops.len + 1);
	find_products(j, &d, level, of, m, is_product);
	for (int32_t p = 0; p < j->n_products; p++)
		j->rest_s -= j->products[p].kind->least_s;
	sw_bound_flow_list flows =
		sw_bound_flows(program, m->sidecar, m->rules, is_product, &j->arena);
	set_channels(j, &flows, (double)sw_cluster_parts(m->cluster, level),
	             m->cluster->levels[level].bandwidth, program->ops.len);
	sw_joint_drop_dominated(j);
	sw_joint_whole(j);
	if (!is_small(j))
		cut(j, program);
	return flows.n > 0 && is_small(j);
}

/* Which ways products have: the first choice whose tables are small enough is taken. */
static const ways_choice CHOICES[] = {
	{.coarse = false, .most = 1000}, {.coarse = true, .most = 1000}, {.coarse = true, .most = 500}};

bool sw_joint_find(joint *j, const sw_bound_marked *m)
{
	int32_t level;
	*j = (joint){0};
	sw_arena_init(&j->arena);
	if (!sw_bound_parts(m->cluster, &level))
		return false;
	for (size_t i = 0; i < SW_COUNT(CHOICES); i++) {
		sw_arena_clear(&j->arena);
		if (joint_init(j, m, level, CHOICES[i]))
			return true;
	}
	return false;
}

void sw_joint_clear(joint *j)
{
	sw_arena_clear(&j->arena);
}
