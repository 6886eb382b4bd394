/* How the table of tokens is split in bench/measured. */
#include "test.h"

#include "../../bench/measured/predict.c"

/* Not of these tests. */
int64_t play_memory(const configuration *c, const device_program *d, const sw_cluster *cluster,
                    bool *fits)
{
	(void)c;
	(void)d;
	(void)cluster;
	return *fits = true;
}
double zero1_seconds(const configuration *c, const device_program *d, const sw_cluster *cluster)
{
	(void)c;
	(void)d;
	(void)cluster;
	return 0;
}
double ddp_seconds(const configuration *c, const device_program *d, const sw_cluster *cluster)
{
	(void)c;
	(void)d;
	(void)cluster;
	return 0;
}

void add_weights(device_program *d, const sw_sidecar *sidecar, const sw_stage_step *step)
{
	(void)d;
	(void)sidecar;
	(void)step;
}

void configuration_strategy(const configuration *c, sw_plan_strategy *strategy)
{
	*strategy = (sw_plan_strategy){SW_PLAN_MEGATRON, .size = {c->tp}, .sequence = true};
}

/* Return the elements of the largest result of an all-gather. */
static int64_t most_gathered(const sw_program *p)
{
	int64_t most = 0;
	for (size_t i = 0; i < p->ops.len; i++)
		if (p->ops.data[i].opcode == SW_OP_ALL_GATHER)
			most = SW_MAX(most, sw_shape_elements(sw_value_shape(
						    p, p->ops.data[i].first_result)));
	return most;
}

/* Each copy of the model looks up its own tokens, and sums their gradients; so nothing is gathered
 * that is larger than a copy's activations. */
static void copies_look_up_their_own_tokens(void **state)
{
	(void)state;
	subject s = {.path = SW_SOURCE_DIR "/tests/programs/llama-gqa-tiny.hlo.gz"};
	sw_cluster cluster;
	sw_error err;
	sw_pin pins[MAX_VOCABULARY_PINS];
	prediction p;
	const configuration c = {.gpus = 4, .dp = 2, .tp = 2, .pp = 1, .microbatches = 1};
	assert_int_equal(sw_read_program(s.path, &s.program, &err), SW_OK);
	assert_int_equal(sw_sidecar_find(s.path, s.program, &s.sidecar, &err), SW_OK);
	assert_int_equal(
		sw_cluster_read(SW_SOURCE_DIR "/clusters/h100-rented.yaml", &cluster, &err), SW_OK);
	assert_int_equal(sw_cluster_take(&cluster, "4", &err), SW_OK);
	assert_int_equal(pin_vocabulary(&s, &c, pins), MAX_VOCABULARY_PINS);
	const sw_op *lookup =
		lookup_of(s.program, input_named(&s, "params.embed", &pins[0].pattern));
	int64_t rows = sw_shape_elements(sw_value_shape(s.program, lookup->first_result));
	sw_program *scheduled = predict(&s, &cluster, &c, &p);
	assert_true(p.supported);
	assert_non_null(scheduled);
	assert_true(most_gathered(scheduled) <= rows / c.dp);
	sw_program_free(scheduled);
	sw_program_free(s.program);
	sw_sidecar_clear(&s.sidecar);
	sw_cluster_clear(&cluster);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(copies_look_up_their_own_tokens)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
