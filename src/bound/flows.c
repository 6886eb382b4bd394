/* Paths from products to products, found from each value's ORIGIN: the product whose result it is
 * made of, element by element. An op with several operands has the origin of that which was
 * computed last: sums along a residual stream come from the layer before. */
#include "bound/flows.h"

#include <math.h>
#include <string.h>

#include "model/model.h"
#include "rewrite/rewrite.h"

#define MAX_DIMS 16   /* of a source: bits of a set */
#define MAX_ORIGINS 3 /* of a value */
#define LATER 0.25    /* weight of the next origin of a value */

typedef struct origin {
	sw_id product; /* op; SW_NO_ID: none */
	sw_id from;    /* the value before on the path, SW_NO_ID: the source's result */
	bool through_state;
	bool summed;          /* a value on the path is read where it may be no partial sum */
	double bits;          /* of an element, in the smallest type on the way */
	double elements;      /* that have come all the way */
	uint16_t cut;         /* dimensions of the source of which a part is left */
	const uint16_t *dims; /* per dimension: those of the source that it is made of */
} origin;

typedef struct search {
	const sw_program *program;
	sw_arena arena;
	const bool *is_product;
	const sw_rule *const *rules;
	sw_users users;
	origin (*of)[MAX_ORIGINS]; /* per value, the latest first */
} search;

static double elements_of(const sw_program *program, sw_id value)
{
	return (double)sw_shape_elements(sw_value_shape(program, value));
}

static double bits_of(const sw_program *program, sw_id value)
{
	double elements = elements_of(program, value);
	double bytes = (double)sw_shape_bytes(sw_value_shape(program, value));
	return elements > 0 ? 8 * bytes / elements : 0;
}

/* ---- dimensions ------------------------------------------------------------------------- */

/* Dimensions that multiply up to the same size are made of each other. */
static void map_reshape(sw_shape from, sw_shape to, const uint16_t *in, uint16_t *out)
{
	for (int32_t i = 0, k = 0; i < from.rank || k < to.rank;) {
		int32_t first = k;
		int64_t a = i < from.rank ? from.dims[i] : 1, b = k < to.rank ? to.dims[k] : 1;
		uint16_t set = i < from.rank ? in[i++] : 0;
		k += k < to.rank;
		while (a != b) {
			if (a < b && i < from.rank) {
				a *= from.dims[i];
				set |= in[i++];
			} else if (a > b && k < to.rank) {
				b *= to.dims[k++];
			} else {
				break;
			}
		}
		while (first < k)
			out[first++] = set;
	}
}

/* Set per dimension of the result what it is made of, and *cut to what is cut out or joined. */
static void map_dims(const search *s, const sw_op *op, sw_id from, sw_id value,
                     const uint16_t *dims, uint16_t *out, uint16_t *cut)
{
	sw_shape in = sw_value_shape(s->program, from), to = sw_value_shape(s->program, value);
	switch (op->opcode) {
	case SW_OP_RESHAPE:
	case SW_OP_BITCAST:
		map_reshape(in, to, dims, out);
		return;
	case SW_OP_TRANSPOSE:
		for (int32_t i = 0; i < to.rank; i++)
			out[i] = dims[op->attrs->dims.dims.v[i]];
		return;
	case SW_OP_BROADCAST:
		for (int32_t i = 0; i < in.rank; i++)
			out[op->attrs->dims.dims.v[i]] = dims[i];
		return;
	default:
		for (int32_t i = 0; i < to.rank; i++) {
			out[i] = dims[i];
			if (in.dims[i] != to.dims[i])
				*cut |= dims[i] ? dims[i] : UINT16_MAX;
		}
	}
}

/* ---- origins ---------------------------------------------------------------------------- */

/* Is each element of the result one of an operand, or computed from one of each operand of its
 * size? */
static bool keeps_elements(const sw_op *op)
{
	switch (op->opcode) {
	case SW_OP_TRANSPOSE:
	case SW_OP_RESHAPE:
	case SW_OP_BITCAST:
	case SW_OP_BROADCAST:
	case SW_OP_SLICE:
	case SW_OP_CONCATENATE:
	case SW_OP_OPT_BARRIER:
		return true;
	default:
		return sw_opcode_is_elementwise((sw_opcode)op->opcode);
	}
}

/* May the result's origins be those of operand k? */
static bool leads_on(const search *s, const sw_op *op, uint32_t k, uint32_t result)
{
	sw_id from = op->operands[k], value = op->first_result + result;
	if (op->opcode == SW_OP_OPT_BARRIER && k != result) /* result k is operand k */
		return false;
	for (uint32_t i = 0; i < k; i++)
		if (op->operands[i] == from)
			return false;
	return op->opcode == SW_OP_BROADCAST || op->opcode == SW_OP_SLICE ||
	       op->opcode == SW_OP_CONCATENATE ||
	       elements_of(s->program, from) == elements_of(s->program, value);
}

/* Must the value be whole, no partial sum, for one of its readers? So it must where it is read as
 * two operands at once, or by an op that is not linear in it. */
static bool is_summed(const search *s, sw_id value)
{
	for (uint32_t u = s->users.start[value]; u < s->users.start[value + 1]; u++) {
		sw_id id = s->users.ops[u];
		const sw_op *op = sw_op_at(s->program, id);
		const sw_rule *rule = s->rules[id];
		int32_t reads = 0;
		bool linear = sw_is_region(op) || s->is_product[id];
		for (uint32_t k = 0; k < op->n_operands; k++) {
			if (op->operands[k] != value)
				continue;
			reads++;
			for (int32_t l = 0; l < rule->n_linearities; l++)
				linear |= rule->linearities[l].operands[k];
			for (int32_t f = 0; f < rule->n_factors; f++)
				linear |= sw_ints_has(rule->factors[f].joins, (int32_t)k);
		}
		if (!linear || (reads == 2 && op->opcode == SW_OP_MULTIPLY))
			return true;
	}
	return false;
}

static bool is_later(const origin *a, const origin *b)
{
	if (b->product == SW_NO_ID || a->through_state != b->through_state)
		return b->product == SW_NO_ID || b->through_state;
	return a->product > b->product;
}

/* Add an origin to those of a value, the latest first: the last of too many is left out, and of two
 * from one product that which comes through state. */
static void add_origin(search *s, sw_id value, origin added)
{
	origin *of = s->of[value];
	int32_t n = 0;
	for (int32_t i = 0; i < MAX_ORIGINS; i++) {
		if (of[i].product == added.product && !is_later(&added, &of[i]))
			return;
		if (of[i].product != added.product && of[i].product != SW_NO_ID)
			of[n++] = of[i];
	}
	for (int32_t i = n; i < MAX_ORIGINS; i++)
		of[i] = (origin){.product = SW_NO_ID};
	for (int32_t i = 0; i < MAX_ORIGINS && added.product != SW_NO_ID; i++)
		if (is_later(&added, &of[i])) {
			origin moved = of[i];
			of[i] = added;
			added = moved;
		}
}

static void lead_on(search *s, const sw_op *op, sw_id from, sw_id value)
{
	bool summed = is_summed(s, value);
	for (int32_t i = 0; i < MAX_ORIGINS; i++) {
		origin o = s->of[from][i];
		if (o.product == SW_NO_ID)
			return;
		uint16_t *dims =
			SW_NEW_N(&s->arena, uint16_t, sw_value_shape(s->program, value).rank + 1);
		map_dims(s, op, from, value, o.dims, dims, &o.cut);
		o.from = from;
		o.dims = dims;
		o.summed |= summed;
		o.bits = fmin(o.bits, bits_of(s->program, value));
		o.elements = fmin(o.elements, elements_of(s->program, value));
		add_origin(s, value, o);
	}
}

static void begin_path(search *s, sw_id id, sw_id value)
{
	int32_t rank = sw_value_shape(s->program, value).rank;
	uint16_t *dims = SW_NEW_N(&s->arena, uint16_t, rank + 1);
	for (int32_t i = 0; i < rank; i++)
		dims[i] = (uint16_t)(1U << i);
	s->of[value][0] = (origin){.product = id,
	                           .from = SW_NO_ID,
	                           .summed = is_summed(s, value),
	                           .bits = bits_of(s->program, value),
	                           .elements = elements_of(s->program, value),
	                           .dims = dims};
}

static void forget_origins(search *s, sw_id value)
{
	for (int32_t i = 0; i < MAX_ORIGINS; i++)
		s->of[value][i] = (origin){.product = SW_NO_ID};
}

static void find_origins(search *s)
{
	const sw_computation *entry = &s->program->computations.data[s->program->entry];
	for (size_t i = 0; i < entry->ops.len; i++) {
		sw_id id = entry->ops.data[i];
		const sw_op *op = sw_op_at(s->program, id);
		for (uint32_t r = 0; op->opcode != SW_OP_PARAMETER && r < op->n_results; r++) {
			sw_id value = op->first_result + r;
			forget_origins(s, value);
			if (s->is_product[id])
				begin_path(s, id, value);
			for (uint32_t k = 0; keeps_elements(op) && k < op->n_operands; k++)
				if (leads_on(s, op, k, r))
					lead_on(s, op, op->operands[k], value);
		}
	}
}

/* An input that a result replaces has the origins of that result, in the step before. */
static void pass_through_state(search *s, const sw_sidecar *sidecar)
{
	const sw_program *program = s->program;
	const sw_computation *entry = &program->computations.data[program->entry];
	sw_roles roles;
	sw_roles_init(&roles, program, sidecar);
	for (size_t i = 0; i < entry->results.len; i++) {
		int32_t input = roles.output_input[i];
		for (int32_t k = 0; input >= 0 && k < MAX_ORIGINS; k++) {
			origin from = s->of[entry->results.data[i]][k];
			from.through_state = true;
			from.from = entry->results.data[i];
			s->of[roles.inputs[input]][k] = from;
		}
	}
	sw_roles_clear(&roles);
}

/* ---- flows ------------------------------------------------------------------------------ */

static int8_t class_in(const int8_t *classes, uint16_t set)
{
	int32_t i = 0;
	while (i < MAX_DIMS && !(set >> i & 1))
		i++;
	return i < MAX_DIMS ? classes[i] : SW_NO_CLASS;
}

/* Put the source's dimensions of each set into one class. */
static void set_classes(const origin *o, int32_t source_rank, int32_t rank, sw_bound_flow *flow)
{
	int8_t *of = flow->source_class;
	for (int32_t i = 0; i < source_rank; i++)
		of[i] = (int8_t)i;
	for (int32_t d = 0; d < rank; d++)
		for (int32_t i = 0; i < source_rank; i++) {
			int8_t from = of[i], to = class_in(of, o->dims[d]);
			for (int32_t k = 0; (o->dims[d] >> i & 1) && k < source_rank; k++)
				of[k] = of[k] == from ? to : of[k];
		}
	for (int32_t d = 0; d < rank; d++)
		flow->sink_class[d] = class_in(of, o->dims[d]);
	flow->n_classes = source_rank;
	int8_t cut = class_in(of, o->cut);
	for (int32_t i = 0; i < MAX_DIMS; i++)
		if ((o->cut >> i & 1) && (i >= source_rank || of[i] != cut))
			flow->n_classes = 0;
}

/* Return the origin that a value has in a product. */
static const origin *origin_in(const search *s, sw_id value, sw_id product)
{
	for (int32_t i = 0; i < MAX_ORIGINS; i++)
		if (s->of[value][i].product == product)
			return &s->of[value][i];
	return NULL;
}

/* Visit the values of a flow's path: add a weight to each, and return the most on any. */
static double visit_path(const search *s, const sw_bound_flow *flow, double weight, double *weights)
{
	double most = 0;
	sw_id value = sw_op_at(s->program, flow->sink)->operands[flow->operand];
	for (const origin *o; value != SW_NO_ID; value = o->from) {
		o = origin_in(s, value, flow->source);
		if (!o)
			break;
		weights[value] += weight;
		most = fmax(most, weights[value]);
	}
	return most;
}

/* A value's flows share what is moved of it. Set the shares, from weights. */
static void set_shares(const search *s, sw_bound_flow *flows, size_t n)
{
	double *weights = sw_alloc((s->program->values.len + 1) * sizeof(*weights));
	for (size_t i = 0; i < n; i++)
		visit_path(s, &flows[i], flows[i].share, weights);
	for (size_t i = 0; i < n; i++)
		flows[i].share /= visit_path(s, &flows[i], 0, weights);
	free(weights);
}

static bool flow_into(const search *s, const sw_remat_points *points, sw_id sink, uint32_t operand,
                      const origin *from, sw_bound_flow *flow)
{
	const sw_program *program = s->program;
	if (from->product == SW_NO_ID || from->product == sink)
		return false;
	bool original = sw_remat_reads_original(points, from->product, sink);
	if (!original && !sw_remat_copies_once(points, from->product))
		return false;
	sw_id value = sw_op_at(program, sink)->operands[operand];
	*flow = (sw_bound_flow){.source = from->product,
	                        .sink = sink,
	                        .operand = operand,
	                        .bytes = from->elements * from->bits / 8,
	                        .share = pow(LATER, (double)(from - s->of[value])),
	                        .through_state = from->through_state,
	                        .may_read_copy = !original,
	                        .summed = from->summed};
	sw_id result = sw_op_at(program, from->product)->first_result;
	set_classes(from, sw_value_shape(program, result).rank, sw_value_shape(program, value).rank,
	            flow);
	return true;
}

sw_bound_flow_list sw_bound_flows(const sw_program *program, const sw_sidecar *sidecar,
                                  const sw_rule *const *rules, const bool *is_product,
                                  sw_arena *arena)
{
	const sw_computation *entry = &program->computations.data[program->entry];
	search s = {.program = program, .rules = rules, .is_product = is_product};
	sw_bound_flow *flows = SW_NEW_N(arena, sw_bound_flow, 2 * MAX_ORIGINS * entry->ops.len + 1);
	size_t n = 0;
	sw_remat_points points;
	sw_arena_init(&s.arena);
	s.users = sw_program_users(program, &s.arena);
	s.of = sw_arena_alloc(&s.arena, sizeof(*s.of) * (program->values.len + 1));
	for (sw_id v = 0; v < program->values.len; v++)
		forget_origins(&s, v);
	find_origins(&s);
	pass_through_state(&s, sidecar);
	find_origins(&s);
	sw_remat_points_init(&points, program);
	for (size_t i = 0; i < entry->ops.len; i++) {
		sw_id id = entry->ops.data[i];
		const sw_op *op = sw_op_at(program, id);
		for (uint32_t k = 0; is_product[id] && k < 2; k++)
			for (int32_t o = 0; o < MAX_ORIGINS; o++)
				n += flow_into(&s, &points, id, k, &s.of[op->operands[k]][o],
				               &flows[n]);
	}
	sw_remat_points_clear(&points);
	set_shares(&s, flows, n);
	sw_arena_clear(&s.arena);
	return (sw_bound_flow_list){n, flows};
}
