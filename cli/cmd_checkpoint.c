#include "cli.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "run/run_stages.h"

/* ---- listing ---------------------------------------------------------------------------- */

static void add_shape(sw_table *table, sw_shape shape)
{
	sw_text text = {0};
	sw_shape_print(shape, &text);
	sw_table_cell(table, "%s", text.data);
	sw_text_clear(&text);
}

static double total_bytes(const sw_checkpoint *saved)
{
	double bytes = 0;
	for (size_t i = 0; i < saved->tensors.len; i++)
		bytes += (double)sw_shape_bytes(saved->tensors.data[i].shape);
	return bytes;
}

static void describe(const sw_checkpoint *saved, sw_text *text)
{
	static const char *const headings[] = {"tensor", "shape", "bytes", "parts"};
	sw_table table;
	if (saved->has_step)
		sw_text_addf(text, "step       %" PRId64 ", seed %" PRIu64 "\n", saved->step,
		             saved->seed);
	else
		sw_text_add(text, "step       none: initial values\n");
	sw_text_addf(text, "tensors    %zu in %zu file%s, ", saved->tensors.len, saved->files.len,
	             saved->files.len == 1 ? "" : "s");
	sw_text_add_bytes(text, total_bytes(saved));
	sw_text_add(text, "\n\n");
	sw_table_init(&table, SW_COUNT(headings), headings);
	for (size_t i = 0; i < saved->tensors.len; i++) {
		const sw_saved_tensor *tensor = &saved->tensors.data[i];
		sw_table_cell(&table, "%s", tensor->name);
		add_shape(&table, tensor->shape);
		sw_table_cell_number(&table, sw_text_add_bytes,
		                     (double)sw_shape_bytes(tensor->shape));
		sw_table_cell(&table, "%zu", tensor->n_parts);
	}
	sw_table_add_to(&table, text);
	sw_table_clear(&table);
}

static json_t *list_json(const sw_checkpoint *saved)
{
	json_t *tensors = json_object();
	for (size_t i = 0; i < saved->tensors.len; i++) {
		const sw_saved_tensor *tensor = &saved->tensors.data[i];
		sw_text shape = {0};
		sw_shape_print(tensor->shape, &shape);
		json_object_set_new(tensors, tensor->name,
		                    json_pack("{s:s, s:I, s:I}", "shape", shape.data, "bytes",
		                              (json_int_t)sw_shape_bytes(tensor->shape), "parts",
		                              (json_int_t)tensor->n_parts));
		sw_text_clear(&shape);
	}
	json_t *step = saved->has_step ? json_integer(saved->step) : json_null();
	return json_pack("{s:o, s:I, s:I, s:o}", "step", step, "seed", (json_int_t)saved->seed,
	                 "files", (json_int_t)saved->files.len, "tensors", tensors);
}

static sw_status list(cli *c, const sw_checkpoint *saved, sw_error *err)
{
	sw_text text = {0};
	SW_TRY(sw_checkpoint_check_contents(saved, err));
	describe(saved, &text);
	cli_print(c, &text);
	c->result = list_json(saved);
	return SW_OK;
}

/* ---- comparing -------------------------------------------------------------------------- */

typedef struct checkpoint_diff {
	sw_table table;
	json_t *rows;
	int64_t equal, different;
} checkpoint_diff;

static void add_difference(checkpoint_diff *k, const char *name, double relative, const char *what)
{
	k->different++;
	sw_table_cell(&k->table, "%s", name);
	if (what)
		sw_table_cell(&k->table, "%s", what);
	else
		sw_table_cell(&k->table, "%.2e", relative);
	json_t *row = what ? json_string(what) : cli_json_real(relative);
	json_object_set_new(k->rows, name, row);
}

static sw_status whole(const sw_saved_tensor *saved, sw_tensor *tensor, sw_error *err)
{
	SW_TRY(sw_tensor_new(saved->shape, false, tensor, err));
	sw_saved_whole(saved, sw_tensor_data(*tensor));
	return SW_OK;
}

static sw_status compare_tensors(checkpoint_diff *k, const sw_saved_tensor *a,
                                 const sw_saved_tensor *b, sw_error *err)
{
	sw_tensor x = {0}, y = {0};
	if (!b || !sw_shape_equal(a->shape, b->shape)) {
		add_difference(k, a->name, 0, b ? "other type or shape" : "only in the first");
		return SW_OK;
	}
	sw_status status = whole(a, &x, err);
	if (status == SW_OK)
		status = whole(b, &y, err);
	if (status == SW_OK) {
		sw_difference d = sw_tensor_compare(x, y);
		if (d.first_bad < 0)
			k->equal++;
		else
			add_difference(k, a->name, d.relative, NULL);
	}
	sw_tensor_drop(&x);
	sw_tensor_drop(&y);
	return status;
}

static sw_status compare_all(checkpoint_diff *k, const sw_checkpoint *a, const sw_checkpoint *b,
                             sw_error *err)
{
	for (size_t i = 0; i < a->tensors.len; i++) {
		const sw_saved_tensor *tensor = &a->tensors.data[i];
		SW_TRY(compare_tensors(k, tensor, sw_checkpoint_get(b, tensor->name), err));
	}
	for (size_t i = 0; i < b->tensors.len; i++)
		if (!sw_checkpoint_get(a, b->tensors.data[i].name))
			add_difference(k, b->tensors.data[i].name, 0, "only in the second");
	return SW_OK;
}

/* Say what differs; SW_NO if anything does. */
static sw_status report(cli *c, checkpoint_diff *k, sw_error *err)
{
	sw_text text = {0};
	if (k->different)
		sw_table_add_to(&k->table, &text);
	sw_text_addf(&text, "%" PRId64 " tensor%s equal, %" PRId64 " different\n", k->equal,
	             k->equal == 1 ? "" : "s", k->different);
	cli_print(c, &text);
	c->result = json_pack("{s:I, s:I, s:O}", "equal", (json_int_t)k->equal, "different",
	                      (json_int_t)k->different, "differences", k->rows);
	return k->different ? sw_fail_at(err, SW_NO, c->argument, 0, 0,
	                                 "%" PRId64 " tensors differ from those of %s",
	                                 k->different, c->values.diff)
	                    : SW_OK;
}

static sw_status compare(cli *c, const sw_checkpoint *saved, sw_error *err)
{
	static const char *const headings[] = {"tensor", "difference"};
	sw_checkpoint other;
	SW_TRY(sw_checkpoint_read(c->values.diff, &other, err));
	checkpoint_diff k = {.rows = json_object()};
	sw_table_init(&k.table, SW_COUNT(headings), headings);
	sw_status status = compare_all(&k, saved, &other, err);
	if (status == SW_OK)
		status = report(c, &k, err);
	sw_table_clear(&k.table);
	json_decref(k.rows);
	sw_checkpoint_close(&other);
	return status;
}

/* ---- writing ---------------------------------------------------------------------------- */

static void note_cut(const cli *c, const sw_checkpoint *saved, int64_t ranks)
{
	cli_note(c, "%s/" SW_CHECKPOINT_NAME ": cut for %" PRId64 " ranks", c->values.output,
	         saved->step, ranks);
}

static sw_status recut_for_stages(const cli *c, sw_error *err)
{
	sw_pipelined *plan = NULL;
	sw_checkpoint saved;
	SW_TRY(sw_pipelined_load(c->values.to, &plan, err));
	const sw_sidecar *sidecar = sw_pipelined_sidecar(plan);
	sw_status status = sw_checkpoint_open(c->argument, plan->canonical, sidecar, &saved, err);
	if (status == SW_OK) {
		status = sw_checkpoint_recut_stages(&saved, plan, sidecar, c->values.output, err);
		if (status == SW_OK)
			note_cut(c, &saved, plan->cluster->n_devices);
		sw_checkpoint_close(&saved);
	}
	sw_pipelined_free(plan);
	return status;
}

static sw_status recut(cli *c, sw_error *err)
{
	cli_plan loaded;
	sw_checkpoint saved;
	if (sw_pipelined_is_file(c->values.to))
		return recut_for_stages(c, err);
	SW_TRY(cli_load_plan(c, c->values.to, true, &loaded, err));
	sw_status status =
		sw_checkpoint_open(c->argument, sw_plan_serial(loaded.plan), &loaded.sidecar, &saved, err);
	if (status == SW_OK) {
		status = sw_checkpoint_recut(&saved, loaded.plan, &loaded.sidecar, c->values.output,
		                             err);
		if (status == SW_OK)
			note_cut(c, &saved, loaded.plan->cluster->n_devices);
		sw_checkpoint_close(&saved);
	}
	cli_plan_clear(&loaded);
	return status;
}

static sw_status check_folder(const cli *c, sw_error *err)
{
	struct stat info;
	const char *path = c->values.output;
	if (!path)
		return sw_fail(err, SW_ERR_INPUT, "--to PLAN needs -o DIR, where it is written");
	return stat(path, &info) == 0 && S_ISDIR(info.st_mode)
	               ? SW_OK
	               : sw_fail_at(err, SW_ERR_INPUT, path, 0, 0,
	                            "--to PLAN needs a folder that exists: mkdir it first");
}

/* ---- the command ------------------------------------------------------------------------ */

static sw_status look(cli *c, sw_error *err)
{
	sw_checkpoint saved;
	const cli_values *v = &c->values;
	SW_TRY(sw_checkpoint_read(c->argument, &saved, err));
	sw_status status;
	if (v->diff)
		status = compare(c, &saved, err);
	else if (v->output)
		status = sw_error_in_file(err, sw_checkpoint_join(&saved, v->output, err),
		                          v->output);
	else
		status = list(c, &saved, err);
	sw_checkpoint_close(&saved);
	return status;
}

static sw_status run(cli *c, sw_error *err)
{
	const cli_values *v = &c->values;
	if (v->diff && (v->output || v->to))
		return sw_fail(err, SW_ERR_INPUT,
		               "--diff compares and writes nothing: leave it, or -o and --to, out");
	SW_TRY(cli_take_newest(c, &c->argument, err));
	if (v->diff)
		SW_TRY(cli_take_newest(c, &c->values.diff, err));
	if (v->to)
		SW_TRY(check_folder(c, err));
	else
		SW_TRY(cli_check_writable(c, v->output, err));
	return v->to ? recut(c, err) : look(c, err);
}

static const char *const options[] = {"--diff", "--to", "-o", NULL};
const cli_command cli_checkpoint = {
	.name = "checkpoint",
	.argument = "FILE|DIR",
	.summary = "what run --save kept: list, compare, join into one file, cut anew",
	.details = "Without options the contents are checked and listed. DIR is a checkpoint, a "
		   "folder of --save (its newest one), or any folder with a "
		   "model.safetensors.index.json. -o FILE joins all parts into one safetensors "
		   "file; --to PLAN -o DIR writes DIR/step-N as that plan's ranks would.",
	.example = "shardwright checkpoint kept/step-200 -o model.safetensors",
	.options = options,
	.run = run,
};
