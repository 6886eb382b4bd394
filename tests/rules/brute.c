#include "rules/brute.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "frontend/frontend.h"
#include "run/ranks.h"

/* ---- writing a sample ------------------------------------------------------------------- */

void brute_init(brute_sample *sample)
{
	*sample = (brute_sample){.program = sw_program_new("sample"), .op = SW_NO_ID};
	sample->c = sw_build_computation(sample->program, "main");
}

void brute_clear(brute_sample *sample)
{
	sw_program_free(sample->program);
}

sw_ints brute_ints(brute_sample *sample, const char *text)
{
	int64_t list[32];
	int32_t n = 0;

	while (*text) {
		char *end;
		list[n++] = strtoll(text, &end, 10);
		text = *end == ',' ? end + 1 : end;
	}
	return sw_build_ints(sample->program, list, n);
}

sw_shape brute_shape(brute_sample *sample, const char *text)
{
	const char *open = strchr(text, '[');
	sw_type type = SW_F32;
	char dims[64];

	assert_non_null(open);
	assert_true(sw_type_find(text, (size_t)(open - text), &type));
	snprintf(dims, sizeof(dims), "%.*s", (int)strcspn(open + 1, "]"), open + 1);
	sw_ints list = brute_ints(sample, dims);
	return sw_build_shape(sample->program, type, list.v, list.n);
}

void brute_operand(brute_sample *sample, const char *shape, double low, double high)
{
	assert_true(sample->n < BRUTE_MAX_VALUES);
	sample->operands[sample->n] =
		sw_emit_parameter(sample->program, sample->c, brute_shape(sample, shape), NULL);
	sample->low[sample->n] = low;
	sample->high[sample->n] = high;
	sample->fill[sample->n++] = BRUTE_INTEGERS;
}

void brute_powers(brute_sample *sample, const char *shape, double low, double high)
{
	brute_operand(sample, shape, low, high);
	sample->fill[sample->n - 1] = BRUTE_POWERS_OF_TWO;
}

void brute_constant(brute_sample *sample, const char *shape, double value)
{
	sw_shape whole = brute_shape(sample, shape);

	assert_true(sample->n < BRUTE_MAX_VALUES);
	sample->operands[sample->n] = sw_emit_broadcast(
		sample->program, sample->c,
		sw_emit_scalar(sample->program, sample->c, whole.type, value), whole, NULL);
	sample->low[sample->n] = sample->high[sample->n] = value;
	sample->fill[sample->n++] = BRUTE_CONSTANT;
}

void brute_op_calling(brute_sample *sample, sw_opcode opcode, const sw_attrs *attrs,
                      const char *shapes, const int32_t *called, uint32_t n_called)
{
	sw_shape declared[4];
	sw_error err = {0};
	sw_op_spec spec = {.opcode = opcode,
	                   .operands = sample->operands,
	                   .n_operands = sample->n,
	                   .attrs = attrs,
	                   .called = called,
	                   .n_called = n_called};

	for (; shapes && *shapes; shapes += shapes[0] == ';') {
		declared[spec.n_results++] = brute_shape(sample, shapes);
		shapes += strcspn(shapes, ";");
		spec.shapes = declared;
	}
	sw_id first = SW_NO_ID;
	if (sw_build_op(sample->program, sample->c, &spec, &first, &err) != SW_OK)
		fail_msg("%s: %s", sw_opcode_name(opcode), err.message);
	sample->op = (sw_id)sample->program->ops.len - 1;
	sw_id results[BRUTE_MAX_VALUES];
	uint32_t n = sw_op_at(sample->program, sample->op)->n_results;
	for (uint32_t i = 0; i < n; i++)
		results[i] = first + i;
	sw_build_results(sample->program, sample->c, results, n, n != 1);
	sample->program->entry = sample->c;
}

void brute_op(brute_sample *sample, sw_opcode opcode, const sw_attrs *attrs, const char *shapes)
{
	brute_op_calling(sample, opcode, attrs, shapes, NULL, 0);
}

void brute_from_text(brute_sample *sample, const char *hlo)
{
	sw_program *program = NULL;
	sw_error err = {0};

	if (sw_read_hlo(hlo, strlen(hlo), "sample", &program, &err) != SW_OK)
		fail_msg("%s: %s", hlo + strlen(hlo) - SW_MIN(strlen(hlo), 160), err.message);
	sw_program_free(sample->program);
	*sample = (brute_sample){.program = program, .c = program->entry};
	const sw_computation *entry = sw_entry(program);
	sample->n = (uint32_t)entry->parameters.len;
	assert_true(sample->n <= BRUTE_MAX_VALUES);
	for (uint32_t i = 0; i < sample->n; i++) {
		sample->operands[i] = sw_op_at(program, entry->parameters.data[i])->first_result;
		sample->low[i] = -3;
		sample->high[i] = 3;
	}
	sample->op = program->values.data[entry->results.data[0]].op;
}

/* ---- elements: a complex number counts as two ------------------------------------------- */

static sw_type component_type(sw_type type)
{
	return type == SW_C64 ? SW_F32 : type == SW_C128 ? SW_F64 : type;
}

static int64_t component_count(sw_shape shape)
{
	return sw_shape_elements(shape) * (component_type(shape.type) == shape.type ? 1 : 2);
}

static double get(sw_tensor tensor, int64_t i)
{
	return sw_element_get(component_type(tensor.shape.type), sw_tensor_data(tensor), i);
}

static void set(sw_tensor tensor, int64_t i, double value)
{
	sw_element_set(component_type(tensor.shape.type), sw_tensor_data(tensor), i, value);
}

static sw_tensor new_tensor(sw_shape shape)
{
	sw_tensor tensor;
	sw_error err;

	assert_int_equal(sw_tensor_new(shape, true, &tensor, &err), SW_OK);
	return tensor;
}

static double identity(sw_type type, sw_monoid monoid)
{
	sw_type_kind kind = sw_type_kind_of(type);
	double bits = (double)(8 * sw_type_bytes(type));

	switch (monoid) {
	case SW_MONOID_MAX:
		return kind == SW_KIND_FLOAT    ? -INFINITY
		       : kind == SW_KIND_SIGNED ? -ldexp(1, (int)bits - 1)
		                                : 0;
	case SW_MONOID_MIN:
		return kind == SW_KIND_FLOAT    ? INFINITY
		       : kind == SW_KIND_SIGNED ? ldexp(1, (int)bits - 1) - 1
		                                : ldexp(1, (int)bits) - 1;
	case SW_MONOID_AND:
		return kind == SW_KIND_PRED     ? 1
		       : kind == SW_KIND_SIGNED ? -1
		                                : ldexp(1, (int)bits) - 1;
	default:
		return 0;
	}
}

static double combine(sw_monoid monoid, double a, double b)
{
	switch (monoid) {
	case SW_MONOID_SUM:
		return a + b;
	case SW_MONOID_MAX:
		return a > b || isnan(a) ? a : b;
	case SW_MONOID_MIN:
		return a < b || isnan(a) ? a : b;
	case SW_MONOID_AND:
		return (double)((int64_t)a & (int64_t)b);
	case SW_MONOID_OR:
		return (double)((int64_t)a | (int64_t)b);
	default:
		fail_msg("no such monoid");
		return 0;
	}
}

/* Wrap a sum of integers in its type. */
static double wrap(sw_type type, double value)
{
	sw_type_kind kind = sw_type_kind_of(type);
	double modulus = ldexp(1, (int)(8 * sw_type_bytes(type)));

	if ((kind != SW_KIND_SIGNED && kind != SW_KIND_UNSIGNED) || sw_type_bytes(type) > 4)
		return value;
	value -= modulus * floor(value / modulus);
	return kind == SW_KIND_SIGNED && value >= modulus / 2 ? value - modulus : value;
}

/* Return a term that does not change `whole`: if that is NaN, any number. */
static double harmless_term(sw_monoid monoid, double whole, sw_rng *rng)
{
	double some = (double)sw_rng_below(rng, 4);

	if (isnan(whole))
		return some;
	switch (monoid) {
	case SW_MONOID_MAX:
		return whole - some;
	case SW_MONOID_MIN:
		return whole + some;
	case SW_MONOID_AND:
		return combine(SW_MONOID_OR, whole, some);
	case SW_MONOID_OR:
		return combine(SW_MONOID_AND, whole, some);
	default:
		return 0;
	}
}

/* Write terms of one element that combine to `whole`. */
static void split_element(sw_tensor *terms, int64_t q, int64_t i, double whole, sw_monoid monoid,
                          bool plain, sw_rng *rng)
{
	sw_type type = component_type(terms[0].shape.type);
	int64_t owner = plain ? 0 : sw_rng_below(rng, q);
	/* The numbers are exact in every product: quarters, which show rounding, in f32 and f64; a
	 * few integers in the short floats. Sums of integers wrap. */
	bool is_float = sw_type_kind_of(type) == SW_KIND_FLOAT,
	     quarters = is_float && sw_type_bytes(type) >= 4;
	int64_t reach = quarters ? 8 : is_float ? 2 : 100;
	double rest = whole;

	for (int64_t t = 0; t < q; t++) {
		if (t == owner)
			continue;
		double term = identity(type, monoid);
		if (!plain && monoid == SW_MONOID_SUM)
			term = wrap(type, (double)(sw_rng_below(rng, 2 * reach + 1) - reach) /
			                          (quarters ? 4 : 1));
		else if (!plain && sw_type_kind_of(type) != SW_KIND_PRED &&
		         sw_type_kind_of(type) != SW_KIND_UNSIGNED)
			term = harmless_term(monoid, whole, rng);
		else if (!plain && sw_rng_below(rng, 2))
			term = whole;
		if (monoid == SW_MONOID_SUM)
			rest = wrap(type, rest - term);
		set(terms[t], i, term);
	}
	set(terms[owner], i, rest);
}

/* ---- one strategy ----------------------------------------------------------------------- */

typedef struct trial {
	brute_sample *sample;
	const sw_atoms *atoms;
	const sw_rule *rule;
	sw_tensor whole[BRUTE_MAX_VALUES], expected[BRUTE_MAX_VALUES];
	sw_layout operands[BRUTE_MAX_VALUES], results[BRUTE_MAX_VALUES];
	const sw_strategy *strategy;
	sw_rng *rng;
	brute_counts *counts;
} trial;

static void fail_trial(const trial *t, const char *what)
{
	sw_text text = {0};

	sw_rule_print(t->sample->program, t->sample->op, t->rule, &text);
	sw_text_add(&text, "strategy ");
	sw_strategy_print(t->atoms, t->rule, t->strategy, &text);
	sw_op_print(t->sample->program, t->sample->op, &text);
	fprintf(stderr, "%s\n", text.data);
	sw_text_clear(&text);
	fail_msg("%s", what);
}

static double random_value(sw_rng *rng, brute_fill fill, double low, double high)
{
	static const double extremes[] = {-INFINITY, -INFINITY, NAN, -1, 0, 0, 1, INFINITY};
	double value = low + (double)sw_rng_below(rng, (int64_t)(high - low) + 1);

	if (fill == BRUTE_EXTREMES)
		return extremes[sw_rng_below(rng, SW_COUNT(extremes))];
	return fill == BRUTE_POWERS_OF_TWO ? ldexp(1, (int)value) : value;
}

static void random_operands(trial *t)
{
	brute_sample *s = t->sample;

	for (uint32_t i = 0; i < s->n; i++) {
		t->whole[i] = new_tensor(sw_value_shape(s->program, s->operands[i]));
		for (int64_t e = 0; e < component_count(t->whole[i].shape); e++)
			set(t->whole[i], e,
			    random_value(t->rng, s->fill[i], s->low[i], s->high[i]));
	}
}

static sw_status interpret_once(const sw_program *program, const sw_interpret_options *options,
                                const sw_tensor *in, uint32_t n_in, sw_tensor *out, uint32_t n_out,
                                sw_error *err)
{
	sw_interpreter *interpreter = NULL;
	sw_tensor inputs[BRUTE_MAX_VALUES];

	sw_status status = sw_interpreter_new(program, options, &interpreter, err);
	if (status != SW_OK)
		return status;
	for (uint32_t i = 0; i < n_in; i++)
		inputs[i] = sw_tensor_keep(in[i]);
	status = sw_interpret(interpreter, inputs, n_in, out, n_out, err);
	sw_interpreter_free(interpreter);
	return status;
}

/* Run the sample's own program; return false if the interpreter does not implement the op. */
static bool expect(const brute_sample *s, const sw_tensor *in, sw_tensor *out, uint32_t n_out)
{
	sw_interpret_options options = {0};
	sw_tensor inputs[BRUTE_MAX_VALUES];
	uint32_t n = 0;
	sw_error err = {0};

	for (uint32_t i = 0; i < s->n; i++)
		if (s->fill[i] != BRUTE_CONSTANT)
			inputs[n++] = in[i];
	return interpret_once(s->program, &options, inputs, n, out, n_out, &err) == SW_OK;
}

/* Return the number formed by the device's coordinates on the atoms of the mask. */
static int64_t member(const sw_atoms *atoms, int64_t device, uint32_t mask)
{
	int64_t number = 0;

	for (int32_t a = 0; a < atoms->n; a++)
		if (mask >> a & 1)
			number = number * atoms->size[a] + sw_atoms_coordinate(atoms, device, a);
	return number;
}

static sw_tensor *terms_of(const trial *t, uint32_t operand, bool plain)
{
	const sw_layout *layout = &t->operands[operand];
	int64_t q = sw_atoms_group_size(t->atoms, sw_layout_partial_atoms(layout));
	sw_tensor *terms = sw_alloc(sizeof(*terms) * (size_t)q), whole = t->whole[operand];

	for (int64_t k = 0; k < q; k++)
		terms[k] = new_tensor(whole.shape);
	for (int64_t e = 0; e < component_count(whole.shape); e++)
		split_element(terms, q, e, get(whole, e), layout->monoid, plain, t->rng);
	return terms;
}

static sw_shape local_shape(sw_program *out, const sw_atoms *atoms, sw_shape whole,
                            const sw_layout *layout)
{
	int64_t dims[SW_MAX_RANK];

	sw_layout_local_dims(atoms, whole, layout, dims);
	return sw_build_shape(out, whole.type, dims, whole.rank);
}

static sw_program *write_local(const trial *t)
{
	const sw_program *in = t->sample->program;
	const sw_op *op = sw_op_at(in, t->sample->op);
	sw_program *out = sw_program_new("local");
	int32_t *map = sw_alloc(sizeof(int32_t) * in->computations.len);
	sw_id operands[BRUTE_MAX_VALUES], results[BRUTE_MAX_VALUES];
	sw_coordinates coordinates;
	sw_error err = {0};

	memset(map, -1, sizeof(int32_t) * in->computations.len);
	for (uint32_t i = 0; i < op->n_called; i++)
		sw_build_copy_computation(out, in, op->called[i], map);
	int32_t c = sw_build_computation(out, "main");
	for (uint32_t i = 0; i < op->n_operands; i++)
		operands[i] = sw_emit_parameter(out, c,
		                                local_shape(out, t->atoms,
		                                            sw_value_shape(in, op->operands[i]),
		                                            &t->operands[i]),
		                                NULL);
	sw_coordinates_init(&coordinates, out, c, t->atoms);
	sw_localize local = {.program = in,
	                     .op = t->sample->op,
	                     .rule = t->rule,
	                     .strategy = t->strategy,
	                     .coordinates = &coordinates,
	                     .computations = map,
	                     .operands = operands};
	if (sw_rule_localize(&local, results, &err) != SW_OK)
		fail_trial(t, err.message);
	sw_build_results(out, c, results, op->n_results, op->n_results != 1);
	out->entry = c;
	if (sw_program_verify(out, &err) != SW_OK)
		fail_trial(t, err.message);
	free(map);
	return out;
}

static bool close_enough(double a, double b, double tolerance)
{
	if (isnan(a) || isnan(b))
		return isnan(a) && isnan(b);
	return a == b || fabs(a - b) <= tolerance * fmax(1, fabs(b));
}

/* Compare got[device] of one result; P: the members are combined first. */
static void compare_result(const trial *t, uint32_t r, sw_tensor *const *got)
{
	const sw_layout *layout = &t->results[r];
	uint32_t partial = sw_layout_partial_atoms(layout);
	int64_t devices = sw_atoms_devices(t->atoms);
	sw_tensor part = new_tensor(got[0][r].shape);

	for (int64_t d = 0; d < devices; d++) {
		if (member(t->atoms, d, partial) != 0)
			continue;
		sw_layout_cut(t->atoms, t->expected[r].shape, layout, d,
		              sw_type_bytes(part.shape.type), sw_tensor_data(t->expected[r]),
		              sw_tensor_data(part));
		for (int64_t e = 0; e < component_count(part.shape); e++) {
			double value = get(got[d][r], e);
			for (int64_t m = 0; m < devices; m++)
				if (m != d &&
				    member(t->atoms, m, ~partial) == member(t->atoms, d, ~partial))
					value = wrap(part.shape.type, combine(layout->monoid, value,
					                                      get(got[m][r], e)));
			if (!close_enough(value, get(part, e), t->sample->tolerance)) {
				fprintf(stderr,
				        "device %lld result %u element %lld: %g, expected %g\n",
				        (long long)d, r, (long long)e, value, get(part, e));
				fail_trial(t, "the devices do not hold the result");
			}
		}
	}
	sw_tensor_drop(&part);
}

/* Cut the operands of every device: [device][operand]. */
static sw_tensor *cut_operands(const trial *t, const sw_program *local, sw_tensor *const *terms)
{
	const brute_sample *s = t->sample;
	int64_t devices = sw_atoms_devices(t->atoms);
	sw_tensor *in = sw_alloc(sizeof(*in) * ((size_t)devices * s->n + 1));

	for (int64_t d = 0; d < devices; d++)
		for (uint32_t i = 0; i < s->n; i++) {
			const sw_computation *entry = sw_entry(local);
			sw_shape shape = sw_value_shape(
				local, sw_op_at(local, entry->parameters.data[i])->first_result);
			int64_t q = member(t->atoms, d, sw_layout_partial_atoms(&t->operands[i]));
			sw_tensor *part = &in[d * s->n + i];
			*part = new_tensor(shape);
			sw_layout_cut(t->atoms, t->whole[i].shape, &t->operands[i], d,
			              sw_type_bytes(shape.type), sw_tensor_data(terms[i][q]),
			              sw_tensor_data(*part));
		}
	return in;
}

typedef struct crew {
	const sw_program *local;
	uint32_t n, n_results;
	sw_tensor *in, **got;
	int64_t *payload; /* [device] */
} crew;

static sw_status run_rank(void *context, sw_transport *transport, sw_error *err)
{
	const crew *c = context;
	int32_t rank = transport->rank;
	sw_interpret_options options = {.partition_id = (uint32_t)rank,
	                                .blas_threads = 1,
	                                .collective = sw_transport_collective,
	                                .collective_context = transport};

	sw_status status = interpret_once(c->local, &options, &c->in[(uint32_t)rank * c->n], c->n,
	                                  c->got[rank], c->n_results, err);
	c->payload[rank] = transport->traffic.payload_bytes;
	return status;
}

/* Run the devices one after the other, or, where the local op communicates, as ranks on threads. */
static void run_devices(const trial *t, const sw_program *local, sw_tensor *const *terms,
                        sw_tensor **got)
{
	const brute_sample *s = t->sample;
	int64_t devices = sw_atoms_devices(t->atoms);
	crew c = {.local = local,
	          .n = s->n,
	          .n_results = sw_op_at(s->program, s->op)->n_results,
	          .in = cut_operands(t, local, terms),
	          .got = got,
	          .payload = sw_alloc(sizeof(int64_t) * (size_t)devices)};
	sw_status status = SW_OK;
	sw_error err = {0};

	for (int64_t d = 0; d < devices; d++)
		got[d] = sw_alloc(sizeof(sw_tensor) * c.n_results);
	if (sw_strategy_exchanges(t->rule, t->strategy))
		status = sw_ranks_run((int32_t)devices, run_rank, &c, &err);
	for (int64_t d = 0; d < devices && !sw_strategy_exchanges(t->rule, t->strategy); d++) {
		sw_interpret_options options = {.partition_id = (uint32_t)d};
		status = interpret_once(local, &options, &c.in[d * s->n], s->n, got[d], c.n_results,
		                        &err);
		if (status != SW_OK)
			break;
	}
	if (status != SW_OK)
		fail_trial(t, err.message);
	for (int64_t i = 0; i < devices * s->n; i++)
		sw_tensor_drop(&c.in[i]);
	for (int64_t d = 0; d < devices; d++)
		t->counts->payload_bytes = SW_MAX(t->counts->payload_bytes, c.payload[d]);
	free(c.in);
	free(c.payload);
	t->counts->devices += devices;
}

static void check_execution(const trial *t, bool plain)
{
	const brute_sample *s = t->sample;
	uint32_t n_results = sw_op_at(s->program, s->op)->n_results;
	int64_t devices = sw_atoms_devices(t->atoms);
	sw_program *local = write_local(t);
	sw_tensor *terms[BRUTE_MAX_VALUES], **got = sw_alloc(sizeof(*got) * (size_t)devices);

	for (uint32_t i = 0; i < s->n; i++)
		terms[i] = terms_of(t, i, plain);
	run_devices(t, local, terms, got);
	for (uint32_t r = 0; r < n_results; r++)
		if (sw_type_kind_of(t->expected[r].shape.type) != SW_KIND_TOKEN)
			compare_result(t, r, got);
	for (int64_t d = 0; d < devices; d++) {
		for (uint32_t r = 0; r < n_results; r++)
			sw_tensor_drop(&got[d][r]);
		free(got[d]);
	}
	for (uint32_t i = 0; i < s->n; i++) {
		int64_t q = sw_atoms_group_size(t->atoms, sw_layout_partial_atoms(&t->operands[i]));
		for (int64_t k = 0; k < q; k++)
			sw_tensor_drop(&terms[i][k]);
		free(terms[i]);
	}
	free(got);
	sw_program_free(local);
	t->counts->executed++;
}

/* Check that from the layout of any value a strategy is found that gives this value the same
 * layout. */
static void check_match(const trial *t, bool result, int32_t index, const sw_layout *layout)
{
	sw_layout operands[BRUTE_MAX_VALUES], results[BRUTE_MAX_VALUES];
	uint32_t all = (1u << t->atoms->n) - 1, mask = all;
	sw_strategy strategy;

	sw_rule_match(t->rule, t->atoms, result, index, layout, &mask, &strategy);
	if (!sw_rule_layouts(t->sample->program, t->sample->op, t->rule, t->atoms, &strategy,
	                     operands, results))
		fail_trial(t, "a matched strategy is impossible");
	const sw_layout *again = result ? &results[index] : &operands[index];
	for (int32_t a = 0; a < t->atoms->n; a++) {
		const sw_state *x = &layout->state[a], *y = &again->state[a];
		if (!(mask >> a & 1)) {
			if (strategy.atom[a].kind != SW_CHOICE_NONE || x->kind != SW_STATE_P)
				fail_trial(t, "a state that the rule gives is not matched");
			continue;
		}
		if (x->kind != y->kind || x->dim != y->dim || x->stride != y->stride ||
		    (x->kind == SW_STATE_P && layout->monoid != again->monoid))
			fail_trial(t, "matching gives another layout");
	}
}

static void check_layouts(const trial *t)
{
	const sw_op *op = sw_op_at(t->sample->program, t->sample->op);

	for (uint32_t i = 0; i < op->n_operands; i++) {
		if (!sw_layout_valid(t->atoms, sw_value_shape(t->sample->program, op->operands[i]),
		                     &t->operands[i]))
			fail_trial(t, "an operand's layout is not valid");
		check_match(t, false, (int32_t)i, &t->operands[i]);
	}
	for (uint32_t i = 0; i < op->n_results; i++) {
		if (!sw_layout_valid(t->atoms,
		                     sw_value_shape(t->sample->program, op->first_result + i),
		                     &t->results[i]))
			fail_trial(t, "a result's layout is not valid");
		check_match(t, true, (int32_t)i, &t->results[i]);
	}
}

/* Return whether two atoms on one factor have digits that overlap or do not nest. */
static bool digits_clash(const trial *t, const sw_strategy *strategy)
{
	for (int32_t a = 0; a < strategy->n; a++)
		for (int32_t b = 0; b < strategy->n; b++) {
			const sw_choice *x = &strategy->atom[a], *y = &strategy->atom[b];
			if (a == b || x->kind != SW_CHOICE_SPLIT || y->kind != SW_CHOICE_SPLIT ||
			    x->index != y->index)
				continue;
			if (x->stride == y->stride ||
			    (x->stride < y->stride &&
			     y->stride % (x->stride * t->atoms->size[a]) != 0))
				return true;
		}
	return false;
}

/* Return whether a digit lies inside a factor that has blocks only: nothing undivided may lie above
 * its digits. */
static bool inside_blocks(const trial *t, const sw_strategy *strategy)
{
	for (int32_t f = 0; f < t->rule->n_factors; f++) {
		sw_exchange exchange = t->rule->factors[f].exchange;
		int64_t divided = 1, lowest = t->rule->factors[f].size;
		for (int32_t a = 0; a < strategy->n; a++)
			if (strategy->atom[a].kind == SW_CHOICE_SPLIT &&
			    strategy->atom[a].index == f) {
				divided *= t->atoms->size[a];
				lowest = SW_MIN(lowest, strategy->atom[a].stride);
			}
		if (exchange != SW_EXCHANGE_NONE && exchange != SW_EXCHANGE_FLIP &&
		    divided * lowest != t->rule->factors[f].size)
			return true;
	}
	return false;
}

/* Return the mask of monoids that a choice brings to an operand (-1: the results). */
static uint32_t monoids_brought(const sw_rule *rule, const sw_choice *c, int32_t operand)
{
	if (c->kind == SW_CHOICE_PASS && operand < 0)
		return 1u << rule->linearities[c->index].becomes[c->monoid];
	if (c->kind == SW_CHOICE_PASS)
		return rule->linearities[c->index].operands[operand] ? 1u << c->monoid : 0;
	if (c->kind != SW_CHOICE_SPLIT || rule->factors[c->index].kind != SW_FACTOR_REDUCED)
		return 0;
	const sw_factor *factor = &rule->factors[c->index];
	return operand < 0 || sw_ints_has(factor->joins, operand) ? 1u << factor->monoid : 0;
}

/* Return whether some value would have two monoids, for which a layout has no place. */
static bool monoids_clash(const trial *t, const sw_strategy *strategy)
{
	for (int32_t i = -1; i < t->rule->n_operands; i++) {
		uint32_t monoids = 0;
		for (int32_t a = 0; a < strategy->n; a++)
			monoids |= monoids_brought(t->rule, &strategy->atom[a], i);
		if (monoids & (monoids - 1))
			return true;
	}
	return false;
}

static void check_strategy(trial *t, const sw_strategy *strategy)
{
	t->strategy = strategy;
	t->counts->strategies++;
	bool streamed = false;
	for (int32_t a = 0; a < strategy->n; a++)
		streamed |= strategy->atom[a].stream_stride > 0;
	bool possible = !digits_clash(t, strategy) && !monoids_clash(t, strategy) &&
	                !inside_blocks(t, strategy);
	bool accepted = sw_rule_layouts(t->sample->program, t->sample->op, t->rule, t->atoms,
	                                strategy, t->operands, t->results);
	/* The panels of a streamed strategy have additional requirements. */
	if (possible != accepted && !(streamed && possible))
		fail_trial(t, possible ? "a possible strategy is refused"
		                       : "an impossible strategy is accepted");
	if (!accepted)
		return;
	t->counts->accepted++;
	t->counts->streamed += streamed;
	check_layouts(t);
	if (t->counts->unsupported)
		return;
	bool partial = false;
	for (uint32_t i = 0; i < t->sample->n; i++)
		partial |= sw_layout_partial_atoms(&t->operands[i]) != 0;
	check_execution(t, true);
	if (partial)
		check_execution(t, false);
}

/* ---- all strategies --------------------------------------------------------------------- */

typedef struct options {
	int32_t n;
	sw_choice choice[256];
} options;

/* Add every digit again, with every digit of a factor that streams. */
static void add_streamed(options *o, const sw_rule *rule, int64_t p)
{
	int32_t n = o->n;

	for (int32_t g = 0; g < rule->n_factors; g++)
		for (int64_t u = 1; rule->factors[g].streams && u * p <= rule->factors[g].size; u++)
			for (int32_t k = 1; k < n && o->n < 256; k++) {
				if (rule->factors[g].size % (u * p) != 0 || o->choice[k].index == g)
					continue;
				o->choice[o->n] = o->choice[k];
				o->choice[o->n].stream = (int16_t)g;
				o->choice[o->n++].stream_stride = u;
			}
}

/* List NONE first, then each digit of each factor, then these streamed, then each linearity with
 * each of its monoids. */
static options options_of(const sw_rule *rule, int64_t p)
{
	options o = {.n = 1};

	for (int32_t f = 0; f < rule->n_factors; f++)
		for (int64_t t = 1; t * p <= rule->factors[f].size; t++)
			if (rule->factors[f].size % (t * p) == 0 && o.n < 256)
				o.choice[o.n++] = (sw_choice){
					.kind = SW_CHOICE_SPLIT, .index = (int16_t)f, .stride = t};
	add_streamed(&o, rule, p);
	for (int32_t k = 0; k < rule->n_linearities; k++)
		for (int32_t m = SW_MONOID_SUM; m <= SW_MONOID_OR; m++)
			if ((rule->linearities[k].monoids >> m & 1) && o.n < 256)
				o.choice[o.n++] = (sw_choice){.kind = SW_CHOICE_PASS,
				                              .monoid = (uint8_t)m,
				                              .index = (int16_t)k};
	return o;
}

static void check_all(trial *t, const options *o)
{
	int32_t at[SW_MAX_ATOMS] = {0}, a;

	do {
		sw_strategy strategy = sw_strategy_none(t->atoms);
		for (a = 0; a < t->atoms->n; a++)
			strategy.atom[a] = o[a].choice[at[a]];
		check_strategy(t, &strategy);
		for (a = 0; a < t->atoms->n && ++at[a] == o[a].n; a++)
			at[a] = 0;
	} while (a < t->atoms->n);
}

/* With a negative budget only random strategies are checked. */
static void check_some(trial *t, const options *o, int64_t budget)
{
	for (int32_t a = 0; a < t->atoms->n && budget >= 0; a++)
		for (int32_t k = 1; k < o[a].n; k++) {
			sw_strategy strategy = sw_strategy_none(t->atoms);
			strategy.atom[a] = o[a].choice[k];
			check_strategy(t, &strategy);
		}
	for (int64_t i = 0; i < llabs(budget); i++) {
		sw_strategy strategy = sw_strategy_none(t->atoms);
		for (int32_t a = 0; a < t->atoms->n; a++)
			strategy.atom[a] = o[a].choice[sw_rng_below(t->rng, o[a].n)];
		check_strategy(t, &strategy);
	}
}

void brute_check(brute_sample *sample, const sw_atoms *atoms, int64_t budget, uint64_t seed,
                 brute_counts *counts)
{
	sw_rng rng = {.seed = seed};
	sw_arena arena;
	options o[SW_MAX_ATOMS];
	int64_t all = 1;

	sw_arena_init(&arena);
	trial t = {.sample = sample,
	           .atoms = atoms,
	           .rng = &rng,
	           .counts = counts,
	           .rule = sw_rule_make(sample->program, sample->op, &arena)};
	uint32_t n_results = sw_op_at(sample->program, sample->op)->n_results;
	random_operands(&t);
	counts->unsupported = !expect(sample, t.whole, t.expected, n_results);
	for (int32_t a = 0; a < atoms->n; a++) {
		o[a] = options_of(t.rule, atoms->size[a]);
		all *= o[a].n;
	}
	if (all <= budget)
		check_all(&t, o);
	else
		check_some(&t, o, budget);
	for (uint32_t i = 0; i < sample->n; i++)
		sw_tensor_drop(&t.whole[i]);
	for (uint32_t i = 0; i < n_results && !counts->unsupported; i++)
		sw_tensor_drop(&t.expected[i]);
	sw_arena_clear(&arena);
}
