/*
 * The interpreter's time for a step of the recorded fixtures, and its shares by opcode.
 *
 *   bench/interpret [NAME ...]     default: every recorded fixture of tests/programs
 *   bench/interpret --calibrated CLUSTER [--ops] [NAME ...]
 *                                  the cluster file's prediction and the measured time (predict.c)
 *
 * One thread, and processor time, so that a busy machine does not matter. The time of a step is the
 * median of several; the shares come from a separate run in which every op of the entry computation
 * is clocked (a `while` or `call` counts as a whole). The BLAS core is printed since OpenBLAS falls
 * back to a slow one on processors that it does not know; then OPENBLAS_CORETYPE=SkylakeX or
 * Haswell helps.
 */
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "frontend/frontend.h"
#include "interpret/interpret.h"
#include "predict.h"

#define PROGRAMS SW_SOURCE_DIR "/tests/programs/"
enum { TOP = 5, MAX_STEPS = 51 };

static double cpu_s(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

typedef struct profile {
	const sw_program *program;
	double last_s, seconds[SW_OPCODE_COUNT];
} profile;

static void clock_op(void *context, sw_id op, const sw_tensor *results)
{
	profile *p = context;
	double now = cpu_s();
	(void)results;
	p->seconds[sw_op_at(p->program, op)->opcode] += now - p->last_s;
	p->last_s = cpu_s();
}

/* Run one step from the recorded inputs and return its seconds. */
static double step(sw_interpreter *interpreter, const sw_tensor_file *file, uint32_t n_inputs,
                   uint32_t n_outputs, sw_status *status, sw_error *err)
{
	sw_tensor *inputs = sw_alloc(sizeof *inputs * (n_inputs + 1)),
		  *outputs = sw_alloc(sizeof *outputs * (n_outputs + 1));
	for (uint32_t i = 0; i < n_inputs; i++) {
		char name[32];
		snprintf(name, sizeof name, "input.%u", i);
		const sw_tensor *tensor = sw_tensor_file_get(file, name);
		if (tensor)
			inputs[i] = sw_tensor_keep(*tensor);
	}
	double begin = cpu_s();
	*status = sw_interpret(interpreter, inputs, n_inputs, outputs, n_outputs, err);
	double seconds = cpu_s() - begin;
	for (uint32_t i = 0; i < n_outputs; i++)
		sw_tensor_drop(&outputs[i]);
	free(inputs);
	free(outputs);
	return seconds;
}

static int by_value(const void *x, const void *y)
{
	double a = *(const double *)x, b = *(const double *)y;
	return a < b ? -1 : a > b;
}

/* Return the median over at most MAX_STEPS steps or two seconds; the first step is not counted. */
static double median_step(sw_interpreter *interpreter, const sw_tensor_file *file,
                          uint32_t n_inputs, uint32_t n_outputs, sw_status *status, sw_error *err)
{
	double seconds[MAX_STEPS], total = 0;
	int n = 0;
	step(interpreter, file, n_inputs, n_outputs, status, err);
	while (*status == SW_OK && n < MAX_STEPS && total < 2) {
		seconds[n] = step(interpreter, file, n_inputs, n_outputs, status, err);
		total += seconds[n++];
	}
	qsort(seconds, (size_t)n, sizeof *seconds, by_value);
	return n ? seconds[n / 2] : 0;
}

static void describe_top(const profile *p, sw_text *text)
{
	bool shown[SW_OPCODE_COUNT] = {false};
	double total = 0;
	for (int o = 0; o < SW_OPCODE_COUNT; o++)
		total += p->seconds[o];
	for (int i = 0; i < TOP; i++) {
		int best = -1;
		for (int o = 0; o < SW_OPCODE_COUNT; o++) {
			if (!shown[o] && p->seconds[o] > 0 &&
			    (best < 0 || p->seconds[o] > p->seconds[best]))
				best = o;
		}
		if (best < 0)
			return;
		shown[best] = true;
		sw_text_addf(text, "%s%s %.0f%%", i ? ", " : "", sw_opcode_name((sw_opcode)best),
		             100 * p->seconds[best] / total);
	}
}

static sw_status measure(const sw_program *program, const sw_tensor_file *file, const char *name,
                         sw_table *table, sw_error *err)
{
	sw_arena arena;
	const sw_id *values;
	sw_interpreter *plain = NULL, *clocked = NULL;
	profile p = {.program = program};
	sw_interpret_options options = {.blas_threads = 1};
	sw_arena_init(&arena);
	uint32_t n_inputs = sw_program_inputs(program, program->entry, &arena, &values);
	uint32_t n_outputs = (uint32_t)sw_entry(program)->results.len;
	double seconds = 0;
	sw_status status = sw_interpreter_new(program, &options, &plain, err);
	if (status == SW_OK)
		seconds = median_step(plain, file, n_inputs, n_outputs, &status, err);
	options.observe = clock_op;
	options.observe_context = &p;
	if (status == SW_OK)
		status = sw_interpreter_new(program, &options, &clocked, err);
	for (int i = 0; status == SW_OK && i < 2; i++) { /* the second step counts */
		memset(p.seconds, 0, sizeof p.seconds);
		p.last_s = cpu_s();
		step(clocked, file, n_inputs, n_outputs, &status, err);
	}
	if (status == SW_OK) {
		sw_text top = {0}, memory = {0};
		double flops = sw_program_flops(program);
		describe_top(&p, &top);
		sw_text_add_bytes(&memory, (double)sw_interpreter_peak_bytes(plain));
		sw_table_cell(table, "%s", name);
		sw_table_cell(table, "%.2f", seconds * 1e3);
		sw_table_cell(table, "%.2f", flops / seconds / 1e9);
		sw_table_cell(table, "%s", memory.data);
		sw_table_cell(table, "%s", top.data ? top.data : "");
		sw_text_clear(&top);
		sw_text_clear(&memory);
	}
	sw_interpreter_free(plain);
	sw_interpreter_free(clocked);
	sw_arena_clear(&arena);
	return status;
}

static sw_status bench(const char *name, sw_table *table, sw_error *err)
{
	char path[512];
	sw_program *program = NULL;
	sw_tensor_file file;
	snprintf(path, sizeof path, PROGRAMS "%s.hlo.gz", name);
	sw_status status = sw_read_program(path, &program, err);
	if (status != SW_OK)
		return status;
	snprintf(path, sizeof path, PROGRAMS "%s.recorded.safetensors.gz", name);
	status = sw_tensor_file_read(path, &file, err);
	if (status == SW_OK) {
		status = measure(program, &file, name, table, err);
		sw_tensor_file_clear(&file);
	}
	sw_program_free(program);
	return status;
}

static void print_machine(void)
{
	char line[256], model[256] = "unknown processor";
	FILE *f = fopen("/proc/cpuinfo", "r");
	while (f && fgets(line, sizeof line, f)) {
		const char *colon = strchr(line, ':');
		if (strncmp(line, "model name", 10) == 0 && colon) {
			snprintf(model, sizeof model, "%.*s", (int)strcspn(colon + 2, "\n"),
			         colon + 2);
			break;
		}
	}
	if (f)
		fclose(f);
	printf("%s, %d processors; one thread; BLAS for %s\n\n", model, sw_cpu_count(),
	       sw_interpret_blas_core());
}

/* Return the names of all recorded fixtures, in the arena. */
static sw_status find_fixtures(sw_arena *arena, const char *const **names, int *n, sw_error *err)
{
	static const char suffix[] = ".recorded.safetensors.gz";
	glob_t found;
	if (glob(PROGRAMS "*.recorded.safetensors.gz", 0, NULL, &found) != 0)
		return sw_fail(err, SW_ERR_INPUT, "there are no recorded fixtures in " PROGRAMS);
	const char **list = SW_NEW_N(arena, const char *, found.gl_pathc);
	for (size_t i = 0; i < found.gl_pathc; i++) {
		const char *base = strrchr(found.gl_pathv[i], '/') + 1;
		list[i] =
			sw_arena_printf(arena, "%.*s", (int)(strlen(base) - strlen(suffix)), base);
	}
	*names = list;
	*n = (int)found.gl_pathc;
	globfree(&found);
	return SW_OK;
}

static sw_status time_fixtures(const char *const *names, int n, sw_error *err)
{
	static const char *const headings[] = {"fixture", "ms/step", "GFLOP/s", "peak",
	                                       "time by opcode"};
	sw_table table;
	sw_text text = {0};
	sw_status status = SW_OK;
	sw_table_init(&table, (int)SW_COUNT(headings), headings);
	for (int i = 0; status == SW_OK && i < n; i++)
		status = bench(names[i], &table, err);
	sw_table_add_to(&table, &text);
	if (status == SW_OK)
		printf("%s", text.data);
	sw_text_clear(&text);
	sw_table_clear(&table);
	return status;
}

int main(int argc, char **argv)
{
	const char *cluster = NULL, *const * names;
	bool by_opcode = false;
	sw_error err = {0};
	sw_arena arena;
	int at = 1, n;
	sw_status status = SW_OK;
	sw_arena_init(&arena);
	if (at + 1 < argc && strcmp(argv[at], "--calibrated") == 0) {
		cluster = argv[at + 1];
		at += 2;
	}
	if (at < argc && strcmp(argv[at], "--ops") == 0) {
		by_opcode = true;
		at++;
	}
	names = (const char *const *)argv + at;
	n = argc - at;
	if (n == 0)
		status = find_fixtures(&arena, &names, &n, &err);
	print_machine();
	if (status == SW_OK)
		status = cluster ? predict_fixtures(cluster, names, n, by_opcode, &err)
		                 : time_fixtures(names, n, &err);
	if (status != SW_OK)
		fprintf(stderr, "%s: %s\n", err.file[0] ? err.file : "interpret", err.message);
	sw_arena_clear(&arena);
	return sw_status_exit_code(status);
}
