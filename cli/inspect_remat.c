#include "cli.h"

/* The device for estimates where no cluster is given: it moves a byte in the time of a hundred
 * floating-point operations, as accelerators do. */
static const sw_remat_device usual_device = {.flops_per_s = 100e12, .bytes_per_s = 1e12};

static void add_rows(const sw_remat_policy_list *policies, double flops, sw_text *text)
{
	static const char *const headings[] = {"policy", "peak memory", "kept for backward",
	                                       "extra FLOP"};
	sw_table table;
	sw_table_init(&table, SW_COUNT(headings), headings);
	for (size_t i = 0; i < policies->len; i++) {
		const sw_remat_policy *policy = &policies->data[i];
		sw_table_cell(&table, "%s", policy->name);
		sw_table_cell_number(&table, sw_text_add_bytes, (double)policy->peak_bytes);
		sw_table_cell_number(&table, sw_text_add_bytes, (double)policy->kept_bytes);
		sw_table_cell(&table, "%.1f%%",
		              flops > 0 ? 100 * policy->added_flops / flops : 0.0);
	}
	sw_table_add_to(&table, text);
	sw_table_clear(&table);
}

static json_t *policies_json(const sw_remat_policy_list *policies)
{
	json_t *list = json_array();
	for (size_t i = 0; i < policies->len; i++) {
		const sw_remat_policy *policy = &policies->data[i];
		json_array_append_new(list,
		                      json_pack("{s:s, s:I, s:I, s:f}", "policy", policy->name,
		                                "peak_bytes", (json_int_t)policy->peak_bytes,
		                                "kept_bytes", (json_int_t)policy->kept_bytes,
		                                "extra_flops", policy->added_flops));
	}
	return list;
}

static void describe(const sw_remat_points *points, const sw_remat_policy_list *policies,
                     sw_text *text, json_t *json)
{
	json_object_set_new(json, "rematerialisation",
	                    json_pack("{s:I, s:o}", "segments", (json_int_t)points->n_segments,
	                              "policies", policies_json(policies)));
	if (points->n_segments == 0) {
		sw_text_add(text, "\nrematerialisation: nothing to compute again was found\n");
		return;
	}
	sw_text_addf(text, "\nrematerialisation: %d segments between critical values\n",
	             points->n_segments);
	add_rows(policies, sw_program_flops(points->program), text);
}

void cli_inspect_remat(const sw_program *program, sw_text *text, json_t *json)
{
	sw_program *canonical;
	sw_remat_points points;
	sw_remat_policy_list policies;
	sw_error err;
	/* a program for several devices has no plan either */
	if (sw_rewrite_canonical(program, &canonical, &err) != SW_OK)
		return;
	sw_remat_points_init(&points, canonical);
	if (sw_remat_policies(&points, usual_device, &policies, &err) == SW_OK)
		describe(&points, &policies, text, json);
	sw_vec_clear(&policies);
	sw_remat_points_clear(&points);
	sw_program_free(canonical);
}
