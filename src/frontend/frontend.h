/*
 * frontend: read programs.
 *
 * Takes text, gives a verified sw_program. Never aborts: an error carries file, line, column and
 * what was expected. The reader accepts what JAX and XLA print (docs/formats.md has the grammar):
 * with and without %, layouts, operand shapes and comments; nested operands; newer tables at the
 * top. Layouts ({1,0:T(8,128)}) are read and dropped: they say how bytes lie on one device, which
 * is decided anew here. Unknown attributes are kept as text; unknown opcodes become SW_OP_UNKNOWN.
 * Time and memory are linear in the text; nesting depth is bounded.
 */
#ifndef SW_FRONTEND_H
#define SW_FRONTEND_H

#include "program/program.h"

/* HLO text. `file` is only for messages. On success *program is the caller's (sw_program_free). */
sw_status sw_read_hlo(const char *text, size_t length, const char *file, sw_program **program,
                      sw_error *err);

/* A file, plain or gzip: recognises the format by its content (now: HLO text; StableHLO text and
 * protobuf are told apart and refused with a clear line). */
sw_status sw_read_program(const char *path, sw_program **program, sw_error *err);

/* ---- sidecar: what a program's inputs and outputs are called, and how to fill them ------ */

typedef enum sw_role {
	SW_ROLE_PARAMETER,
	SW_ROLE_MOMENT,
	SW_ROLE_COUNTER,
	SW_ROLE_DATA,
	SW_ROLE_LOSS,
	SW_ROLE_OTHER
} sw_role;

typedef enum sw_fill_kind {
	SW_FILL_ZEROS,
	SW_FILL_ONES,
	SW_FILL_CONSTANT,
	SW_FILL_NORMAL,
	SW_FILL_UNIFORM,
	SW_FILL_INTEGERS
} sw_fill_kind;
typedef struct sw_fill {
	sw_fill_kind kind;
	double a, b; /* constant: a; normal: mean a, deviation b; uniform [a, b); integers [a, b) */
} sw_fill;

typedef struct sw_input_info {
	const char *name;
	sw_role role;
	sw_fill init;   /* how a real run starts it */
	sw_fill random; /* how a random test fills it */
} sw_input_info;
typedef struct sw_output_info {
	const char *name;
	sw_role role;
	int32_t input; /* aliased input, -1: none */
} sw_output_info;

typedef struct sw_sidecar {
	sw_arena arena;
	double learning_rate; /* 0: unknown */
	uint32_t n_inputs, n_outputs;
	sw_input_info *inputs;   /* per flattened entry input */
	sw_output_info *outputs; /* per flattened entry result */
	int32_t tokens_input;    /* which input takes tokens, -1: none */
	int64_t vocabulary;
} sw_sidecar;

/* Reads FILE (docs/programs.md) and checks it against the program: counts, shapes, types. */
sw_status sw_sidecar_read(const char *path, const sw_program *program, sw_sidecar *sidecar,
                          sw_error *err);
/* What can be known without a file: names from op metadata or parameter names; state from the
 * aliases; float inputs normal(0, 0.02), integers and pred 0 or 1. Roles: aliased -> PARAMETER
 * (MOMENT if the name says mu/nu/momentum, COUNTER if it holds integers), other -> DATA. Moments
 * start as zeros, tests fill them with small positive numbers; counters start at 0. An output that
 * is no state is the LOSS if it is the only real scalar, else OTHER. */
void sw_sidecar_default(const sw_program *program, sw_sidecar *sidecar);
/* The file beside a program: NAME.hlo[.gz] -> NAME.inputs.json if it exists, else the default. */
sw_status sw_sidecar_find(const char *program_path, const sw_program *program, sw_sidecar *sidecar,
                          sw_error *err);
void sw_sidecar_clear(sw_sidecar *sidecar);

#endif
