/* The driver: run makers until there are enough ops, then turn every unread value into a result. */
#include "generate/maker.h"

#include <assert.h>
#include <string.h>

#include "run/run.h"

static const make_table *const tables[] = {&makers_elementwise, &makers_shape, &makers_reduce,
                                           &makers_contract,    &makers_index, &makers_region,
                                           &makers_pattern};

static bool is_asked_for(const maker *m, const make_row *row)
{
	return !m->options->only || strstr(row->name, m->options->only);
}

void make_something(maker *m)
{
	int64_t total = 0;
	for (size_t t = 0; t < SW_COUNT(tables); t++)
		for (size_t i = 0; i < tables[t]->n; i++)
			total += is_asked_for(m, &tables[t]->rows[i]) ? tables[t]->rows[i].weight
			                                              : 0;
	if (total == 0)
		return;
	int64_t left = below(m, total);
	for (size_t t = 0; t < SW_COUNT(tables); t++)
		for (size_t i = 0; i < tables[t]->n; i++) {
			const make_row *row = &tables[t]->rows[i];
			if (!is_asked_for(m, row))
				continue;
			left -= row->weight;
			if (left < 0) {
				row->make(m);
				return;
			}
		}
}

/* ---- results ---------------------------------------------------------------------------- */

/* Choose every unread value, and sometimes a read one; an input only if there is nothing else. */
static uint32_t choose_results(maker *m, sw_id *results)
{
	const sw_program *p = m->program;
	bool *used = sw_alloc(p->values.len + 1);
	uint32_t n = 0;
	for (size_t i = 0; i < p->ops.len; i++)
		for (uint32_t k = 0; k < p->ops.data[i].n_operands; k++)
			used[p->ops.data[i].operands[k]] = true;
	for (size_t i = 0; i < m->scope->pool.len; i++) {
		sw_id v = m->scope->pool.data[i];
		bool input = sw_op_at(p, p->values.data[v].op)->opcode == SW_OP_PARAMETER;
		if ((!used[v] && !input) || chance(m, input ? 2 : 10)) {
			results[n++] = v;
			used[v] = true;
		}
	}
	if (n == 0 && m->scope->pool.len)
		results[n++] = m->scope->pool.data[m->scope->pool.len - 1];
	free(used);
	return n;
}

/* Let some results alias inputs of the same shape and type. */
static void make_aliases(maker *m, const sw_id *results, uint32_t n)
{
	sw_arena arena;
	const sw_id *inputs;
	sw_arena_init(&arena);
	uint32_t n_inputs = sw_program_inputs(m->program, m->program->entry, &arena, &inputs);
	bool *taken = SW_NEW_N(&arena, bool, n_inputs + 1);
	for (uint32_t r = 0; r < n; r++)
		for (uint32_t i = 0; i < n_inputs; i++) {
			if (taken[i] ||
			    !sw_shape_equal(shape_of(m, results[r]), shape_of(m, inputs[i])) ||
			    !chance(m, 40))
				continue;
			taken[i] = true;
			sw_vec_push(&m->program->aliases, ((sw_alias){.output = r, .input = i}));
			break;
		}
	sw_arena_clear(&arena);
}

static void describe(maker *m, const sw_id *results, uint32_t n, generated *g)
{
	g->program = m->program;
	sw_sidecar_default(m->program, &g->sidecar);
	assert(g->sidecar.n_inputs == m->fills.len && g->sidecar.n_outputs == n);
	for (uint32_t i = 0; i < g->sidecar.n_inputs; i++)
		g->sidecar.inputs[i].init = g->sidecar.inputs[i].random = m->fills.data[i];
	g->errors = SW_NEW_N(&g->sidecar.arena, double, n + 1);
	for (uint32_t i = 0; i < n; i++)
		g->errors[i] = fact(m, results[i])->error;
}

void generate_program(uint64_t seed, const generate_options *options, generated *g)
{
	static const generate_options usual;
	char name[32];
	scope entry;
	maker m = {.options = options ? options : &usual, .rng = {seed, 0}};
	snprintf(name, sizeof(name), "generated_%llu", (unsigned long long)seed);
	m.program = sw_program_new(name);
	m.main_type = SW_F32;
	scope_open(&m, &entry, "main");
	m.main_type = random_type(&m, NUMBERS);
	int64_t steps = m.options->ops ? m.options->ops : between(&m, 3, 14);
	for (int64_t i = 0; i < steps; i++)
		make_something(&m);
	if (entry.pool.len == 0)
		fresh(&m, random_shape(&m, m.main_type, 1, 3));
	sw_id *results = sw_alloc(sizeof(sw_id) * (entry.pool.len + 1));
	uint32_t n = choose_results(&m, results);
	m.program->entry = scope_close(&m, &entry, results, n, n != 1);
	make_aliases(&m, results, n);
	sw_program_find_trip_counts(m.program);
	describe(&m, results, n, g);
	free(results);
	sw_vec_clear(&m.facts);
	sw_vec_clear(&m.fills);
	sw_error err = {0};
	sw_status status = sw_program_verify(g->program, &err);
	if (status != SW_OK)
		fprintf(stderr, "generate: seed %llu: %s\n", (unsigned long long)seed, err.message);
	assert(status == SW_OK);
}

void generated_fill(const generated *g, uint64_t seed, sw_tensor *inputs)
{
	static const sw_atoms alone;
	sw_layout whole = sw_layout_replicated(&alone);
	const sw_id *values;
	sw_arena arena;
	sw_arena_init(&arena);
	uint32_t n = sw_program_inputs(g->program, g->program->entry, &arena, &values);
	for (uint32_t i = 0; i < n; i++) {
		sw_error err = {0};
		sw_shape shape = sw_value_shape(g->program, values[i]);
		sw_status status = sw_tensor_new(shape, false, &inputs[i], &err);
		if (status == SW_OK)
			status = sw_fill_local(&alone, shape, NULL, &whole, 0,
			                       &g->sidecar.inputs[i].random, seed, i, &inputs[i],
			                       &err);
		assert(status == SW_OK);
	}
	sw_arena_clear(&arena);
}

sw_status generated_run(const generated *g, const sw_program *program, uint64_t seed,
                        sw_tensor *outputs, sw_error *err)
{
	sw_interpreter *it = NULL;
	sw_interpret_options options = {.blas_threads = 1};
	sw_tensor *inputs = sw_alloc(sizeof(*inputs) * (g->sidecar.n_inputs + 1));
	generated_fill(g, seed, inputs);
	sw_status status = sw_interpreter_new(program, &options, &it, err);
	if (status == SW_OK)
		status = sw_interpret(it, inputs, g->sidecar.n_inputs, outputs,
		                      g->sidecar.n_outputs, err);
	sw_interpreter_free(it);
	free(inputs);
	return status;
}

void generated_clear(generated *g)
{
	sw_sidecar_clear(&g->sidecar);
	sw_program_free(g->program);
	*g = (generated){0};
}
