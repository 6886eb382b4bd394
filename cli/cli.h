/*
 * cli: the command `shardwright`. main.c finds the command in its table and reads its options; each
 * cmd_NAME.c is a list of calls of stages. Results go to standard output, everything else to
 * standard error.
 */
#ifndef SW_CLI_H
#define SW_CLI_H

#include "fuse/fuse.h"
#include "pipelined/pipelined.h"
#include "run/run.h"
#include "search/search.h"
#include "tune/tune.h"

/* ---- options ---------------------------------------------------------------------------- */

typedef enum cli_kind { CLI_FLAG, CLI_TEXT, CLI_LIST, CLI_COUNT, CLI_BYTES, CLI_SECONDS } cli_kind;

typedef SW_VEC(const char *) cli_list;

/* The values of all options of all commands. */
typedef struct cli_values {
	bool help, json, quiet, verbose, rules, kernels, parts, no_links, no_kernels, pace, signal, untied,
		execute, allow_nan, resume, check_nan, blocking, transfers, measure;
	const char *cluster, *devices, *output, *strategy, *dump_after, *plot, *overlap, *trace,
		*method, *effort, *pin, *sync, *codec, *allow, *annotations, *save, *load, *log, *eval, *straggler,
		*servers;
	const char *microbatches, *shares, *last_apart, *remat, *diff, *fusion;
	const char *plan_stages, *schedule, *stage_file;
	const char *from, *to, *attention, *shape, *order, *times, *hold, *costs;
	const char *trials_file, *ways, *simulator, *launch;
	cli_list data, eval_data;
	/* 0: not given, except for steps and seed */
	int64_t memory, steps, seed, ranks, threads, random, every, keep, eval_every,
		eval_batches;
	int64_t work_limit, repeat, chunks, pieces, stages, trials;
	double time_limit, transfer;
} cli_values;

/* --straggler: a rank, and the seconds that it sleeps in each step; 0: none. */
typedef struct cli_straggler {
	int32_t rank;
	double seconds;
} cli_straggler;

typedef struct cli_option {
	const char *name;  /* "--steps" or "-o" */
	const char *value; /* "N" in the help; NULL for a flag */
	cli_kind kind;
	size_t offset; /* into cli_values */
	const char *help;
} cli_option;

typedef struct cli cli;
typedef struct cli_command {
	const char *name, *argument, *summary; /* argument NULL: the command takes none */
	const char *details;                   /* for --help; NULL: none */
	const char *example;
	/* NULL-terminated names, besides those that all commands have */
	const char *const *options;
	bool computes; /* it runs programs, so it needs the library of matrix products */
	sw_status (*run)(cli *c, sw_error *err);
} cli_command;

struct cli {
	const cli_command *command;
	cli_values values;
	const char *argument;    /* the positional argument */
	json_t *result;          /* the object that --json prints; owned */
	sw_transport *transport; /* of `run`, `calibrate` and `reshard` under mpirun; else NULL */
	sw_arena arena;
};

/* Read the words behind the command's name. An error is one line that names the option and the
 * remedy. */
sw_status cli_read_options(cli *c, int argc, char **argv, sw_error *err);
void cli_print_help(const cli_command *command, sw_text *text);

/* ---- reporting -------------------------------------------------------------------------- */

/* Does this process print for the whole job? Rank 0 does, and a process without ranks. */
bool cli_speaks(const cli *c);
/* Print text for people to standard output, unless --json is given. Clears the text. */
void cli_print(const cli *c, sw_text *text);
/* A number of the JSON object: null where JSON has no such number. */
json_t *cli_json_real(double value);
/* Print a one-line remark to standard error, unless -q is given. */
void cli_note(const cli *c, const char *format, ...) SW_PRINTF(2, 3);
/* Check that a file can be written there by the process that prints, before the work whose result
 * it will hold. NULL and "-" are writable. */
sw_status cli_check_writable(const cli *c, const char *path, sw_error *err);
/* Check that no option's file to write is this program, which a plan names, or its sidecar. */
sw_status cli_check_spared(const cli *c, const char *program, sw_error *err);
/* Print the error in one line to standard error; with `json`, also its object to standard
 * output. */
void cli_print_error(const cli *c, bool json, const sw_error *err);

/* ---- stopping --------------------------------------------------------------------------- */

/* From now on, the first Ctrl-C, SIGTERM or SIGHUP sets the flag, and the process that prints writes
 * `message` (NULL: nothing) to standard error; a second one ends the process. */
void cli_watch_signals(const cli *c, const char *message);
const atomic_bool *cli_stop_asked(void);

/* ---- loading ---------------------------------------------------------------------------- */

/* Load a program and its sidecar. Clear *sidecar only after success. */
sw_status cli_load_program(const char *path, sw_program **program, sw_sidecar *sidecar,
                           sw_error *err);
/* A plan with its cluster and sidecar; a program is loaded as a plan for one device. */
typedef struct cli_plan {
	sw_cluster cluster;
	sw_plan *plan;
	sw_sidecar sidecar;
	sw_cluster other; /* the cluster to which the plan was moved, if `moved` */
	bool moved;
} cli_plan;
sw_status cli_load_plan(cli *c, const char *path, bool or_program, cli_plan *loaded, sw_error *err);
/* Refuse --devices without --cluster. */
sw_status cli_check_move(const cli *c, sw_error *err);
/* Move the plan to the cluster of --cluster and --devices: cost it again, and print a remark. */
sw_status cli_move_plan(cli *c, const char *path, cli_plan *loaded, sw_error *err);
void cli_plan_clear(cli_plan *loaded);

/* Read a cluster file, or the part of it that --devices selects. */
sw_status cli_read_cluster(const cli *c, const char *path, sw_cluster *cluster, sw_error *err);
/* Read a cluster file, or the installed one of a name without folder and ending. */
sw_status cli_read_cluster_named(const char *path, sw_cluster *cluster, sw_error *err);
/* Find out how many ranks --servers makes servers, and let them stand behind all others. Under
 * mpirun collective. */
sw_status cli_place_servers(cli *c, int32_t *servers, sw_error *err);
/* Read --servers of a command that runs no ranks: N; 0: it is not given. */
sw_status cli_count_servers(const cli *c, int32_t *servers, sw_error *err);
/* Refuse servers of a plan whose variables are not served. */
sw_status cli_check_served(const cli *c, const sw_plan *plan, int32_t servers, sw_error *err);
/* Read --straggler of a command with so many ranks; 0: none of which can be one. */
sw_status cli_read_straggler(const cli *c, int64_t ranks, cli_straggler *straggler, sw_error *err);
/* Find the newest checkpoint in a folder of run --save; NULL: there is none. */
sw_status cli_find_newest(cli *c, const char *folder, const char **path, sw_error *err);
/* Replace a folder of run --save by the newest checkpoint in it, and say so; other paths stay. */
sw_status cli_take_newest(cli *c, const char **path, sw_error *err);
/* Is it a cluster file by its name: .yaml or .yml? */
bool cli_is_cluster(const char *path);
/* inspect CLUSTER.yaml */
sw_status cli_inspect_cluster(cli *c, sw_error *err);
/* For inspect PROGRAM: with `all` append the table of results that replace inputs; add the keys
 * "state" and "state_note" to the JSON object. */
void cli_inspect_state(const sw_program *program, const sw_sidecar *sidecar, bool all,
                       sw_text *text, json_t *json);
/* Likewise: append the table of rematerialisation policies, and add the key
 * "rematerialisation" to the JSON object. */
void cli_inspect_remat(const sw_program *program, sw_text *text, json_t *json);
/* Likewise, of the canonical form: the loops over microbatches, and the key "microbatches". */
void cli_inspect_microbatches(const sw_program *program, const sw_sidecar *sidecar, sw_text *text,
                              json_t *json);
/* Likewise, of the program that is planned (the canonical form, or the program as it was read where
 * there is none): what stays whole, and the key "rules". */
void cli_inspect_rules(const sw_program *program, sw_text *text, json_t *json);
/* Likewise, the kernels that a device makes of the program, and the keys "fusion", "kernels" and
 * "not_recognised". all: list kernels of little work too. */
void cli_inspect_kernels(const sw_program *program, sw_fusion fusion, bool all, sw_text *text,
                         json_t *json);
/* For --stages: how the step would be cut into a pipeline, and the key "pipeline". SW_NO where it
 * has no stages, with the op and the reason. */
sw_status cli_inspect_stages(cli *c, const sw_program *canonical, const sw_sidecar *sidecar,
                             sw_text *text, json_t *json, sw_error *err);
/* Read --fusion, or the fusion of --cluster's device; loops where neither is given. */
sw_status cli_find_fusion(const cli *c, sw_fusion *fusion, sw_error *err);
/* For plan, where nothing fits in memory, as `err` says: describe the memory peak of the plan that
 * needs least, and the changes that would help. `seconds`: the time that the search took;
 * `least_share`: bytes per device that the program takes at least, 0: not known. Returns SW_NO,
 * unless this fails. */
sw_status cli_plan_shortage(cli *c, const sw_program *program, const sw_sidecar *sidecar,
                            const sw_cluster *cluster, const sw_plan_options *options,
                            const sw_plan *least, double seconds, int64_t least_share,
                            sw_error *err);
/* Is what stands for a schedule a file, and no name? */
bool cli_names_file(const char *schedule);
/* What plan's options say of stages: how many (0: auto; 1 without an option), a named schedule (-1:
 * auto), or one of a file, and a file of stages. */
typedef struct cli_stages_asked {
	int32_t n_stages, schedule;
	sw_pipeline_schedule *given;
	sw_stage_file file;
	const sw_program *program;
	const sw_sidecar *sidecar;
	const sw_cluster *cluster;
	const sw_plan_options *options;
	sw_pipelined_options how; /* all of that, as sw_pipelined_make takes it */
	/* Numbers of stages, as asked for, and the seconds that no plan with them is below. */
	int32_t numbers[SW_STAGE_NUMBERS];
	double bounds_s[SW_STAGE_NUMBERS];
	size_t n_bounds;
} cli_stages_asked;
/* Read --stages, --schedule, --chunks and --stage-file. A strategy with stages says the same; they are
 * taken out of it. Cleared by the caller, also if this fails. */
sw_status cli_read_stages(const cli *c, sw_plan_strategy *strategy, cli_stages_asked *asked,
                          sw_error *err);
void cli_clear_stages(cli_stages_asked *asked);
/* For plan --stages: make ready to plan with stages beside the search without. Refuses what was asked
 * for where no plan can have it. The rival's plan is freed by the caller. */
sw_status cli_begin_stages(const cli *c, cli_stages_asked *asked, sw_pipelined_rival *rival,
                           sw_error *err);
/* For plan --stages: plan with stages, if that was not done beside the search without, print that
 * beside the plan without (NULL: nothing fits), and write it where it was asked for, or is quicker:
 * then *wins. */
sw_status cli_plan_stages(cli *c, const cli_stages_asked *asked, sw_pipelined_rival *rival,
                          const sw_plan *whole, bool *wins, sw_error *err);
/* verify PROGRAM --ranks N --random K */
sw_status cli_verify_random(cli *c, sw_error *err);
/* For tune --measure: a sw_measure_fn, whose context is the cli. Runs the plan as --launch says, else
 * on threads of a process of its own. */
sw_measure_fn cli_measure_plan;

/* ---- the commands ----------------------------------------------------------------------- */

extern const cli_command cli_inspect, cli_plan_command, cli_explain, cli_verify, cli_simulate,
	cli_run, cli_calibrate, cli_solve, cli_reshard, cli_pipeline, cli_export, cli_checkpoint,
	cli_tune;

#endif
