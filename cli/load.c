/* Load the files on which the commands work. */
#include "cli.h"

#include <string.h>
#include <unistd.h>

#include "bound/bound.h"
#include "partition/partition.h"
#include "run/run.h"
#include "simulate/simulate.h"

/* One device, for programs that are run without a plan. Its figures have no effect: nothing is
 * planned. */
static const char one_device[] = "version: 1\n"
				 "name: one-device\n"
				 "levels:\n"
				 "  - {name: device, count: 1, latency: 1 us, bandwidth: 1 GB/s}\n"
				 "device:\n"
				 "  name: this-machine\n"
				 "  memory: 1 TiB\n"
				 "  memory_bandwidth: 10 GB/s\n"
				 "  kernel_overhead: 1 us\n"
				 "  matmul_efficiency: 1\n"
				 "  flops: {f32: 100 GFLOP/s}\n";

/* The files that are installed with the command, or those of the source tree that it was built in. */
sw_status cli_read_cluster_named(const char *path, sw_cluster *cluster, sw_error *err)
{
	static const char *const folders[] = {"../share/shardwright/clusters", "../clusters", NULL};
	char self[4096];
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
	self[SW_MAX(length, 0)] = '\0';
	return sw_cluster_read_named(path, self, folders, cluster, err);
}

sw_status cli_read_cluster(const cli *c, const char *path, sw_cluster *cluster, sw_error *err)
{
	sw_status status = cli_read_cluster_named(path, cluster, err);
	if (status || !c->values.devices)
		return status;
	status = sw_cluster_take(cluster, c->values.devices, err);
	if (status)
		sw_cluster_clear(cluster);
	return status;
}

/* A file that has been read, once: it may be a pipe. */
typedef struct contents {
	char *text;
	size_t length;
} contents;

/* Find the sidecar of a program that was read with this status; free the program after an error. */
static sw_status find_sidecar(sw_status status, const char *path, sw_program **program,
                              sw_sidecar *sidecar, sw_error *err)
{
	if (status)
		return sw_error_in_file(err, status, path);
	status = sw_sidecar_find(path, *program, sidecar, err);
	if (status) {
		sw_program_free(*program);
		*program = NULL;
	}
	return status;
}

sw_status cli_load_program(const char *path, sw_program **program, sw_sidecar *sidecar,
                           sw_error *err)
{
	return find_sidecar(sw_read_program(path, program, err), path, program, sidecar, err);
}

/* Cost a plan again after its file, program or cluster has changed; say so. */
static sw_status cost_again(cli *c, const char *path, cli_plan *loaded, sw_error *err)
{
	sw_text text = {0};
	sw_status status = sw_simulate_recost(loaded->plan, true, err);
	if (status == SW_OK) {
		sw_bound_certify(loaded->plan, &loaded->sidecar);
		sw_plan_changes_print(loaded->plan, &text);
		cli_note(c, "%s: %s", path, text.data);
		sw_vec_push(&loaded->plan->warnings,
		            sw_arena_text(&loaded->plan->arena, text.data));
	}
	sw_text_clear(&text);
	return status;
}

sw_status cli_check_move(const cli *c, sw_error *err)
{
	if (c->values.devices && !c->values.cluster)
		return sw_fail(err, SW_ERR_INPUT, "--devices goes with --cluster FILE");
	return SW_OK;
}

sw_status cli_move_plan(cli *c, const char *path, cli_plan *loaded, sw_error *err)
{
	sw_status status = cli_read_cluster(c, c->values.cluster, &loaded->other, err);
	if (status)
		return status;
	loaded->moved = true;
	status = sw_plan_move(loaded->plan, &loaded->other, err);
	if (status)
		return sw_error_in_file(err, status, c->values.cluster);
	return loaded->plan->changes ? cost_again(c, path, loaded, err) : SW_OK;
}

static sw_status load_plan(cli *c, const contents *file, const char *path, cli_plan *loaded,
                           sw_error *err)
{
	sw_status status =
		sw_plan_parse(file->text, file->length, path, &loaded->cluster, &loaded->plan, err);
	if (status)
		return sw_error_in_file(err, status, path);
	const char *program = sw_plan_find_program(path, loaded->plan->program_path, &c->arena);
	status = cli_check_spared(c, program, err);
	if (status == SW_OK)
		status = sw_plan_find_sidecar(loaded->plan, program, &loaded->sidecar, err);
	bool have_sidecar = status == SW_OK;
	if (status == SW_OK && loaded->plan->changes)
		status = cost_again(c, path, loaded, err);
	if (status && have_sidecar)
		sw_sidecar_clear(&loaded->sidecar);
	if (status) {
		sw_plan_free(loaded->plan);
		sw_cluster_clear(&loaded->cluster);
	}
	return status;
}

static sw_status load_as_plan(const contents *file, const char *path, cli_plan *loaded,
                              sw_error *err)
{
	sw_program *program;
	sw_status status = sw_read_program_text(file->text, file->length, path, &program, err);
	status = find_sidecar(status, path, &program, &loaded->sidecar, err);
	if (status)
		return status;
	status = sw_cluster_parse(one_device, strlen(one_device), "one device", &loaded->cluster,
	                          err);
	if (status == SW_OK) {
		status = sw_plan_replicated(program, &loaded->cluster, &loaded->plan, err);
		if (status)
			sw_cluster_clear(&loaded->cluster);
	}
	sw_program_free(program);
	if (status)
		sw_sidecar_clear(&loaded->sidecar);
	return status;
}

static sw_status load_contents(cli *c, const contents *file, const char *path, bool or_program,
                               cli_plan *loaded, sw_error *err)
{
	if (file->text[strspn(file->text, " \t\r\n")] == '{') /* plans are JSON */
		return load_plan(c, file, path, loaded, err);
	if (or_program)
		return load_as_plan(file, path, loaded, err);
	return sw_fail_at(err, SW_ERR_INPUT, path, 0, 0,
	                  "this is no plan file: make one with shardwright plan PROGRAM --cluster "
	                  "FILE -o PLAN");
}

sw_status cli_load_plan(cli *c, const char *path, bool or_program, cli_plan *loaded, sw_error *err)
{
	contents file = {0};
	size_t most = or_program ? SW_MAX_FILE_BYTES : SW_MAX_JSON_BYTES;
	*loaded = (cli_plan){0};
	sw_status status = sw_file_read_most(path, most, &file.text, &file.length, err);
	if (status == SW_OK)
		status = load_contents(c, &file, path, or_program, loaded, err);
	free(file.text);
	return sw_error_in_file(err, status, path);
}

void cli_plan_clear(cli_plan *loaded)
{
	sw_plan_free(loaded->plan);
	sw_sidecar_clear(&loaded->sidecar);
	sw_cluster_clear(&loaded->cluster);
	if (loaded->moved)
		sw_cluster_clear(&loaded->other);
}

/* ---- checkpoints ------------------------------------------------------------------------ */

sw_status cli_find_newest(cli *c, const char *folder, const char **path, sw_error *err)
{
	int64_t newest = -1;
	SW_TRY(sw_checkpoint_newest(folder, &newest, err));
	*path = newest < 0 ? NULL
	                   : sw_arena_printf(&c->arena, "%s/" SW_CHECKPOINT_NAME, folder, newest);
	return SW_OK;
}

sw_status cli_take_newest(cli *c, const char **path, sw_error *err)
{
	sw_text newest = {0};
	sw_status status = sw_checkpoint_newest_of(*path, &newest, err);
	if (status == SW_OK && newest.len) { /* what is missing is said where it is read */
		*path = sw_arena_text(&c->arena, newest.data);
		cli_note(c, "%s: the newest checkpoint of the folder", *path);
	}
	sw_text_clear(&newest);
	return status;
}
