/* A stage's step as one program: each is run with what the others sent when they ran last, until
 * all of that has settled; then results are those of the whole step, bit for bit. And the steps
 * divide the ops of the whole. */
#include <string.h>

#include "stages/stage_step.h"
#include "stages/staged.h"
#include "test.h"

static const struct {
	const char *name;
	int32_t microbatches, most_stages;
} fixtures[] = {
	{"bert-tiny", 4, 3},        {"bert-tiny-clip", 2, 3},
	{"dlrm-tiny", 4, 3},        {"dnabert-tiny", 2, 2},
	{"gpt-tiny", 8, 4},         {"gpt-tiny-clip", 4, 4},
	{"gpt-dropout-tiny", 4, 2}, {"llama-gqa-tiny", 4, 3},
	{"mamba-tiny", 2, 3},       {"mlp", 8, 3},
	{"mlp-bf16", 4, 3},         {"mlp-clip", 4, 3},
	{"moe-gshard-tiny", 2, 2},  {"ncf-tiny", 4, 3},
	{"odd-tiny", 3, 3},         {"t5-tiny", 2, 3},
	{"t5-tiny-clip", 4, 3},     {"unet-tiny", 2, 3},
	{"vit-tiny", 4, 3},
};

#define MOST_STAGES 4

typedef struct step_runner {
	staged t;
	sw_stage_step steps[MOST_STAGES];
	sw_interpreter *interpreters[MOST_STAGES];
	sw_tensor *crossing; /* per value of the looped program: what was sent last */
	sw_tensor *inputs, *results;
	uint32_t n_inputs;
} step_runner;

static void check(const step_runner *x, sw_status status, const sw_error *err)
{
	if (status)
		fail_msg("%s, %d stages: %s", x->t.name, x->t.stages.n_stages, err->message);
}

static void runner_init(step_runner *x, size_t fixture, int32_t d)
{
	sw_error err;
	sw_interpret_options options = {.blas_threads = 1};
	*x = (step_runner){0};
	staged_init(&x->t, fixtures[fixture].name, fixtures[fixture].microbatches, d);
	if (!x->t.found)
		fail_msg("%s: %s", x->t.name, x->t.refusal.message);
	x->crossing = sw_alloc(sizeof(sw_tensor) * x->t.looped->values.len);
	x->inputs = staged_take_inputs(&x->t, &x->n_inputs);
	x->results = sw_alloc(sizeof(sw_tensor) * sw_entry(x->t.looped)->results.len);
	for (int32_t s = 0; s < d; s++) {
		check(x, sw_stage_step_init(&x->steps[s], &x->t.stages, s, &err), &err);
		check(x,
		      sw_interpreter_new(x->steps[s].program, &options, &x->interpreters[s], &err),
		      &err);
	}
}

static void put(sw_tensor *slot, sw_tensor tensor)
{
	if (slot->buffer)
		sw_tensor_drop(slot);
	*slot = tensor;
}

static void runner_clear(step_runner *x)
{
	for (size_t i = 0; i < x->t.looped->values.len; i++)
		if (x->crossing[i].buffer)
			sw_tensor_drop(&x->crossing[i]);
	for (uint32_t i = 0; i < x->n_inputs; i++)
		sw_tensor_drop(&x->inputs[i]);
	for (int32_t s = 0; s < x->t.stages.n_stages; s++) {
		sw_interpreter_free(x->interpreters[s]);
		sw_stage_step_clear(&x->steps[s]);
	}
	free(x->inputs);
	free(x->crossing);
	staged_drop(&x->t, x->results);
	staged_clear(&x->t);
}

/* What another stage has not sent yet is zeros. */
static sw_tensor find_input(step_runner *x, const sw_stage_step *step, uint32_t i)
{
	const sw_stage_port *port = &step->inputs[i];
	const sw_id *leaves;
	sw_arena arena = {0};
	sw_error err;
	if (port->kind == SW_PORT_WHOLE)
		return sw_tensor_keep(x->inputs[port->leaf]);
	sw_tensor *at = &x->crossing[port->value];
	if (!at->buffer) {
		sw_program_inputs(step->program, step->program->entry, &arena, &leaves);
		check(x, sw_tensor_new(sw_value_shape(step->program, leaves[i]), true, at, &err),
		      &err);
		sw_arena_clear(&arena);
	}
	return sw_tensor_keep(*at);
}

static void run_stage(step_runner *x, int32_t s)
{
	const sw_stage_step *step = &x->steps[s];
	sw_tensor *in = sw_alloc(sizeof(sw_tensor) * (step->n_inputs + 1)),
		  *out = sw_alloc(sizeof(sw_tensor) * (step->n_results + 1));
	sw_error err;
	for (uint32_t i = 0; i < step->n_inputs; i++)
		in[i] = find_input(x, step, i);
	check(x, sw_interpret(x->interpreters[s], in, step->n_inputs, out, step->n_results, &err),
	      &err);
	for (uint32_t i = 0; i < step->n_results; i++) {
		const sw_stage_port *port = &step->results[i];
		put(port->kind == SW_PORT_WHOLE ? &x->results[port->leaf]
		                                : &x->crossing[port->value],
		    out[i]);
	}
	free(out);
	free(in);
}

static void steps_compute_the_same(void **state)
{
	(void)state;
	for (size_t i = 0; i < SW_COUNT(fixtures); i++)
		for (int32_t d = 2; d <= fixtures[i].most_stages; d++) {
			step_runner x;
			runner_init(&x, i, d);
			/* Forward, backward, and the rounds behind the loop. */
			for (int32_t k = 0; k < 2 + x.t.stages.n_rounds; k++)
				for (int32_t s = 0; s < 2 * d - 1; s++)
					run_stage(&x, s < d ? s : 2 * d - 2 - s);
			sw_tensor *expected = staged_run_whole(&x.t);
			staged_assert_same(&x.t, expected, x.results, "as steps");
			staged_drop(&x.t, expected);
			runner_clear(&x);
		}
}

/* ---- the steps divide the ops ------------------------------------------------------------ */

/* The steps that compute the op. */
static int32_t count_steps(const step_runner *x, sw_id id)
{
	int32_t found = 0;
	for (int32_t s = 0; s < x->t.stages.n_stages; s++)
		for (size_t i = 0; i < x->steps[s].program->ops.len; i++)
			found += x->steps[s].origins[i] == id;
	return found;
}

static void check_ops(const step_runner *x, int32_t computation)
{
	const sw_computation *c = &x->t.looped->computations.data[computation];
	for (size_t i = 0; i < c->ops.len; i++) {
		sw_id id = c->ops.data[i];
		if (x->t.stages.stage[id] >= 0 && count_steps(x, id) != 1)
			fail_msg("%s, %d stages: op %s is in %d steps", x->t.name,
			         x->t.stages.n_stages, sw_op_at(x->t.looped, id)->name,
			         count_steps(x, id));
	}
}

/* Each input that is state is state of one stage, and each result is one stage's. */
static void check_state(const step_runner *x)
{
	size_t aliases = 0, results = 0;
	for (int32_t s = 0; s < x->t.stages.n_stages; s++) {
		const sw_stage_step *step = &x->steps[s];
		sw_sidecar sidecar;
		aliases += step->program->aliases.len;
		for (uint32_t i = 0; i < step->n_results; i++)
			results += step->results[i].kind == SW_PORT_WHOLE;
		sw_stage_step_sidecar(step, &x->t.stages, &x->t.sidecar, &sidecar);
		for (size_t i = 0; i < step->program->aliases.len; i++) {
			sw_alias alias = step->program->aliases.data[i];
			assert_int_equal(sidecar.outputs[alias.output].input, alias.input);
			assert_int_equal(sidecar.outputs[alias.output].role,
			                 sidecar.inputs[alias.input].role);
		}
		sw_sidecar_clear(&sidecar);
	}
	assert_int_equal(aliases, x->t.looped->aliases.len);
	assert_int_equal(results, sw_entry(x->t.looped)->results.len);
}

static void steps_divide_the_ops(void **state)
{
	(void)state;
	for (size_t i = 0; i < SW_COUNT(fixtures); i++) {
		step_runner x;
		runner_init(&x, i, 2);
		check_ops(&x, x.t.stages.body);
		check_ops(&x, x.t.looped->entry);
		check_state(&x);
		for (int32_t s = 0; s < 2; s++)
			run_stage(&x, s);
		runner_clear(&x);
	}
}

static size_t count_kinds(staged *t)
{
	enum { STAGES = 10 };
	sw_stage_step steps[STAGES];
	size_t kinds = 0;
	for (int32_t s = 0; s < STAGES; s++) {
		sw_error err;
		bool is_new = true;
		assert_int_equal(sw_stage_step_init(&steps[s], &t->stages, s, &err), SW_OK);
		for (int32_t i = 0; i < s && is_new; i++)
			is_new = !sw_program_equal(steps[i].program, steps[s].program, &err);
		kinds += is_new;
	}
	for (int32_t s = 0; s < STAGES; s++)
		sw_stage_step_clear(&steps[s]);
	return kinds;
}

/* Steps of stages that do the same are the same program, so that they are planned once: constants
 * and masks that all layers share do not stand where they were computed in the whole program. */
static void stages_of_like_layers_are_alike(void **state)
{
	(void)state;
	staged t;
	staged_init(&t, "llama3-8b", 2, 10);
	assert_true(t.found);
	assert_true(count_kinds(&t) <= 4);
	staged_clear(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(steps_compute_the_same),
		cmocka_unit_test(steps_divide_the_ops),
		cmocka_unit_test(stages_of_like_layers_are_alike),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
