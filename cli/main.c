/* shardwright: the table of commands, and the code that all of them share. */
#include "cli.h"

#include <string.h>

static const cli_command *const commands[] = {
	&cli_inspect,   &cli_plan_command, &cli_explain, &cli_verify,  &cli_simulate,
	&cli_run,       &cli_calibrate,    &cli_solve,   &cli_reshard, &cli_pipeline,
	&cli_export,    &cli_checkpoint,   &cli_tune};

static void print_usage(FILE *file)
{
	fputs("usage: shardwright COMMAND ARGUMENT [options]\n\n", file);
	for (size_t i = 0; i < SW_COUNT(commands); i++)
		fprintf(file, "  %-10s %-14s %s\n", commands[i]->name,
		        commands[i]->argument ? commands[i]->argument : "", commands[i]->summary);
	fputs("\nshardwright COMMAND --help says more about each; shardwright --version, which "
	      "one this is.\n",
	      file);
}

static const cli_command *find_command(const char *name)
{
	for (size_t i = 0; i < SW_COUNT(commands); i++)
		if (strcmp(commands[i]->name, name) == 0)
			return commands[i];
	return NULL;
}

/* Look for --json without reading the options, which may fail. */
static bool wants_json(int argc, char **argv)
{
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
		if (strcmp(argv[i], "--json") == 0)
			return true;
	return false;
}

static void list_commands(sw_text *text)
{
	for (size_t i = 0; i < SW_COUNT(commands); i++)
		sw_text_addf(text, "%s%s", i ? ", " : "", commands[i]->name);
}

static sw_status no_command(const char *name, const char *known, sw_error *err)
{
	sw_nearest nearest = {.word = name};
	for (size_t i = 0; i < SW_COUNT(commands); i++)
		sw_nearest_try(&nearest, commands[i]->name);
	return sw_fail(err, SW_ERR_INPUT,
	               "there is no command '%s'%s, only %s; see shardwright --help", name,
	               sw_nearest_hint(&nearest).text, known);
}

static int refuse_command(int argc, char **argv)
{
	cli c = {0};
	sw_text names = {0};
	sw_error err;
	sw_status status;
	list_commands(&names);
	if (argc < 2)
		status = sw_fail(&err, SW_ERR_INPUT, "which command? See shardwright --help");
	else
		status = no_command(argv[1], names.data, &err);
	sw_text_clear(&names);
	cli_print_error(&c, wants_json(argc, argv), &err);
	return sw_status_exit_code(status);
}

/* Connect `run`, `calibrate` and `reshard` under mpirun before anything is printed, so that only
 * one rank prints. */
static sw_status join_job(cli *c, sw_error *err)
{
	bool joins = c->command == &cli_run || c->command == &cli_calibrate ||
	             c->command == &cli_reshard;
	return joins && sw_transport_under_mpi() ? sw_transport_mpi(&c->transport, err) : SW_OK;
}

static void print_help(const cli *c)
{
	sw_text text = {0};
	cli_print_help(c->command, &text);
	if (cli_speaks(c))
		fputs(text.data, stdout);
	sw_text_clear(&text);
}

static void print_result(const cli *c)
{
	if (!c->values.json || !c->result || !cli_speaks(c))
		return;
	json_dumpf(c->result, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
	putchar('\n');
}

/* Fail if results could not be written: a full disk, a closed pipe. */
static sw_status flush_output(sw_error *err)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return SW_OK;
	return sw_fail(err, SW_ERR_IO, "standard output can't be written");
}

static void clear(cli *c)
{
	if (c->transport)
		c->transport->ops->free(c->transport);
	json_decref(c->result);
	sw_vec_clear(&c->values.data);
	sw_vec_clear(&c->values.eval_data);
	sw_arena_clear(&c->arena);
}

/* Print the command's result even if its answer is `no`, which is only an exit code. */
static sw_status run_command(cli *c, int argc, char **argv, sw_error *err)
{
	sw_status status = join_job(c, err);
	if (status == SW_OK)
		status = cli_read_options(c, argc - 2, argv + 2, err);
	if (c->transport)
		status = c->transport->ops->agree(c->transport, status, err);
	if (status)
		return status;
	if (c->values.help) {
		print_help(c);
		return flush_output(err);
	}
	if (c->command->computes)
		status = sw_interpret_load_blas(err);
	if (status == SW_OK)
		status = c->command->run(c, err);
	if (status == SW_OK || c->result)
		print_result(c);
	return status ? status : flush_output(err);
}

int main(int argc, char **argv)
{
	sw_json_never_short();
	cli c = {0};
	sw_error err = {0};
	char *help_of[] = {argv[0], argc > 2 ? argv[2] : NULL, "--help", NULL};
	if (argc == 3 && strcmp(argv[1], "help") == 0) { /* help COMMAND is COMMAND --help */
		argv = help_of;
		argc = 3;
	}
	bool usage = argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
	                          strcmp(argv[1], "help") == 0),
	     version = argc > 1 && strcmp(argv[1], "--version") == 0;
	if (usage || version) {
		if (usage)
			print_usage(stdout);
		else
			puts("shardwright " SW_VERSION);
		sw_status printed = flush_output(&err);
		if (printed)
			cli_print_error(&c, false, &err);
		return sw_status_exit_code(printed);
	}
	c.command = argc > 1 ? find_command(argv[1]) : NULL;
	if (!c.command)
		return refuse_command(argc, argv);
	sw_arena_init(&c.arena);
	sw_status status = run_command(&c, argc, argv, &err);
	if (status)
		cli_print_error(&c, wants_json(argc, argv) && !c.result, &err);
	fflush(NULL);
	clear(&c);
	return sw_status_exit_code(status);
}
