/*
 * The speed at which programs and problems are read.
 *
 *   bench/read [FILE ...]      default: tests/programs/NAME.hlo.gz, tests/problems/NAME.json.gz
 *
 * MB/s are 10^6 bytes of text per second of processor time, of the best round (the readers have one
 * thread; other processes do not count).
 *
 * Programs are unpacked once and parsed from memory. "parse" is all of sw_read_hlo, verifier
 * included; "touch" is one pass over the same bytes that counts the lines (memchr): the bound that
 * memory and the machine set. "memory" is the program's own; the last line has the whole process's
 * peak.
 *
 * Problems (names with ".json") are read from the file, unpacking included, as `shardwright solve`
 * does; "unpack" is that part alone. "memory" is the increase of the process's peak by reading.
 */
#include "bench_read.h"
#include "frontend/frontend.h"

#include <glob.h>
#include <stdlib.h>
#include <string.h>

#include "common/cpu.h"

static size_t count_lines(const char *text, size_t length)
{
	size_t lines = 0;
	for (const char *at = text; (at = memchr(at, '\n', (size_t)(text + length - at))) != NULL;
	     at++)
		lines++;
	return lines;
}

static double program_bytes(const sw_program *program)
{
	return (double)(program->arena.bytes + program->names.keys.bytes +
	                program->ops.cap * sizeof(sw_op) + program->values.cap * sizeof(sw_value));
}

static sw_status parse_rounds(const char *path, const char *text, size_t length, double *best_s,
                              sw_program **program, sw_error *err)
{
	for (int round = 0; round < ROUNDS; round++) {
		sw_program_free(*program);
		*program = NULL;
		double start = cpu_now_s();
		sw_status status = sw_read_hlo(text, length, path, program, err);
		if (status != SW_OK)
			return status;
		*best_s = SW_MIN(*best_s, cpu_now_s() - start);
	}
	return SW_OK;
}

static void add_row(sw_table *table, const char *path, size_t length, const sw_program *program,
                    double parse_s, double touch_s, size_t lines)
{
	const char *slash = strrchr(path, '/');
	double megabytes = (double)length / 1e6, mb_per_s = megabytes / parse_s;
	sw_table_cell(table, "%s", slash ? slash + 1 : path);
	sw_table_cell(table, "%.2f", megabytes);
	sw_table_cell(table, "%zu", lines);
	sw_table_cell(table, "%zu", program->ops.len);
	sw_table_cell(table, "%.2f", parse_s * 1e3);
	sw_table_cell(table, "%.0f", mb_per_s);
	sw_table_cell(table, "%.0f", (double)program->ops.len / parse_s / 1e3);
	sw_table_cell(table, "%.4f", touch_s / parse_s);
	sw_table_cell(table, "%.1f", program_bytes(program) / (double)length);
}

static sw_status bench_file(sw_table *table, const char *path, sw_error *err)
{
	char *text = NULL;
	size_t length = 0;
	sw_program *program = NULL;
	sw_status status = sw_file_read(path, &text, &length, err);
	if (status != SW_OK)
		return status;
	double touch_s = 1e9, parse_s = 1e9;
	size_t lines = 0;
	for (int round = 0; round < ROUNDS; round++) {
		double start = cpu_now_s();
		lines = count_lines(text, length);
		touch_s = SW_MIN(touch_s, cpu_now_s() - start);
	}
	status = parse_rounds(path, text, length, &parse_s, &program, err);
	if (status == SW_OK)
		add_row(table, path, length, program, parse_s, touch_s, lines);
	sw_program_free(program);
	free(text);
	return status;
}

typedef struct bench {
	sw_table programs, problems;
} bench;

static bool is_problem(const char *path)
{
	const char *slash = strrchr(path, '/');
	return strstr(slash ? slash : path, ".json") != NULL;
}

/* Problems come first: the memory that programs leave behind would hide that of the problems. */
static sw_status measure_files(bench *b, char **paths, size_t n, sw_error *err)
{
	sw_status status = SW_OK;
	for (size_t i = 0; i < n && status == SW_OK; i++)
		if (is_problem(paths[i]))
			status = bench_problem(&b->problems, paths[i], err);
	for (size_t i = 0; i < n && status == SW_OK; i++)
		if (!is_problem(paths[i]))
			status = bench_file(&b->programs, paths[i], err);
	return status;
}

static void print_tables(const bench *b)
{
	sw_text text = {0};
	if (b->programs.cells.len > (size_t)b->programs.columns) {
		sw_table_add_to(&b->programs, &text);
		sw_text_add(&text, "peak memory of the process: ");
		sw_text_add_bytes(&text, (double)sw_peak_memory_bytes());
		sw_text_add(&text, "\n");
	}
	if (b->problems.cells.len > (size_t)b->problems.columns) {
		sw_text_add(&text, text.len ? "\n" : "");
		sw_table_add_to(&b->problems, &text);
	}
	if (text.len)
		fputs(text.data, stdout);
	sw_text_clear(&text);
}

int main(int argc, char **argv)
{
	static const char *const headings[] = {"file",  "MB",          "lines",
	                                       "ops",   "parse ms",    "MB/s",
	                                       "kop/s", "touch/parse", "memory/text"};
	bench b;
	sw_error err = {0};
	glob_t found = {0};
	if (argc < 2) {
		glob(SW_SOURCE_DIR "/tests/programs/*.hlo.gz", 0, NULL, &found);
		glob(SW_SOURCE_DIR "/tests/problems/*.json.gz", GLOB_APPEND, NULL, &found);
	}
	char **paths = argc < 2 ? found.gl_pathv : argv + 1;
	size_t n = argc < 2 ? found.gl_pathc : (size_t)argc - 1;
	sw_table_init(&b.programs, SW_COUNT(headings), headings);
	sw_table_init(&b.problems, problem_columns, problem_headings);
	sw_status status = measure_files(&b, paths, n, &err);
	if (status == SW_OK)
		print_tables(&b);
	else
		fprintf(stderr, "%s:%d:%d: %s\n", err.file, err.line, err.column, err.message);
	sw_table_clear(&b.programs);
	sw_table_clear(&b.problems);
	globfree(&found);
	return sw_status_exit_code(status);
}
