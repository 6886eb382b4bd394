/*
 * One strategy of a sample, executed: the local op is run on every device, on operands cut from
 * random whole ones, and the results of the devices are compared with the cut of the whole.
 */
#include "rules/brute_trial.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "run/ranks.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* ---- operands and expected results ------------------------------------------------------ */

void brute_fail(const brute_trial *t, const char *what)
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

void brute_random_operands(brute_trial *t)
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

bool brute_expect(const brute_sample *s, const sw_tensor *in, sw_tensor *out, uint32_t n_out)
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

/* ---- the devices ------------------------------------------------------------------------ */

/* Return the number formed by the device's coordinates on the atoms of the mask. */
static int64_t member(const sw_atoms *atoms, int64_t device, uint32_t mask)
{
	int64_t number = 0;

	for (int32_t a = 0; a < atoms->n; a++)
		if (mask >> a & 1)
			number = number * atoms->size[a] + sw_atoms_coordinate(atoms, device, a);
	return number;
}

static sw_tensor *terms_of(const brute_trial *t, uint32_t operand, bool plain)
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

static sw_program *write_local(const brute_trial *t)
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
		brute_fail(t, err.message);
	sw_build_results(out, c, results, op->n_results, op->n_results != 1);
	out->entry = c;
	if (sw_program_verify(out, &err) != SW_OK)
		brute_fail(t, err.message);
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
static void compare_result(const brute_trial *t, uint32_t r, sw_tensor *const *got)
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
				brute_fail(t, "the devices do not hold the result");
			}
		}
	}
	sw_tensor_drop(&part);
}

/* Cut the operands of every device: [device][operand]. */
static sw_tensor *cut_operands(const brute_trial *t, const sw_program *local,
                               sw_tensor *const *terms)
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
static void run_devices(const brute_trial *t, const sw_program *local, sw_tensor *const *terms,
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
		brute_fail(t, err.message);
	for (int64_t i = 0; i < devices * s->n; i++)
		sw_tensor_drop(&c.in[i]);
	for (int64_t d = 0; d < devices; d++)
		t->counts->payload_bytes = SW_MAX(t->counts->payload_bytes, c.payload[d]);
	free(c.in);
	free(c.payload);
	t->counts->devices += devices;
}

void brute_execute(const brute_trial *t, bool plain)
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
