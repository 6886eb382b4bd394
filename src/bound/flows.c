/* Paths from products to products, found from each value's ORIGIN: the product whose result it is
 * made of, element by element. An op with several operands has the origin of that which was
 * computed last: sums along a residual stream come from the layer before. */
#include "bound/flows.h"

#include <math.h>
#include <string.h>

#include "model/model.h"
#include "rewrite/rewrite.h"

#define MAX_DIMS 15   /* of a source: bits of a set */
#define PLACED 0x8000 /* in a set: the dimension holds other elements, too, at other places */
#define MAX_ORIGINS 3 /* of an element of a value */
#define MAX_LIST 1000 /* origins of a value, which may be a stack of the results of many layers */
#define LATER 0.25    /* weight of the next origin of an element */

/* Where in a value the elements of an origin may be: from start up to limit, per dimension. */
typedef struct box {
	int64_t start[SW_MAX_RANK], limit[SW_MAX_RANK];
} box;

typedef struct origin {
	sw_id product; /* op */
	sw_id from;    /* the value before on the path, SW_NO_ID: the source's result */
	bool through_state;
	bool summed;          /* a value on the path is read where it may be no partial sum */
	double bits;          /* of an element, in the smallest type on the way */
	double elements;      /* that have come all the way */
	bool sparse;          /* others may be in the box, too */
	uint16_t cut;         /* dimensions of the source of which a part is left */
	const uint16_t *dims; /* per dimension: those of the source that it is made of */
	const box *at;
	double weight; /* of all flows through here: set_shares */
} origin;

typedef struct origin_list {
	int32_t n;
	origin *at; /* the latest first */
} origin_list;

typedef struct search {
	const sw_program *program;
	sw_arena arena;
	const bool *is_product;
	const sw_rule *const *rules;
	sw_users users;
	origin_list *of; /* per value */
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

/* Dimensions that multiply up to the same size are made of each other; one of size 1 is made of
 * nothing. */
static void map_reshape(sw_shape from, sw_shape to, const uint16_t *in, uint16_t *out)
{
	for (int32_t i = 0, k = 0; i < from.rank || k < to.rank;) {
		int32_t first = k;
		int64_t a = i < from.rank ? from.dims[i] : 1, b = k < to.rank ? to.dims[k] : 1;
		if (a == 1 || b == 1) {
			i += i < from.rank && a == 1;
			if (k < to.rank && b == 1)
				out[k++] = 0;
			else if (a != 1 && k == to.rank)
				i++; /* of no size */
			continue;
		}
		uint16_t set = in[i++];
		k++;
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

/* Set per dimension of the result what it is made of, and *cut to what is cut out or joined. Where
 * a dimension that is made of nothing is joined, the elements lie at one place of it. */
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
			if (in.dims[i] == to.dims[i])
				continue;
			*cut |= dims[i] & ~PLACED;
			if (op->opcode != SW_OP_SLICE)
				out[i] |= PLACED;
		}
	}
}

/* ---- boxes ------------------------------------------------------------------------------ */

static double size_of(const box *b, int32_t rank)
{
	double size = 1;
	for (int32_t d = 0; d < rank; d++)
		size *= (double)(b->limit[d] - b->start[d]);
	return size;
}

static bool meet(const box *a, const box *b, int32_t rank)
{
	for (int32_t d = 0; d < rank; d++)
		if (a->limit[d] <= b->start[d] || b->limit[d] <= a->start[d])
			return false;
	return true;
}

static box whole_box(sw_shape shape)
{
	box b = {0};
	for (int32_t d = 0; d < shape.rank; d++)
		b.limit[d] = shape.dims[d];
	return b;
}

static bool is_whole(const box *b, sw_shape shape, int32_t d)
{
	return b->start[d] == 0 && b->limit[d] == shape.dims[d];
}

/* A part of a dimension is a box, too, if that remains a dimension of its own. */
static bool reshape_part(sw_shape from, sw_shape to, const box *in, box *out)
{
	int64_t before = 1, after = 1;
	*out = whole_box(to);
	for (int32_t i = 0, k = 0; i < from.rank; before *= from.dims[i++]) {
		if (is_whole(in, from, i))
			continue;
		for (; k < to.rank && (after < before || to.dims[k] == 1); k++)
			after *= to.dims[k];
		if (after != before || k == to.rank || to.dims[k] != from.dims[i])
			return false;
		out->start[k] = in->start[i];
		out->limit[k] = in->limit[i];
	}
	return true;
}

static bool is_reshape(const sw_op *op)
{
	return op->opcode == SW_OP_RESHAPE || op->opcode == SW_OP_BITCAST;
}

static bool slice_box(const sw_op *op, int32_t rank, const box *in, box *out)
{
	for (int32_t d = 0; d < rank; d++) {
		int64_t start = op->attrs->slice.start.v[d], limit = op->attrs->slice.limit.v[d],
			stride = op->attrs->slice.stride.n > d ? op->attrs->slice.stride.v[d] : 1;
		int64_t low = SW_MAX(in->start[d] - start, 0),
			high = SW_MIN(in->limit[d], limit) - start;
		out->start[d] = (low + stride - 1) / stride;
		out->limit[d] = high > 0 ? (high + stride - 1) / stride : 0;
		if (out->limit[d] <= out->start[d])
			return false;
	}
	return true;
}

static void concatenate_box(const search *s, const sw_op *op, uint32_t k, const box *in, box *out)
{
	int64_t d = op->attrs->dims.dims.v[0];
	*out = *in;
	for (uint32_t i = 0; i < k; i++) {
		int64_t size = sw_value_shape(s->program, op->operands[i]).dims[d];
		out->start[d] += size;
		out->limit[d] += size;
	}
}

/* What is put at a place that is not known may be anywhere, and on anything. */
static bool update_box(const search *s, const sw_op *op, uint32_t k, const box *in, box *out)
{
	sw_shape part = sw_value_shape(s->program, op->operands[1]);
	int64_t start[SW_MAX_RANK];
	if (k > 1 || !sw_fold_update(s->program, op, start))
		return false;
	box put = whole_box(part);
	for (int32_t d = 0; d < part.rank; d++) {
		out->start[d] = in->start[d] + (k == 1 ? start[d] : 0);
		out->limit[d] = in->limit[d] + (k == 1 ? start[d] : 0);
		put.start[d] += start[d];
		put.limit[d] += start[d];
	}
	return k == 1 || !meet(in, &put, part.rank);
}

/* Elements that are put apart, or of which some are cut off, are not followed. */
static bool pad_box(const sw_op *op, sw_shape to, const box *in, box *out)
{
	for (int32_t d = 0; d < to.rank; d++) {
		out->start[d] = in->start[d] + op->attrs->pad.low.v[d];
		out->limit[d] = in->limit[d] + op->attrs->pad.low.v[d];
		if (op->attrs->pad.interior.v[d] > 0 || out->start[d] < 0 ||
		    out->limit[d] > to.dims[d])
			return false;
	}
	return true;
}

/* Find where the elements of a box of operand k are in the result; false: perhaps nowhere. */
static bool lead_box(const search *s, const sw_op *op, uint32_t k, sw_id value, const box *in,
                     box *out)
{
	sw_shape from = sw_value_shape(s->program, op->operands[k]),
		 to = sw_value_shape(s->program, value);
	switch (op->opcode) {
	case SW_OP_RESHAPE:
	case SW_OP_BITCAST:
		if (!reshape_part(from, to, in, out))
			*out = whole_box(to);
		return true;
	case SW_OP_TRANSPOSE:
		for (int32_t i = 0; i < to.rank; i++) {
			out->start[i] = in->start[op->attrs->dims.dims.v[i]];
			out->limit[i] = in->limit[op->attrs->dims.dims.v[i]];
		}
		return true;
	case SW_OP_BROADCAST:
		*out = whole_box(to);
		for (int32_t i = 0; i < from.rank; i++)
			if (from.dims[i] == to.dims[op->attrs->dims.dims.v[i]]) {
				out->start[op->attrs->dims.dims.v[i]] = in->start[i];
				out->limit[op->attrs->dims.dims.v[i]] = in->limit[i];
			}
		return true;
	case SW_OP_SLICE:
		return slice_box(op, to.rank, in, out);
	case SW_OP_CONCATENATE:
		concatenate_box(s, op, k, in, out);
		return true;
	case SW_OP_DYNAMIC_UPDATE_SLICE:
		return update_box(s, op, k, in, out);
	case SW_OP_PAD:
		return pad_box(op, to, in, out);
	default:
		*out = *in;
		return true;
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
	case SW_OP_DYNAMIC_UPDATE_SLICE:
	case SW_OP_PAD:
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
	       op->opcode == SW_OP_CONCATENATE || op->opcode == SW_OP_DYNAMIC_UPDATE_SLICE ||
	       (op->opcode == SW_OP_PAD && k == 0) ||
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
	return a->through_state != b->through_state ? b->through_state : a->product > b->product;
}

/* Return how many later origins some element of this one has. */
static int32_t later_origins(const search *s, sw_id value, const origin *o)
{
	int32_t n = 0, rank = sw_value_shape(s->program, value).rank;
	for (const origin *other = s->of[value].at; other < o; other++)
		n += meet(other->at, o->at, rank);
	return n;
}

/* Add an origin to those of a value, the latest first: the last of too many is left out, and of two
 * from one product that which comes through state. */
static void add_origin(search *s, sw_id value, origin added)
{
	origin_list old = s->of[value], *of = &s->of[value];
	for (int32_t i = 0; i < old.n; i++)
		if (old.at[i].product == added.product && !is_later(&added, &old.at[i]))
			return;
	*of = (origin_list){.at = SW_NEW_N(&s->arena, origin, old.n + 1)};
	for (int32_t i = 0, placed = 0; i < old.n || !placed;) {
		bool now = !placed && (i == old.n || is_later(&added, &old.at[i]));
		origin next = now ? added : old.at[i++];
		placed |= now;
		if (!now && next.product == added.product)
			continue;
		of->at[of->n] = next;
		of->n += of->n < MAX_LIST && later_origins(s, value, &of->at[of->n]) < MAX_ORIGINS;
	}
}

static void lead_on(search *s, const sw_op *op, uint32_t k, sw_id value)
{
	sw_id from = op->operands[k];
	int32_t rank[2] = {sw_value_shape(s->program, from).rank,
	                   sw_value_shape(s->program, value).rank};
	bool summed = is_summed(s, value);
	for (int32_t i = 0; i < s->of[from].n; i++) {
		origin o = s->of[from].at[i];
		box at = {0};
		if (!lead_box(s, op, k, value, o.at, &at))
			continue;
		double before = size_of(o.at, rank[0]), left = size_of(&at, rank[1]);
		if (op->opcode == SW_OP_SLICE && left < before) {
			if (o.sparse) /* perhaps not one of the elements is left */
				continue;
			o.elements *= left / before;
		}
		o.sparse |= is_reshape(op) && left > before;
		uint16_t *dims = SW_NEW_N(&s->arena, uint16_t, rank[1] + 1);
		map_dims(s, op, from, value, o.dims, dims, &o.cut);
		o.from = from;
		o.dims = dims;
		o.at = sw_arena_copy(&s->arena, &at, sizeof(at));
		o.summed |= summed;
		o.bits = fmin(o.bits, bits_of(s->program, value));
		o.elements = fmin(o.elements, left);
		add_origin(s, value, o);
	}
}

static void begin_path(search *s, sw_id id, sw_id value)
{
	sw_shape shape = sw_value_shape(s->program, value);
	uint16_t *dims = SW_NEW_N(&s->arena, uint16_t, shape.rank + 1);
	for (int32_t i = 0; i < shape.rank; i++)
		dims[i] = (uint16_t)(1U << i);
	box at = whole_box(shape);
	add_origin(s, value,
	           (origin){.product = id,
	                    .from = SW_NO_ID,
	                    .summed = is_summed(s, value),
	                    .bits = bits_of(s->program, value),
	                    .elements = elements_of(s->program, value),
	                    .dims = dims,
	                    .at = sw_arena_copy(&s->arena, &at, sizeof(at))});
}

static void find_origins(search *s)
{
	const sw_computation *entry = &s->program->computations.data[s->program->entry];
	for (size_t i = 0; i < entry->ops.len; i++) {
		sw_id id = entry->ops.data[i];
		const sw_op *op = sw_op_at(s->program, id);
		for (uint32_t r = 0; op->opcode != SW_OP_PARAMETER && r < op->n_results; r++) {
			sw_id value = op->first_result + r;
			s->of[value] = (origin_list){0};
			if (s->is_product[id] && sw_value_shape(s->program, value).rank <= MAX_DIMS)
				begin_path(s, id, value);
			for (uint32_t k = 0; keeps_elements(op) && k < op->n_operands; k++)
				if (leads_on(s, op, k, r))
					lead_on(s, op, k, value);
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
		const origin_list *of = &s->of[entry->results.data[i]];
		for (int32_t k = 0; input >= 0 && k < of->n; k++) {
			origin from = of->at[k];
			from.through_state = true;
			from.from = entry->results.data[i];
			add_origin(s, roles.inputs[input], from);
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
		flow->sink_class[d] = o->dims[d] == PLACED ? SW_PLACED : class_in(of, o->dims[d]);
	flow->n_classes = o->sparse ? 0 : source_rank;
	int8_t cut = class_in(of, o->cut);
	for (int32_t i = 0; i < MAX_DIMS; i++)
		if ((o->cut >> i & 1) && (i >= source_rank || of[i] != cut))
			flow->n_classes = 0;
}

/* Return the origin that a value has in a product. */
static origin *origin_in(const search *s, sw_id value, sw_id product)
{
	const origin_list *of = &s->of[value];
	for (int32_t i = 0; i < of->n; i++)
		if (of->at[i].product == product)
			return &of->at[i];
	return NULL;
}

/* Return the weight of all flows that elements of an origin may belong to. */
static double weight_at(const search *s, sw_id value, const origin *o)
{
	double weight = 0;
	int32_t rank = sw_value_shape(s->program, value).rank;
	for (int32_t i = 0; i < s->of[value].n; i++)
		if (meet(s->of[value].at[i].at, o->at, rank))
			weight += s->of[value].at[i].weight;
	return weight;
}

/* Visit the values of a flow's path: add a weight to each, and return the most on any. */
static double visit_path(const search *s, const sw_bound_flow *flow, double weight)
{
	double most = 0;
	sw_id value = sw_op_at(s->program, flow->sink)->operands[flow->operand];
	while (value != SW_NO_ID) {
		origin *o = origin_in(s, value, flow->source);
		if (!o)
			break;
		o->weight += weight;
		most = fmax(most, weight_at(s, value, o));
		value = o->from;
	}
	return most;
}

/* The flows of an element share what is moved of it. */
static void set_shares(const search *s, sw_bound_flow *flows, size_t n)
{
	for (size_t i = 0; i < n; i++)
		visit_path(s, &flows[i], flows[i].share);
	for (size_t i = 0; i < n; i++)
		flows[i].share /= visit_path(s, &flows[i], 0);
}

static bool flow_into(const search *s, const sw_remat_points *points, sw_id sink, uint32_t operand,
                      const origin *from, sw_bound_flow *flow)
{
	const sw_program *program = s->program;
	if (from->product == sink)
		return false;
	bool original = sw_remat_reads_original(points, from->product, sink);
	if (!original && !sw_remat_copies_once(points, from->product))
		return false;
	sw_id value = sw_op_at(program, sink)->operands[operand];
	*flow = (sw_bound_flow){.source = from->product,
	                        .sink = sink,
	                        .operand = operand,
	                        .bytes = from->elements * from->bits / 8,
	                        .share = pow(LATER, later_origins(s, value, from)),
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
	SW_VEC(sw_bound_flow) flows = {0};
	sw_remat_points points;
	sw_arena_init(&s.arena);
	s.users = sw_program_users(program, &s.arena);
	s.of = SW_NEW_N(&s.arena, origin_list, program->values.len + 1);
	find_origins(&s);
	pass_through_state(&s, sidecar);
	find_origins(&s);
	sw_remat_points_init(&points, program);
	for (size_t i = 0; i < entry->ops.len; i++) {
		sw_id id = entry->ops.data[i];
		const sw_op *op = sw_op_at(program, id);
		for (uint32_t k = 0; is_product[id] && k < 2; k++) {
			const origin_list *of = &s.of[op->operands[k]];
			sw_bound_flow flow;
			for (int32_t o = 0; o < of->n; o++)
				if (flow_into(&s, &points, id, k, &of->at[o], &flow))
					sw_vec_push(&flows, flow);
		}
	}
	sw_remat_points_clear(&points);
	set_shares(&s, flows.data, flows.len);
	sw_arena_clear(&s.arena);
	sw_bound_flow_list list = {
		flows.len, sw_arena_copy(arena, flows.data, sizeof(*flows.data) * flows.len)};
	sw_vec_clear(&flows);
	return list;
}
