/*
 * cli: the command `shardwright`. main.c finds the command in its table and reads its options; each
 * cmd_NAME.c is a list of calls of stages. Results go to standard output, everything else to
 * standard error.
 */
#ifndef SW_CLI_H
#define SW_CLI_H

#include "run/run.h"
#include "search/search.h"

/* ---- options ---------------------------------------------------------------------------- */

typedef enum cli_kind { CLI_FLAG, CLI_TEXT, CLI_LIST, CLI_COUNT, CLI_BYTES, CLI_SECONDS } cli_kind;

/* The values of all options of all commands. */
typedef struct cli_values {
	bool help, json, quiet, verbose, rules, parts, no_links, no_kernels, pace, untied;
	const char *cluster, *devices, *output, *strategy, *dump_after, *plot, *overlap, *trace,
		*method, *effort, *pin;
	const char *microbatches, *remat, *diff;
	SW_VEC(const char *) data;
	/* 0: not given, but for steps and seed */
	int64_t memory, steps, seed, ranks, threads, random;
	int64_t work_limit;
	double time_limit;
} cli_values;

typedef struct cli_option {
	const char *name;  /* "--steps" or "-o" */
	const char *value; /* "N" in the help, NULL for a flag */
	cli_kind kind;
	size_t offset; /* in cli_values */
	const char *help;
} cli_option;

typedef struct cli cli;
typedef struct cli_command {
	const char *name, *argument, *summary; /* argument NULL: it takes none */
	const char *details;                   /* for --help; NULL: none */
	const char *example;
	const char *const *options; /* names, ended by NULL, beside those that all commands have */
	sw_status (*run)(cli *c, sw_error *err);
} cli_command;

struct cli {
	const cli_command *command;
	cli_values values;
	const char *argument;    /* the one positional argument */
	json_t *result;          /* what --json prints; owned */
	sw_transport *transport; /* only of `run` and `calibrate` under mpirun */
	sw_arena arena;
};

/* Reads what follows the command's name. Errors are one line that names the option and the mend. */
sw_status cli_read_options(cli *c, int argc, char **argv, sw_error *err);
void cli_print_help(const cli_command *command, sw_text *text);

/* ---- reporting -------------------------------------------------------------------------- */

/* Is this the process that speaks for the job? */
bool cli_speaks(const cli *c);
/* Text for people: to standard output, unless --json. Clears it. */
void cli_print(const cli *c, sw_text *text);
/* A remark on standard error, unless -q. One line. */
void cli_note(const cli *c, const char *format, ...) SW_PRINTF(2, 3);
/* Could a file be written there, by the process that speaks? Asked before the work whose result it
 * is to hold. NULL and "-": yes. */
sw_status cli_check_writable(const cli *c, const char *path, sw_error *err);
/* The error's one line on standard error; with --json its object on standard output. */
void cli_print_error(const cli *c, bool json, const sw_error *err);

/* ---- stopping --------------------------------------------------------------------------- */

/* From now on, the first Ctrl-C or SIGTERM sets the flag and writes `told` (NULL: nothing) to
   standard error, by the process that speaks; a second one ends the process. */
void cli_watch_signals(const cli *c, const char *told);
const atomic_bool *cli_stop_asked(void);

/* ---- loading ---------------------------------------------------------------------------- */

/* A program and its sidecar; *sidecar is to be cleared only after success. */
sw_status cli_load_program(const char *path, sw_program **program, sw_sidecar *sidecar,
                           sw_error *err);
/* A plan with all that it needs; a program is loaded as a plan for one device. */
typedef struct cli_plan {
	sw_cluster cluster;
	sw_plan *plan;
	sw_sidecar sidecar;
	sw_cluster other; /* that it was moved to, if `moved` */
	bool moved;
} cli_plan;
sw_status cli_load_plan(cli *c, const char *path, bool or_program, cli_plan *loaded, sw_error *err);
/* --devices without --cluster is refused. */
sw_status cli_check_move(const cli *c, sw_error *err);
/* To the cluster that --cluster and --devices say: costed anew, with a remark. */
sw_status cli_move_plan(cli *c, const char *path, cli_plan *loaded, sw_error *err);
void cli_plan_clear(cli_plan *loaded);

/* A cluster file, or the part of it that --devices says. */
sw_status cli_read_cluster(const cli *c, const char *path, sw_cluster *cluster, sw_error *err);
/* A cluster file, by its name: .yaml or .yml. */
bool cli_is_cluster(const char *path);
/* inspect CLUSTER.yaml */
sw_status cli_inspect_cluster(cli *c, sw_error *err);
/* Of inspect PROGRAM: the table of rematerialisation policies, and the key "rematerialisation" of
 * the JSON object. */
void cli_inspect_remat(const sw_program *program, sw_text *text, json_t *json);
/* Of plan, where nothing fits in memory, which `err` says: what lies at the peak of the least plan,
 * and what would help. `seconds`: what the search took. SW_NO, unless that fails. */
sw_status cli_plan_shortage(cli *c, const sw_program *program, const sw_sidecar *sidecar,
                            const sw_cluster *cluster, const sw_plan_options *options,
                            const sw_plan *least, double seconds, sw_error *err);
/* verify PROGRAM --ranks N --random K */
sw_status cli_verify_random(cli *c, sw_error *err);

/* ---- the commands ----------------------------------------------------------------------- */

extern const cli_command cli_inspect, cli_plan_command, cli_explain, cli_verify, cli_simulate,
	cli_run, cli_calibrate, cli_solve;

#endif
