/* The table of all options, and the code that reads them. */
#include "cli.h"

#include <string.h>
#include <unistd.h>

#define AT(member) offsetof(cli_values, member)
static const cli_option options[] = {
	{"--cluster", "FILE", CLI_TEXT, AT(cluster),
         "the cluster to plan for (docs/cluster-file.md)"},
	{"-o", "PLAN", CLI_TEXT, AT(output), "where to write the plan; - is standard output"},
	{"--devices", "N|AxB", CLI_TEXT, AT(devices),
         "a part of the cluster: the first N devices, or A of the first level and B in each "
         "(default: all)"},
	{"--strategy", "S", CLI_TEXT, AT(strategy),
         "auto, auto:owners, dp, horovod[:merge=BYTES], allreduce[:partitioned][,chunk=N], zero1, "
         "zero2, zero3, ps[:balanced|partitioned|uneven][,proxy][,stale=S][,served], parallax, random, "
         "ways, sync, megatron:tp=K[,sp], summa[:RxC], 2.5d[:RxCxD], axonn[:X,Y,Z,D or "
         ":top=K,model=paper|ours] or expert[:ep=K]; behind any of them pp=N (docs/commands.md; "
         "default: auto)"},
	{"--method", "M", CLI_TEXT, AT(method),
         "how problems are solved: exact, segments, ilp, coordinate, blocks, metropolis, random, "
         "exhaustive or autodist (default: exact)"},
	{"--trials", "N", CLI_COUNT, AT(trials),
         "ways of synchronising variables that are tried (default: 64)"},
	{"--trials-file", "FILE", CLI_TEXT, AT(trials_file),
         "a file of trials: later runs learn from it, and add theirs (docs/tune.md)"},
	{"--ways", "FILE", CLI_TEXT, AT(ways),
         "write the best ways there, as plan --sync takes them; - is standard output"},
	{"--simulator", "KIND", CLI_TEXT, AT(simulator),
         "how ways are ranked: none, predefined, linear, trees, and with --measure analytic or both "
         "(default: linear, with --measure both)"},
	{"--measure", NULL, CLI_FLAG, AT(measure),
         "run each trial on this machine, instead of simulating it"},
	{"--launch", "COMMAND", CLI_TEXT, AT(launch),
         "with --measure: what starts the ranks, such as 'mpirun -n 4' or 'tools/lab run --' "
         "(default: threads of one process)"},
	{"--effort", "2|3", CLI_TEXT, AT(effort),
         "3: solve the whole graph at once; 2: one pass over its segments, quicker and with "
         "slightly "
         "slower plans (default: 3)"},
	{"--memory", "BYTES", CLI_BYTES, AT(memory),
         "memory per device, such as 16GiB (default: what the cluster file says)"},
	{"--time-limit", "SECONDS", CLI_SECONDS, AT(time_limit),
         "stop searching after this time (default: none)"},
	{"--pin", "FILE", CLI_TEXT, AT(pin),
         "tensors and ops whose layout is decided (docs/pins.md)"},
	{"--sync", "FILE", CLI_TEXT, AT(sync),
         "how variables are synchronised: all-reduced, owned, split (docs/sync.md)"},
	{"--codec", "CODEC", CLI_TEXT, AT(codec),
         "send gradients as bf16, f16, int8, topk[=SHARE] or powersgd[=RANK] (docs/sync.md)"},
	{"--allow", "LIST", CLI_TEXT, AT(allow),
         "what may change the training, with commas between: stale=S lets --strategy auto take a plan "
         "whose devices compute with values up to S steps old, or any; codec=CODEC lets trials have "
         "it (docs/sync.md)"},
	{"--annotations", "HOW", CLI_TEXT, AT(annotations),
         "annotations of shardings in the program (sdy, mhlo): pin (default), or ignore"},
	{"--untied", NULL, CLI_FLAG, AT(untied),
         "layers that are alike may be split differently, also in a large program"},
	{"--microbatches", "auto|N", CLI_TEXT, AT(microbatches),
         "run the batch as N microbatches and sum the gradients; 1: the whole batch at once "
         "(default: auto, the fastest number that fits in memory)"},
	{"--shares", "auto|equal|LIST", CLI_TEXT, AT(shares),
         "how many microbatches each part of the cluster takes, such as 5:3 for the halves; auto: as "
         "many as its kind of device is quick, where kinds differ; equal (default: auto under "
         "--strategy auto, else equal)"},
	{"--last-apart", "auto|no", CLI_TEXT, AT(last_apart),
         "compute the last microbatch after the loop over the others, where it is quicker to send "
         "the gradients beside it (default: auto under --strategy auto, else no)"},
	{"--remat", "auto|none|POLICY", CLI_TEXT, AT(remat),
         "compute activations again in the backward pass, by a policy that inspect lists (default: "
         "auto)"},
	{"--dump-after", "STAGE", CLI_TEXT, AT(dump_after),
         "print the program after a stage and stop: read, canonical, partition, schedule"},
	{"--data", "[NAME=]FILE,...", CLI_LIST, AT(data),
         "what to train on: bytes or .npy files of tokens, or a .npy file of items for input NAME; "
         "may be repeated (default: random)"},
	{"--steps", "N", CLI_COUNT, AT(steps), "how many steps (default: 100)"},
	{"--seed", "N", CLI_COUNT, AT(seed), "of initial values and random data (default: 0)"},
	{"--allow-nan", NULL, CLI_FLAG, AT(allow_nan),
         "let pass what is NaN or infinite in the serial run too, which cannot be compared"},
	{"--ranks", "N", CLI_COUNT, AT(ranks),
         "run N ranks as threads of this process, without mpirun"},
	{"--threads", "N", CLI_COUNT, AT(threads),
         "threads of matrix products per rank (default: cores / ranks)"},
	{"--overlap", "LIST", CLI_TEXT, AT(overlap),
         "collectives that may run beside kernels: all, none, or all-reduce,all-gather,... "
         "(default: all)"},
	{"--pace", NULL, CLI_FLAG, AT(pace),
         "compute nothing: wait out the time that the cluster's model gives each op; no losses"},
	{"--signal", NULL, CLI_FLAG, AT(signal),
         "with --pace, of a plan with stages: what crosses between stages is a byte a message"},
	{"--trace", "FILE", CLI_TEXT, AT(trace),
         "write a timeline that Perfetto and chrome://tracing open; of a run, its last step"},
	{"--save", "DIR", CLI_TEXT, AT(save),
         "write the state after the last step there, as a folder step-N with a file per rank"},
	{"--straggler", "RANK:SECONDS", CLI_TEXT, AT(straggler),
         "let a rank sleep so long in each step, to see whom it keeps waiting"},
	{"--servers", "N|HOST[:N],...", CLI_TEXT, AT(servers),
         "of a plan with served variables: the last N ranks, or those on these hosts (:N: the last N "
         "there), have no device, and serve the variables in their owners' place"},
	{"--every", "N", CLI_COUNT, AT(every), "with --save: after every N steps too"},
	{"--keep", "K", CLI_COUNT, AT(keep),
         "with --save: the newest K checkpoints stay, older ones are removed (default: all)"},
	{"--resume", NULL, CLI_FLAG, AT(resume),
         "go on from the newest checkpoint of --save DIR, if there is one, up to step --steps"},
	{"--load", "FILE|DIR", CLI_TEXT, AT(load),
         "begin with a checkpoint that --save wrote, under any plan, and go on with its step and "
         "seed; or with initial values from safetensors"},
	{"--log", "FILE", CLI_TEXT, AT(log),
         "write a JSON object per step there: step, loss, tokens/s, exposed communication, memory"},
	{"--eval", "PROGRAM", CLI_TEXT, AT(eval),
         "a second program: its loss on the trained state is printed and logged"},
	{"--eval-data", "[NAME=]FILE,...", CLI_LIST, AT(eval_data), "as --data, for --eval"},
	{"--eval-every", "N", CLI_COUNT, AT(eval_every),
         "with --eval: after every N steps (default: only after the last)"},
	{"--eval-batches", "K", CLI_COUNT, AT(eval_batches),
         "with --eval: the mean over K batches, the same each time (default: 8)"},
	{"--check-nan", NULL, CLI_FLAG, AT(check_nan),
         "look for NaN in the results of every op, and end with the step and the op that made one"},
	{"--diff", "PLAN", CLI_TEXT, AT(diff), "what another plan does differently"},
	{"--random", "K", CLI_COUNT, AT(random),
         "verify K random assignments of layouts of a program"},
	{"--work-limit", "N", CLI_COUNT, AT(work_limit),
         "stop searching after so many units, about table entries visited (default: by size)"},
	{"--no-links", NULL, CLI_FLAG, AT(no_links),
         "leave the links out: they keep the figures of --cluster"},
	{"--no-kernels", NULL, CLI_FLAG, AT(no_kernels),
         "leave the kernels out: they keep the figures of --cluster"},
	{"--plot", "FILE", CLI_TEXT, AT(plot), "draw fitted against measured, an SVG picture"},
	{"--rules", NULL, CLI_FLAG, AT(rules), "list the ops that can't be split, and why"},
	{"--kernels", NULL, CLI_FLAG, AT(kernels),
         "list the kernels that a device makes of the ops, and what is not recognised, and why"},
	{"--fusion", "KIND", CLI_TEXT, AT(fusion),
         "how far the device of --kernels fuses: " SW_FUSION_WORDS " (default: loops)"},
	{"--parts", NULL, CLI_FLAG, AT(parts),
         "of a cluster file: one line per part of each level, for scripts"},
	{"--from", "LAYOUT@MESH", CLI_TEXT, AT(from),
         "where the tensor is, such as S0RR@2x4:0-7 (docs/reshard.md)"},
	{"--to", "LAYOUT@MESH", CLI_TEXT, AT(to), "where it goes"},
	{"--shape", "SHAPE", CLI_TEXT, AT(shape), "of the tensor, such as f32[1024,1024,512]"},
	{"--order", "O", CLI_TEXT, AT(order),
         "naive, greedy, dfs, random or ensemble (default: ensemble, the best of all)"},
	{"--chunks", "K", CLI_COUNT, AT(chunks),
         "chunks of a chain (default: as many as are quickest)"},
	{"--pieces", "N", CLI_COUNT, AT(pieces),
         "cut each slice into N (default: as many as balance needs)"},
	{"--attention", "HOW", CLI_TEXT, AT(attention),
         "with --to stablehlo: ops, or cudnn, calls that NVIDIA's devices run as one kernel "
         "(default: calls if the program has some and the device of the plan runs them)"},
	{"--execute", NULL, CLI_FLAG, AT(execute),
         "move the bytes, on as many ranks as the cluster has devices, and check every element"},
	{"--repeat", "N", CLI_COUNT, AT(repeat),
         "with --execute: transfers, of which the median is printed (default: 1)"},
	{"--schedule", "auto|NAME|FILE", CLI_TEXT, AT(schedule),
         "with --stages: gpipe, 1f1b, eager-1f1b, interleaved-1f1b, zb-h1, zb-2p, zb-v, v-half or "
         "v-min (default: auto, the fastest); or a CSV file of torch.distributed.pipelining, which "
         "says how many stages and microbatches there are"},
	{"--stage-file", "FILE", CLI_TEXT, AT(stage_file),
         "how many devices each stage has, and which parameters and ops are in which "
         "(docs/pipeline.md)"},
	{"--stages", "N", CLI_COUNT, AT(stages), "ranks of the pipeline"},
	{"--times", "F,I,W", CLI_TEXT, AT(times),
         "seconds of a rank's forward, input gradient and weight gradient of one microbatch "
         "(default: 1,1,1)"},
	{"--transfer", "SECONDS", CLI_SECONDS, AT(transfer),
         "from one rank to the next (default: 0)"},
	{"--hold", "N", CLI_TEXT, AT(hold),
         "memory: microbatches of which a rank can hold its whole share (default: any number)"},
	{"--costs", "FILE", CLI_TEXT, AT(costs),
         "seconds and bytes of each virtual stage, JSON (docs/pipeline.md)"},
	{"--blocking", NULL, CLI_FLAG, AT(blocking), "a rank does nothing else while it sends"},
	{"--transfers", NULL, CLI_FLAG, AT(transfers), "write sends and receives as well"},
	{"--json", NULL, CLI_FLAG, AT(json),
         "print one JSON object, and nothing else, on standard output"},
	{"-q", NULL, CLI_FLAG, AT(quiet), "no progress and no remarks"},
	{"-v", NULL, CLI_FLAG, AT(verbose), "more remarks, longer tables"},
	{"--help", NULL, CLI_FLAG, AT(help), "print this"},
};
/* Options that have another meaning with one command. */
static const struct {
	const char *command;
	cli_option option;
} own_options[] = {
	{"solve",
         {"-o", "FILE", CLI_TEXT, AT(output),
          "where to write the assignment, a JSON array; - is standard output"}},
	{"calibrate",
         {"--pace", NULL, CLI_FLAG, AT(pace),
          "for runs with --pace: ranks sleep between collectives, where others compute"}},
	{"inspect",
         {"--cluster", "FILE", CLI_TEXT, AT(cluster),
          "with --kernels: the cluster whose device says how it fuses"}},
	{"simulate",
         {"--cluster", "FILE", CLI_TEXT, AT(cluster),
          "play with the figures of another cluster file of the same shape (default: the plan's)"}},
	{"solve",
         {"--seed", "N", CLI_COUNT, AT(seed), "of the methods that draw by chance (default: 0)"}},
	{"plan",
         {"--seed", "N", CLI_COUNT, AT(seed), "of the methods that draw by chance (default: 0)"}},
	{"plan",
         {"--trials", "N", CLI_COUNT, AT(trials),
          "of --method autodist: ways of synchronising variables that are tried (default: 64)"}},
	{"tune",
         {"--seed", "N", CLI_COUNT, AT(seed), "of the ways that are drawn (default: 0)"}},
	{"tune",
         {"--steps", "N", CLI_COUNT, AT(steps),
          "with --measure: steps of a trial, whose median counts (default: 100)"}},
	{"tune",
         {"--pace", NULL, CLI_FLAG, AT(pace),
          "with --measure: wait out the time that the cluster's model gives each op, and compute "
          "nothing"}},
	{"tune",
         {"--time-limit", "SECONDS", CLI_SECONDS, AT(time_limit),
          "begin no trial after this time (default: none)"}},
	{"explain",
         {"--cluster", "FILE", CLI_TEXT, AT(cluster),
          "cost the plan with the figures of another cluster whose devices divide alike "
          "(default: the plan's)"}},
	{"solve", {"--threads", "N", CLI_COUNT, AT(threads), "threads (default: all cores)"}},
	{"calibrate",
         {"--cluster", "FILE", CLI_TEXT, AT(cluster),
          "the shape to fit, with guesses (default: from who shares a host)"}},
	{"calibrate",
         {"-o", "CLUSTER", CLI_TEXT, AT(output),
          "where to write the cluster file; - is standard output"}},
	{"calibrate",
         {"--time-limit", "SECONDS", CLI_SECONDS, AT(time_limit),
          "measure for so long, about (default: 60)"}},
	{"verify",
         {"--cluster", "FILE", CLI_TEXT, AT(cluster),
          "take the plan to another cluster of the same shape (default: the plan's)"}},
	{"run",
         {"--cluster", "FILE", CLI_TEXT, AT(cluster),
          "take the plan to another cluster of the same shape (default: the plan's)"}},
	{"reshard",
         {"--strategy", "S", CLI_TEXT, AT(strategy),
          "send-recv, local-all-gather, global-all-gather, broadcast or auto (default: auto, the "
          "quickest)"}},
	{"reshard",
         {"--cluster", "FILE", CLI_TEXT, AT(cluster), "the cluster (docs/cluster-file.md)"}},
	{"reshard",
         {"--ranks", "N", CLI_COUNT, AT(ranks),
          "with --execute: on N ranks, threads of this process"}},
	{"reshard",
         {"--seed", "N", CLI_COUNT, AT(seed), "of random orders and of the data (default: 0)"}},
	{"reshard",
         {"--work-limit", "N", CLI_COUNT, AT(work_limit),
          "of a search for an order, in phases placed and options looked at (default: 20000)"}},
	{"reshard",
         {"--time-limit", "SECONDS", CLI_SECONDS, AT(time_limit),
          "of searches for an order (default: none)"}},
	{"export",
         {"--to", "FORM", CLI_TEXT, AT(to), "the form, which is needed: shardings or stablehlo"}},
	{"checkpoint", {"--diff", "FILE|DIR", CLI_TEXT, AT(diff), "compare with another one"}},
	{"checkpoint",
         {"--to", "PLAN", CLI_TEXT, AT(to), "with -o DIR: the plan for whose ranks it is cut"}},
	{"checkpoint",
         {"-o", "FILE|DIR", CLI_TEXT, AT(output),
          "one file of whole tensors; with --to: the folder of checkpoints"}},
	{"verify",
         {"--save", "DIR", CLI_TEXT, AT(save),
          "with --random: write the plans there, as SEED.plan"}},
	{"export",
         {"-o", "FILE", CLI_TEXT, AT(output), "where to write it (default: -, standard output)"}},
	{"pipeline",
         {"-o", "FILE", CLI_TEXT, AT(output), "where to write the CSV; - is standard output"}},
	{"pipeline", {"--microbatches", "N", CLI_TEXT, AT(microbatches), "of a step"}},
	{"plan",
         {"--stages", "auto|N", CLI_TEXT, AT(plan_stages),
          "stages of a pipeline, each on its own slice of the devices; auto: the fastest number, "
          "or none (default: 1)"}},
	{"plan",
         {"--chunks", "N", CLI_COUNT, AT(chunks),
          "with --stages: so many of them on each slice, interleaved (default: what the schedule "
          "has)"}},
	{"pipeline",
         {"--chunks", "N", CLI_COUNT, AT(chunks),
          "virtual stages per rank (default: what the schedule needs; 2 of interleaved-1f1b)"}},
	{"pipeline",
         {"--work-limit", "N", CLI_COUNT, AT(work_limit),
          "of auto, in actions played (default: 60000000)"}},
	{"pipeline",
         {"--seed", "N", CLI_COUNT, AT(seed), "of the moves that auto draws (default: 0)"}},
	{"verify",
         {"--ranks", "N", CLI_COUNT, AT(ranks),
          "with --random: on N ranks, threads of this process"}},
	{"verify",
         {"--seed", "N", CLI_COUNT, AT(seed),
          "of random data, and of the first assignment (default: 0)"}},
};
static const char *const common[] = {"--json", "-q", "-v", "--help", NULL};
static const struct {
	const char *other, *name;
} synonyms[] = {{"-h", "--help"}, {"--quiet", "-q"}, {"--verbose", "-v"}, {"--output", "-o"}};

/* ---- finding ---------------------------------------------------------------------------- */

static bool is_in(const char *const *names, const char *name)
{
	for (; *names; names++)
		if (strcmp(*names, name) == 0)
			return true;
	return false;
}

static const cli_option *find_entry(const cli_command *command, const char *name)
{
	for (size_t i = 0; i < SW_COUNT(own_options); i++)
		if (strcmp(own_options[i].command, command->name) == 0 &&
		    strcmp(own_options[i].option.name, name) == 0)
			return &own_options[i].option;
	for (size_t i = 0; i < SW_COUNT(options); i++)
		if (strcmp(options[i].name, name) == 0)
			return &options[i];
	return NULL;
}

static const cli_option *find(const cli_command *command, const char *name)
{
	for (size_t i = 0; i < SW_COUNT(synonyms); i++)
		if (strcmp(name, synonyms[i].other) == 0)
			name = synonyms[i].name;
	return is_in(command->options, name) || is_in(common, name) ? find_entry(command, name)
	                                                            : NULL;
}

/* ---- values ----------------------------------------------------------------------------- */

static sw_status bad_value(const cli_option *option, const char *value, const char *expected,
                           sw_error *err)
{
	return sw_fail(err, SW_ERR_INPUT, "%s %s: expected %s", option->name, value, expected);
}

/* Add a list FILE,FILE, or one file if a file of that name exists. False if it names none. */
static bool add_list(cli *c, cli_list *list, const char *value)
{
	if (access(value, F_OK) == 0) {
		sw_vec_push(list, value);
		return true;
	}
	size_t had = list->len;
	while (*value) {
		size_t length = strcspn(value, ",");
		if (length)
			sw_vec_push(list, sw_arena_text_n(&c->arena, value, length));
		value += length + (value[length] == ',');
	}
	return list->len > had;
}

/* Steps and seeds may be 0; of the others 0 is what stands where nothing is given. */
static sw_status read_count(const cli_option *option, const char *value, int64_t *count,
                            sw_error *err)
{
	bool may_be_0 = option->offset == AT(steps) || option->offset == AT(seed);
	if (sw_parse_count(value, count) && (*count > 0 || may_be_0))
		return SW_OK;
	return bad_value(option, value,
	                 may_be_0 ? "a whole number, such as 4"
	                          : "a whole number from 1, such as 4",
	                 err);
}

static sw_status set(cli *c, const cli_option *option, const char *value, sw_error *err)
{
	void *target = (char *)&c->values + option->offset;
	switch (option->kind) {
	case CLI_FLAG:
		*(bool *)target = true;
		return SW_OK;
	case CLI_TEXT:
		*(const char **)target = value;
		return SW_OK;
	case CLI_LIST:
		return add_list(c, target, value)
		               ? SW_OK
		               : bad_value(option, value, "a file, or several with commas", err);
	case CLI_COUNT:
		return read_count(option, value, target, err);
	case CLI_BYTES:
		return sw_parse_bytes(value, target)
		               ? SW_OK
		               : bad_value(option, value, "a size, such as 16GiB", err);
	default:
		return sw_parse_seconds(value, target)
		               ? SW_OK
		               : bad_value(option, value, "seconds, such as 2.5", err);
	}
}

/* ---- the line --------------------------------------------------------------------------- */

static sw_status take_argument(cli *c, const char *text, sw_error *err)
{
	if (!c->command->argument)
		return sw_fail(
			err, SW_ERR_INPUT,
			"%s takes options alone, and '%s' is none; see shardwright %s --help",
			c->command->name, text, c->command->name);
	if (c->argument)
		return sw_fail(
			err, SW_ERR_INPUT,
			"%s takes one %s, and '%s' is one too many; see shardwright %s --help",
			c->command->name, c->command->argument, text, c->command->name);
	if (!*text)
		return sw_fail(err, SW_ERR_INPUT,
		               "%s: its %s is an empty word; see shardwright %s --help",
		               c->command->name, c->command->argument, c->command->name);
	c->argument = text;
	return SW_OK;
}

static sw_status no_option(const cli *c, const char *name, sw_error *err)
{
	sw_nearest nearest = {.word = name};
	for (const char *const *known = c->command->options; *known; known++)
		sw_nearest_try(&nearest, *known);
	return sw_fail(err, SW_ERR_INPUT, "%s has no option %s%s; see shardwright %s --help",
	               c->command->name, name, sw_nearest_hint(&nearest).text, c->command->name);
}

/* Read one option, with its value in the same word (after =) or in the next; *used: number of
 * words. */
static sw_status take_option(cli *c, const char *word, const char *next, int *used, sw_error *err)
{
	size_t length = strcspn(word, "=");
	const char *name = sw_arena_text_n(&c->arena, word, length),
		   *value = word[length] ? word + length + 1 : NULL;
	const cli_option *option = find(c->command, name);
	*used = 1;
	if (!option)
		return no_option(c, name, err);
	if (option->kind == CLI_FLAG)
		return value ? sw_fail(err, SW_ERR_INPUT, "%s takes no value", option->name)
		             : set(c, option, NULL, err);
	if (!value) {
		value = next;
		*used = 2;
	}
	if (!value || !*value)
		return sw_fail(err, SW_ERR_INPUT, "%s: its value is missing, expected %s %s",
		               option->name, option->name, option->value);
	return set(c, option, value, err);
}

sw_status cli_read_options(cli *c, int argc, char **argv, sw_error *err)
{
	bool only_arguments = false;
	sw_status status = SW_OK;
	c->values.steps = 100;
	for (int i = 0, used = 1; i < argc && status == SW_OK; i += used) {
		used = 1;
		if (!only_arguments && strcmp(argv[i], "--") == 0)
			only_arguments = true;
		else if (only_arguments || argv[i][0] != '-' || !argv[i][1])
			status = take_argument(c, argv[i], err);
		else
			status = take_option(c, argv[i], i + 1 < argc ? argv[i + 1] : NULL, &used,
			                     err);
	}
	if (status == SW_OK && c->command->argument && !c->argument && !c->values.help)
		return sw_fail(err, SW_ERR_INPUT,
		               "%s: its %s is missing; see shardwright %s --help", c->command->name,
		               c->command->argument, c->command->name);
	return status;
}

static void print_option(const cli_command *command, const char *name, sw_text *text)
{
	const cli_option *option = find_entry(command, name);
	char left[64];
	snprintf(left, sizeof(left), "%s %s", name, option->value ? option->value : "");
	sw_text_addf(text, "  %-21s %s\n", left, option->help);
}

void cli_print_help(const cli_command *command, sw_text *text)
{
	sw_text_addf(text, "usage: shardwright %s %s%s[options]\n%s\n", command->name,
	             command->argument ? command->argument : "", command->argument ? " " : "",
	             command->summary);
	if (command->details)
		sw_text_addf(text, "\n%s\n", command->details);
	sw_text_add(text, "\noptions:\n");
	for (const char *const *name = command->options; *name; name++)
		print_option(command, *name, text);
	for (const char *const *name = common; *name; name++)
		print_option(command, *name, text);
	sw_text_addf(text, "\nexample:\n  %s\n", command->example);
	sw_text_add(text, "\nexit code: 0 success; 1 the answer is no; 2 bad usage or bad input\n");
}

sw_status cli_read_straggler(const cli *c, int64_t ranks, cli_straggler *straggler, sw_error *err)
{
	const char *text = c->values.straggler, *colon = text ? strchr(text, ':') : NULL;
	char *end = NULL;
	*straggler = (cli_straggler){0};
	if (!text)
		return SW_OK;
	if (ranks == 0)
		return sw_fail(err, SW_ERR_INPUT,
		               "--straggler is for plans without stages: leave it out");
	long rank = strtol(text, &end, 10);
	straggler->rank = (int32_t)rank;
	if (colon && end == colon && end != text && rank >= 0 && rank < ranks &&
	    sw_parse_seconds(colon + 1, &straggler->seconds) && straggler->seconds <= 3600)
		return SW_OK;
	return sw_fail(err, SW_ERR_INPUT,
	               "--straggler %s: expected RANK:SECONDS with a rank from 0 to %lld and at "
	               "most 3600 seconds, such as 1:0.05",
	               text, (long long)ranks - 1);
}
