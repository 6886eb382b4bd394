/* Explain: well-known plans are described in well-known words, sums add up, and the predicted price
 * of an avoided collective is compared with what the changed plan measures. */
#include "explain/internal.h"
#include "planned/planned.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct explained {
	planned p;
	sw_program *local;
	sw_origins origins;
	sw_explained what;
	json_t *json;
} explained;

static void explain(explained *e)
{
	sw_error err = {0};
	check(sw_partition_with_origins(e->p.plan, &e->local, &e->origins, &err), &err);
	e->what = (sw_explained){e->p.plan, e->local, &e->origins, &e->p.sidecar};
	e->json = sw_plan_explain(&e->what);
}

static void open_explained(const char *fixture, const char *cluster, const char *strategy,
                           explained *e)
{
	*e = (explained){0};
	open_fixture(fixture, cluster, &e->p);
	make_plan(&e->p, strategy);
	explain(e);
}

static void close_explained(explained *e)
{
	json_decref(e->json);
	sw_origins_clear(&e->origins);
	sw_program_free(e->local);
	close_planned(&e->p);
}

static const char *text_at(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));
	return text ? text : "";
}

static const json_t *block(const explained *e, const char *name)
{
	const json_t *b;
	size_t i;
	json_array_foreach(json_object_get(e->json, "blocks"), i,
	                   b) if (!strcmp(text_at(b, "name"), name)) return b;
	fail_msg("there is no block '%s'", name);
	return NULL;
}

static const json_t *line(const explained *e, const char *in, const char *name)
{
	const json_t *l;
	size_t i;
	json_array_foreach(json_object_get(block(e, in), "lines"), i,
	                   l) if (!strcmp(text_at(l, "name"), name)) return l;
	fail_msg("there is no line '%s'", name);
	return NULL;
}

/* ---- words ------------------------------------------------------------------------------ */

static void well_known_strategies_are_named(void **state)
{
	static const struct {
		const char *strategy;
		int axis;
		const char *as;
	} cases[] = {
		{"dp", 0, "as dp (batch split, parameters whole)"},
		{"zero1", 0, "as ZeRO-1 (batch split; optimizer state split)"},
		{"zero3", 0,
	         "as ZeRO-3 (batch split; parameters and optimizer state split at rest)"},
		{"megatron:tp=2", 0, "as dp (batch split, parameters whole)"},
		{"megatron:tp=2", 1, "as Megatron (output split, then contraction split)"},
	};
	(void)state;
	for (size_t i = 0; i < SW_COUNT(cases); i++) {
		explained e;
		open_explained("gpt-tiny", "local-2x2.yaml", cases[i].strategy, &e);
		const json_t *all = json_array_get(json_object_get(e.json, "parallelism"),
		                                   (size_t)cases[i].axis);
		assert_string_equal(text_at(all, "as"), cases[i].as);
		const json_t *layers = json_array_get(json_object_get(block(&e, "blocks.*"), "as"),
		                                      (size_t)cases[i].axis);
		assert_string_equal(text_at(layers, "as"), cases[i].as);
		close_explained(&e);
	}
}

/* Check the fields of a layer's lines; "" expects that a field is missing. */
static void a_layer_describes_its_splits_sums_and_gathers(void **state)
{
	static const struct {
		const char *strategy, *name, *key, *words;
	} cases[] = {
		{"dp", "blocks.*.mlp.up.w", "split", "batch split over x"},
		{"dp", "blocks.*.mlp.up.w", "at_rest", "whole"},
		{"dp", "blocks.*.mlp.up.w", "gradient",
	         "partial sum over x, ended by all-reduce over x"},
		{"dp", "blocks.*.mlp.up.w", "gathered_forward", ""},
		{"zero1", "blocks.*.mlp.up.w", "at_rest", "whole"},
		{"zero1", "blocks.*.mlp.up.w", "moments", "dimension 0 split over x"},
		{"zero1", "blocks.*.mlp.up.w", "gradient",
	         "partial sum over x, ended by reduce-scatter over x"},
		{"zero1", "blocks.*.mlp.up.w", "update_moved", "all-gather over x"},
		{"zero3", "blocks.*.mlp.up.w", "at_rest", "dimension 0 split over x"},
		{"zero3", "blocks.*.mlp.up.w", "gathered_forward",
	         "all-gather over x, cached for the backward pass"},
		{"zero3", "blocks.*.mlp.up.w", "update_moved", ""},
		{"megatron:tp=2", "blocks.*.attn.qkv.w", "split",
	         "batch split over x, output (heads) split over y"},
		{"megatron:tp=2", "blocks.*.attn.out.w", "split",
	         "batch split over x, contraction (heads) split over y"},
		{"megatron:tp=2", "blocks.*.attn.out.w", "result",
	         "partial sum over y, ended by all-reduce over y"},
		{"megatron:tp=2", "blocks.*.attn.out.w", "at_rest",
	         "dimension 0 (heads) split over y"},
		{"megatron:tp=2", "blocks.*.mlp.up.w", "result", ""},
		{"megatron:tp=2", "blocks.*.mlp.up.w", "backward_result",
	         "partial sum over y, ended by all-reduce over y"},
		{"megatron:tp=2", "blocks.*.mlp.down.w", "backward_split",
	         "batch split over x, output split over y"},
	};
	(void)state;
	for (size_t i = 0; i < SW_COUNT(cases); i++) {
		explained e;
		open_explained("gpt-tiny", "local-2x2.yaml", cases[i].strategy, &e);
		assert_string_equal(text_at(line(&e, "blocks.*", cases[i].name), cases[i].key),
		                    cases[i].words);
		close_explained(&e);
	}
}

/* A loop over stacked layers is described too: gradients come out of the loop of the backward
 * pass. */
static void a_scanned_layer_is_described_too(void **state)
{
	explained e;
	(void)state;
	open_explained("gpt-tiny-scan", "local-2x2.yaml", "megatron:tp=2", &e);
	const json_t *up = line(&e, "blocks", "blocks.mlp.up.w");
	assert_non_null(strstr(text_at(up, "split"), "output split over y"));
	assert_non_null(strstr(text_at(up, "backward_split"), "contraction split over y"));
	assert_non_null(
		strstr(text_at(up, "gradient"), "partial sum over x, ended by all-reduce over x"));
	close_explained(&e);
}

/* With rematerialisation, or if memory is short, weights are gathered again, and explain says
 * so. */
static void regathering_is_described(void **state)
{
	explained e = {0};
	sw_error err = {0};
	(void)state;
	open_fixture("gpt-tiny", "local-2x2.yaml", &e.p);
	make_plan(&e.p, "zero3");
	check(try_plan(&e.p, "zero3", e.p.plan->predicted.peak_bytes * 9 / 10, &err), &err);
	assert_true(e.p.plan->regathered.len > 0);
	explain(&e);
	assert_string_equal(text_at(line(&e, "blocks.*", "blocks.*.mlp.up.w"), "gathered_forward"),
	                    "all-gather over x");
	assert_string_equal(text_at(line(&e, "blocks.*", "blocks.*.mlp.up.w"), "gathered_backward"),
	                    "all-gather over x");
	close_explained(&e);
}

static void similar_layers_are_one_block(void **state)
{
	static const struct {
		const char *fixture, *name;
		size_t members;
	} cases[] = {
		{"gpt-tiny", "blocks.*", 2},
		{"llama-gqa-tiny", "blocks.*", 2},
		{"lstm-lm-tiny", "layers.*", 2},
		{"gpt-tiny-scan", "blocks", 1}, /* the loop runs several of them */
	};
	(void)state;
	for (size_t i = 0; i < SW_COUNT(cases); i++) {
		explained e;
		open_explained(cases[i].fixture, "local-2x2.yaml", "dp", &e);
		const json_t *members = json_object_get(block(&e, cases[i].name), "members");
		assert_int_equal(json_array_size(members), cases[i].members);
		close_explained(&e);
	}
}

/* Where no names tell layers apart, layers are found by repetition. */
static void layers_without_names_are_found(void **state)
{
	explained e = {0};
	char *text = write_blocks(3, 8, 16, 32, 4);
	(void)state;
	open_text(text, "local-2x2.yaml", &e.p);
	for (uint32_t i = 0; i < e.p.sidecar.n_inputs; i++)
		e.p.sidecar.inputs[i].name =
			sw_arena_printf(&e.p.sidecar.arena, "Arg_%u.%u", i, i + 1);
	make_plan(&e.p, "dp");
	explain(&e);
	const json_t *b;
	size_t i, members = 0;
	json_array_foreach(json_object_get(e.json, "blocks"), i,
	                   b) if (!strcmp(text_at(b, "name"), "layers.*")) members +=
		json_array_size(json_object_get(b, "members"));
	assert_int_equal(members, 3);
	close_explained(&e);
	free(text);
}

/* An op without a parameter is named by the scope in which it was written. */
static void ops_without_parameters_are_named_by_their_scope(void **state)
{
	static const char text[] =
		"HloModule m\n"
		"ENTRY main {\n"
		"  q = f32[8,16,32] parameter(0)\n"
		"  k = f32[8,16,32] parameter(1)\n"
		"  ROOT s = f32[8,16,16] dot(q, k), lhs_batch_dims={0}, "
		"lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={2}, "
		"metadata={op_name=\"jit(step)/jvp(net)/layer_0/attn/scores\"}\n"
		"}\n";
	explained e = {0};
	sw_text label = {0};
	sw_anatomy anatomy;
	(void)state;
	open_text(text, "local-2x2.yaml", &e.p);
	make_plan(&e.p, "dp");
	explain(&e);
	sw_anatomy_init(&anatomy, &e.what);
	sw_anatomy_label(&anatomy, sw_entry(e.p.plan->program)->results.data[0], &label);
	assert_string_equal(label.data, "layer_0/attn/scores");
	sw_text_clear(&label);
	sw_anatomy_clear(&anatomy);
	close_explained(&e);
}

/* ---- sums ------------------------------------------------------------------------------- */

static const struct {
	const char *fixture, *cluster, *strategy;
} many[] = {
	{"gpt-tiny", "local-2x2.yaml", "auto"},
	{"gpt-tiny", "local-2x4.yaml", "zero1"},
	{"gpt-tiny-scan", "local-2x2.yaml", "zero3"},
	{"moe-gshard-tiny", "local-2x2.yaml", "auto"},
	{"resnet-tiny", "local-1x4.yaml", "dp"},
	{"t5-tiny", "local-2x2.yaml", "megatron:tp=2"},
	{"mlp-clip", "unequal-1-4.yaml", "auto"},
	/* devices that fuse */
	{"gpt-tiny", "h100-xla.yaml", "dp"},
	{"gpt-tiny", "a100-8x8.yaml", "zero3"},
	{"resnet-tiny", "a100-8x8.yaml", "dp"},
};

static void tensors_at_the_peak_add_up_to_it(void **state)
{
	(void)state;
	for (size_t i = 0; i < SW_COUNT(many); i++) {
		explained e;
		open_explained(many[i].fixture, many[i].cluster, many[i].strategy, &e);
		const json_t *memory = json_object_get(e.json, "memory"), *tensor;
		int64_t sum = json_integer_value(json_object_get(memory, "unused_bytes"));
		assert_true(sum >= 0 && sum < e.p.plan->predicted.peak_bytes / 4);
		size_t k;
		json_array_foreach(json_object_get(memory, "tensors"), k, tensor) sum +=
			json_integer_value(json_object_get(tensor, "bytes"));
		assert_int_equal(sum, e.p.plan->predicted.peak_bytes);
		assert_int_equal(json_integer_value(json_object_get(memory, "peak_bytes")), sum);
		close_explained(&e);
	}
}

/* All parameters and moments are alive all the time. */
static void state_is_at_the_peak_with_its_bytes(void **state)
{
	explained e;
	int64_t parameters = 0;
	const json_t *tensor;
	size_t k;
	(void)state;
	open_explained("gpt-tiny", "local-2x2.yaml", "dp", &e);
	json_array_foreach(json_object_get(json_object_get(e.json, "memory"), "tensors"), k,
	                   tensor) if (!strcmp(text_at(tensor, "kind"), "parameter")) parameters +=
		json_integer_value(json_object_get(tensor, "bytes"));
	int64_t expected = role_bytes(&e.p, SW_ROLE_PARAMETER);
	assert_true(parameters >= expected &&
	            /* each is rounded up to whole cache lines */
	            parameters <= expected + expected / 10);
	close_explained(&e);
}

static void collectives_add_up_to_the_prediction(void **state)
{
	(void)state;
	for (size_t i = 0; i < SW_COUNT(many); i++) {
		explained e;
		double seconds = 0;
		int64_t count = 0, payload = 0;
		const json_t *c;
		size_t k;
		open_explained(many[i].fixture, many[i].cluster, many[i].strategy, &e);
		json_array_foreach(json_object_get(e.json, "communication"), k, c)
		{
			int64_t times = json_integer_value(json_object_get(c, "count"));
			count += times;
			payload += times * json_integer_value(json_object_get(c, "payload_bytes"));
			seconds += json_number_value(json_object_get(c, "seconds"));
		}
		assert_int_equal(count, e.p.plan->predicted.collectives);
		assert_int_equal(payload, e.p.plan->predicted.payload_bytes);
		assert_true(fabs(seconds - e.p.plan->predicted.communication_s) <=
		            1e-9 + 1e-6 * seconds);
		close_explained(&e);
	}
}

/* ---- avoiding --------------------------------------------------------------------------- */

/* The price that sw_avoid predicts for each redistribution is what the changed plan measures. */
static void the_price_of_avoiding_is_what_the_changed_plan_measures(void **state)
{
	static const char *const strategies[] = {"dp", "zero1", "zero3", "megatron:tp=2", "auto"};
	int avoided = 0;
	(void)state;
	for (size_t s = 0; s < SW_COUNT(strategies); s++) {
		explained e;
		sw_anatomy anatomy;
		sw_error err = {0};
		open_explained("gpt-tiny", "local-2x2.yaml", strategies[s], &e);
		sw_anatomy_init(&anatomy, &e.what);
		sw_avoider *avoider = sw_avoider_new(&e.what, &anatomy);
		sw_program_cost before = e.p.plan->predicted;
		for (size_t i = 0; i < e.origins.items.len; i += 5) {
			sw_avoidance best;
			sw_program_cost cost;
			sw_text words = {0};
			const sw_origin *o = &e.origins.items.data[i];
			if (o->value == SW_NO_ID || !sw_describe_move(&e.what, i, &words)) {
				sw_text_clear(&words);
				continue;
			}
			sw_text_clear(&words);
			sw_avoid(avoider, o, &best);
			if (!best.possible)
				continue;
			planned other;
			open_fixture("gpt-tiny", "local-2x2.yaml", &other);
			make_plan(&other, strategies[s]);
			assert_true(sw_avoidance_apply(&best, other.plan));
			check(sw_plan_verify(other.plan, &err), &err);
			check(sw_partition_measure(other.plan, &cost, &err), &err);
			assert_int_equal(cost.payload_bytes - before.payload_bytes,
			                 best.payload_bytes);
			double seconds = cost.step_time_s - before.step_time_s;
			/* ^a path is priced with the copies around its moves, which are no kernels
			 * if they vanish */
			if (fabs(seconds - best.seconds) > 1e-5 + 0.05 * fabs(seconds))
				fail_msg("%s, redistribution %zu: %g s predicted, %g s measured",
				         strategies[s], i, best.seconds, seconds);
			avoided++;
			close_planned(&other);
		}
		sw_avoider_free(avoider);
		sw_anatomy_clear(&anatomy);
		close_explained(&e);
	}
	assert_true(avoided > 20);
}

/* A gathered weight could be replicated at rest: ZeRO-3 without its split is ZeRO-1, for that
 * weight. */
static void a_gathered_weight_could_be_replicated_at_rest(void **state)
{
	explained e;
	const json_t *c;
	size_t k, found = 0;
	(void)state;
	open_explained("gpt-tiny", "local-2x2.yaml", "zero3", &e);
	json_array_foreach(json_object_get(e.json, "communication"), k, c)
	{
		const json_t *instead = json_object_get(c, "instead");
		if (strcmp(text_at(c, "collective"), "all-gather") || !json_is_object(instead))
			continue;
		assert_non_null(strstr(text_at(instead, "choice"), " at rest: whole"));
		assert_true(json_integer_value(json_object_get(instead, "memory_bytes")) > 0);
		found++;
	}
	assert_true(found > 0);
	close_explained(&e);
}

/* ---- printed, and compared -------------------------------------------------------------- */

static void tables_are_cut_unless_whole_ones_are_requested(void **state)
{
	explained e;
	sw_text part = {0}, whole = {0};
	(void)state;
	open_explained("gpt-tiny", "local-2x2.yaml", "dp", &e);
	sw_plan_explain_print(e.json, false, &part);
	sw_plan_explain_print(e.json, true, &whole);
	assert_non_null(strstr(part.data, "-v shows"));
	assert_null(strstr(whole.data, "-v shows"));
	assert_true(whole.len > part.len);
	sw_text_clear(&part);
	sw_text_clear(&whole);
	close_explained(&e);
}

static void a_plan_equals_itself(void **state)
{
	explained e;
	sw_text text = {0};
	(void)state;
	open_explained("gpt-tiny", "local-2x2.yaml", "megatron:tp=2", &e);
	json_t *diff = sw_plan_diff(e.json, e.json);
	assert_true(json_is_true(json_object_get(diff, "same")));
	sw_plan_diff_print(diff, false, &text);
	assert_string_equal(text.data, "the same\n");
	sw_text_clear(&text);
	json_decref(diff);
	close_explained(&e);
}

static const json_t *entry_with(const json_t *list, const char *key, const char *value,
                                const char *key2, const char *value2)
{
	const json_t *entry;
	size_t i;
	json_array_foreach(list, i, entry) if (!strcmp(text_at(entry, key), value) &&
	                                       !strcmp(text_at(entry, key2), value2)) return entry;
	fail_msg("no entry with %s %s, %s %s", key, value, key2, value2);
	return NULL;
}

static void differences_of_two_plans_are_listed(void **state)
{
	explained dp, zero1;
	sw_text text = {0};
	(void)state;
	open_explained("gpt-tiny", "local-2x2.yaml", "dp", &dp);
	open_explained("gpt-tiny", "local-2x2.yaml", "zero1", &zero1);
	json_t *diff = sw_plan_diff(dp.json, zero1.json);
	assert_true(json_is_false(json_object_get(diff, "same")));
	const json_t *axis = entry_with(json_object_get(diff, "axes"), "axis", "x", "axis", "x");
	assert_non_null(strstr(text_at(axis, "there"), "ZeRO-1"));
	const json_t *change = entry_with(json_object_get(diff, "blocks"), "name",
	                                  "blocks.*.mlp.up.w", "part", "gradient");
	assert_int_equal(json_array_size(json_object_get(change, "members")), 2);
	assert_non_null(strstr(text_at(change, "here"), "all-reduce"));
	assert_non_null(strstr(text_at(change, "there"), "reduce-scatter"));
	/* each of four devices keeps a quarter of each moment */
	const json_t *moment = entry_with(json_object_get(diff, "memory"), "name",
	                                  "opt.mu.blocks.*.mlp.up.w", "kind", "optimizer state");
	assert_true(json_number_value(json_object_get(moment, "here")) ==
	            4 * json_number_value(json_object_get(moment, "there")));
	sw_plan_diff_print(diff, false, &text);
	assert_non_null(strstr(text.data, "ZeRO-1"));
	sw_text_clear(&text);
	json_decref(diff);
	close_explained(&dp);
	close_explained(&zero1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(well_known_strategies_are_named),
		cmocka_unit_test(a_layer_describes_its_splits_sums_and_gathers),
		cmocka_unit_test(a_scanned_layer_is_described_too),
		cmocka_unit_test(regathering_is_described),
		cmocka_unit_test(similar_layers_are_one_block),
		cmocka_unit_test(layers_without_names_are_found),
		cmocka_unit_test(ops_without_parameters_are_named_by_their_scope),
		cmocka_unit_test(tensors_at_the_peak_add_up_to_it),
		cmocka_unit_test(state_is_at_the_peak_with_its_bytes),
		cmocka_unit_test(collectives_add_up_to_the_prediction),
		cmocka_unit_test(the_price_of_avoiding_is_what_the_changed_plan_measures),
		cmocka_unit_test(a_gathered_weight_could_be_replicated_at_rest),
		cmocka_unit_test(tables_are_cut_unless_whole_ones_are_requested),
		cmocka_unit_test(a_plan_equals_itself),
		cmocka_unit_test(differences_of_two_plans_are_listed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
