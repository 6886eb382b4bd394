/* Problems of the solver: each is read in a process of its own, so that its memory peak is its own.
 */
#include "bench_read.h"
#include "solve/contest_problem.h"

#include <math.h>
#include <string.h>

#include "common/child.h"
#include "common/cpu.h"

const char *const problem_headings[] = {"file",      "MB",         "nodes", "edges",
                                        "tables",    "read ms",    "MB/s",  "unpack MB/s",
                                        "memory MB", "memory/text"};
const int problem_columns = SW_COUNT(problem_headings);

typedef struct figures {
	size_t length, nodes, edges, tables;
	double read_s, unpack_s, memory; /* bytes beyond those of the process before */
} figures;

static sw_status read_once(const char *path, figures *f, sw_error *err)
{
	sw_problem problem;
	double start = cpu_now_s();
	sw_status status = sw_problem_read(&problem, path, true, err);
	if (status)
		return status;
	f->read_s = SW_MIN(f->read_s, cpu_now_s() - start);
	f->nodes = problem.nodes.len;
	f->edges = problem.edges.len;
	f->tables = problem.tables.len;
	sw_problem_clear(&problem);
	return SW_OK;
}

/* The lower bound of reading: the bytes alone, unpacked if they are packed. */
static sw_status unpack_once(const char *path, figures *f, sw_error *err)
{
	static char piece[1 << 16];
	sw_source *source;
	size_t got = 1;
	double start = cpu_now_s();
	sw_status status = sw_source_open(path, &source, err);
	if (status)
		return status;
	for (f->length = 0; status == SW_OK && got; f->length += got)
		status = sw_source_read(source, piece, sizeof(piece), &got, err);
	sw_source_close(source);
	f->unpack_s = SW_MIN(f->unpack_s, cpu_now_s() - start);
	return status;
}

static sw_status measure(const char *path, figures *f, sw_error *err)
{
	size_t before = sw_peak_memory_bytes();
	sw_status status = SW_OK;
	*f = (figures){.read_s = 1e9, .unpack_s = 1e9};
	for (int round = 0; round < ROUNDS && status == SW_OK; round++) {
		status = read_once(path, f, err);
		if (round == 0)
			f->memory = (double)(sw_peak_memory_bytes() - before);
	}
	for (int round = 0; round < ROUNDS && status == SW_OK; round++)
		status = unpack_once(path, f, err);
	return sw_error_in_file(err, status, path);
}

/* The figures that a child reports. */
typedef struct finding {
	sw_status status;
	sw_error err;
	figures figures;
} finding;

static void measure_here(const void *path, void *result)
{
	finding *f = result;
	f->status = measure(path, &f->figures, &f->err);
}

/* Read in a process of its own, so that its memory is that of this problem. */
static sw_status measure_apart(const char *path, figures *f, sw_error *err)
{
	finding found = {0};
	char note[96];
	child_end end = child_run(measure_here, path, &found, sizeof(found), INFINITY, 0);
	child_explain(&end, note, sizeof(note));
	if (!end.finished)
		return sw_fail_at(err, SW_ERR_INPUT, path, 0, 0, "reading %s", note);
	*f = found.figures;
	*err = found.err;
	return found.status;
}

sw_status bench_problem(sw_table *table, const char *path, sw_error *err)
{
	figures f;
	const char *slash = strrchr(path, '/');
	sw_status status = measure_apart(path, &f, err);
	if (status != SW_OK)
		return status;
	sw_table_cell(table, "%s", slash ? slash + 1 : path);
	sw_table_cell(table, "%.2f", (double)f.length / 1e6);
	sw_table_cell(table, "%zu", f.nodes);
	sw_table_cell(table, "%zu", f.edges);
	sw_table_cell(table, "%zu", f.tables);
	sw_table_cell(table, "%.1f", f.read_s * 1e3);
	sw_table_cell(table, "%.0f", (double)f.length / 1e6 / f.read_s);
	sw_table_cell(table, "%.0f", (double)f.length / 1e6 / f.unpack_s);
	sw_table_cell(table, "%.1f", f.memory / 1e6);
	sw_table_cell(table, "%.2f", f.memory / (double)f.length);
	return SW_OK;
}
