/*
 * What the files of bench/measured share: a table of measured training steps, the configuration that
 * each row ran in, and what is predicted for it.
 */
#ifndef SW_BENCH_MEASURED_H
#define SW_BENCH_MEASURED_H

#include "pipelined/pipelined.h"

/* ---- a table ---------------------------------------------------------------------------- */

/* A CSV file: cells [rows][columns]; a cell without text is "". */
typedef struct table {
	sw_arena arena;
	const char *path;
	int32_t n_columns, n_rows;
	const char *const *columns; /* [n_columns] */
	const char **cells;         /* [n_rows][n_columns] */
} table;
sw_status table_read(const char *path, table *t, sw_error *err);
void table_clear(table *t);
int32_t table_column(const table *t, const char *name); /* -1: there is none */
/* Return a cell; NULL: there is no such column. */
const char *table_cell(const table *t, int32_t row, const char *name);
/* Add a cell to a line of CSV, in quotes where it needs them. */
void table_add_cell(sw_text *line, const char *cell);

/* ---- configurations --------------------------------------------------------------------- */

#define FULLY_SHARDED 3 /* the stage of ZeRO that splits parameters */

/* Sizes by which Nanotron gives blocks to stages. */
typedef struct llama {
	int64_t layers, hidden, heads, kv_heads, ffn, vocab;
} llama;
typedef struct configuration {
	const char *cluster; /* file */
	int64_t gpus, dp, tp, pp, mbs, microbatches, zero;
	int64_t chunks; /* stages of each rank */
	bool remat, sequence; /* tensor parallelism splits the sequence, too */
	bool ddp; /* gradients are DistributedDataParallel's: summed beside the last microbatch, and in
	           * buckets, which have a copy of them in the type of the weights */
	bool first_rank; /* the memory to predict is that of the first stage */
	bool nanotron;   /* memory is what its allocator reserves */
	bool fsdp;       /* data parallelism is PyTorch's fully sharded one (fsdp.c) */
	const char *does_not_run; /* why the framework refuses it; NULL: it does not */
	/* of blocks that are computed again to their end, their number and width (again.c); else 0 */
	int64_t layers_again, width_again;
	llama llama; /* what Nanotron trains; else 0 */
	int64_t tied; /* one table for tokens and output */
	const char *refusal; /* why the row cannot be planned; NULL: it can */
} configuration;
/* Read a row's configuration; an error names file, line and column. cluster: the file of --cluster;
 * NULL: the one of the table's kind. */
sw_status configuration_of(const table *t, int32_t row, const char *cluster, configuration *c,
                           sw_error *err);
/* Measured seconds and whether the row ran; the columns' names differ between tables. */
const char *measured_seconds(const table *t, int32_t row);
const char *measured_status(const table *t, int32_t row);
void configuration_strategy(const configuration *c, sw_plan_strategy *strategy);

/* ---- programs --------------------------------------------------------------------------- */

/* The programs of a folder (tools/export_programs.py --measured), each read when it is first
 * needed. */
typedef struct subject {
	char path[1024];
	sw_program *program;
	sw_sidecar sidecar;
} subject;
typedef struct library {
	const char *folder;
	json_t *index;
	SW_VEC(subject *) subjects;
} library;
sw_status library_open(const char *folder, library *l, sw_error *err);
void library_close(library *l);
/* Return the program of a row. SW_NO: the index has none for it. */
sw_status library_find(library *l, const table *t, int32_t row, subject **s, sw_error *err);

/* ---- predictions ------------------------------------------------------------------------ */

typedef struct prediction {
	bool supported, fits, refused; /* refused: the framework does not run it */
	double seconds, compute_s, communication_s; /* the parts are 0 with stages */
	double interval; /* half the width of the 90 % interval, relative */
	int64_t peak_bytes;
	char note[192]; /* why it is not supported, or does not run */
} prediction;
/* Plan the program on the cluster exactly as configured, and fill in what is predicted. Return the
 * scheduled program of one device, which the caller frees; NULL: it is not supported. */
sw_program *predict(const subject *s, const sw_cluster *cluster, const configuration *c,
                    prediction *p);

/* Return the first input whose name begins so, and set its whole name; SW_NO_ID: there is none. */
sw_id input_named(const subject *s, const char *beginning, const char **name);

#define MAX_VOCABULARY_PINS 3
/* Under tensor parallelism the table of tokens is split by the vocabulary, and each device looks up
 * the rows that it has, and adds up their gradients (Megatron's VocabParallelEmbedding). Return the
 * number of pins. */
size_t pin_vocabulary(const subject *s, const configuration *c, sw_pin *pins);
/* The same for a configuration with pipeline stages. */
void predict_stages(const subject *s, const sw_cluster *cluster, const configuration *c,
                    prediction *p);

/* Return the seconds that a step takes longer where blocks are computed again to their end: as much
 * of them nothing reads. */
double unread_seconds(const configuration *c, const sw_cluster *cluster);

/* Return the seconds that a step takes longer for what fully sharded data parallelism copies, and
 * for an optimizer of many kernels. */
double fsdp_seconds(const subject *s, const configuration *c, const sw_cluster *cluster);

/* What one device runs of a step under Nanotron. */
typedef struct device_program {
	const sw_program *program;  /* scheduled */
	const sw_stage_part *part;  /* [ops]: of a stage; NULL: there are no stages */
	sw_id loop;                 /* over microbatches; SW_NO_ID: there is one */
	int32_t in_flight;          /* microbatches between their passes, at most */
	bool receives, is_sent;     /* each forward pass receives; each backward one */
	SW_VEC(int64_t) weights;    /* bytes of each, 2 per element */
} device_program;
/* Add the weights among the inputs. roles[i] is that of input i. */
void add_weights(device_program *d, const sw_sidecar *sidecar, const sw_stage_step *step);
/* Return the bytes that PyTorch's allocator reserves on the device at most, and the device's own
 * reserve, and set whether the step fits (play_memory.c). O(ops * microbatches in flight * blocks). */
int64_t play_memory(const configuration *c, const device_program *d, const sw_cluster *cluster,
                    bool *fits);

/* Return the atoms of data parallelism: tensor parallelism is over the innermost devices. */
uint32_t data_atoms(const configuration *c, const sw_atoms *all);
/* Return what of the device's step the plan's data parallelism takes (zero1.c). */
double synchronising_seconds(const device_program *d, const sw_cluster *cluster, uint32_t data);
/* Return the seconds that the sums of gradients by DistributedDataParallel take more than the plan's (ddp.c);
 * 0 where the configuration has others. */
double ddp_seconds(const configuration *c, const device_program *d, const sw_cluster *cluster);
/* Return the seconds that Nanotron's own synchronisation under ZeRO-1 takes more than the plan's, which the
 * device's program has (zero1.c). */
double zero1_seconds(const configuration *c, const device_program *d, const sw_cluster *cluster);

/* Nanotron's stages (nanotron.c): why it refuses a configuration; NULL: it does not. */
const char *nanotron_refuses(const configuration *c);
/* Return the seconds of a step in which its first version with stages looks for messages. */
double looking_seconds(const configuration *c);
/* Which blocks are in which of its stages; the file borrows from the program. Cleared with
 * sw_stage_file_clear. No entries: none are known. */
void nanotron_stages(const configuration *c, const subject *s, sw_stage_file *file);

/* ---- fitting ---------------------------------------------------------------------------- */

/* A measured step: the scheduled program that is played for it, and on which cluster. */
typedef struct fit_case {
	const sw_cluster *cluster;
	const sw_program *scheduled;
	double measured_s, predicted_s;
} fit_case;
/* Find the figures of devices and links under which the steps are predicted best, beginning with
 * those of the clusters, and describe them. O(evaluations * cases * ops). */
sw_status fit(fit_case *cases, size_t n, sw_text *text, sw_error *err);

#endif
