/*
 * frontend: read programs.
 *
 * The reader takes text and gives a verified sw_program. It never aborts: an error carries file,
 * line, column and what was expected. It accepts what JAX and XLA print (docs/formats.md has the
 * grammar): with and without %, layouts, operand shapes and comments; nested operands; the tables
 * that newer versions print at the top. Memory layouts ({1,0:T(8,128)}) are read and dropped: they
 * give the order of bytes on one device, which later stages decide themselves. Unknown attributes
 * are kept as text; unknown opcodes become SW_OP_UNKNOWN. Time and memory are linear in the text;
 * nesting depth is bounded.
 */
#ifndef SW_FRONTEND_H
#define SW_FRONTEND_H

#include "program/program.h"

/* Read HLO text. `file` is only for messages. On success the caller owns *program
 * (sw_program_free). */
sw_status sw_read_hlo(const char *text, size_t length, const char *file, sw_program **program,
                      sw_error *err);

/* The same of StableHLO text (MLIR), in pretty or generic form, as JAX's lower().as_text() and
 * jax.export print it. Function @main is the entry. */
sw_status sw_read_stablehlo(const char *text, size_t length, const char *file, sw_program **program,
                            sw_error *err);

/* The same of a serialised HloModuleProto, or HloProto: compiler_ir("hlo")
 * .as_serialized_hlo_module_proto() of JAX, or a dump of XLA. An error names a byte of it. */
sw_status sw_read_hlo_proto(const char *data, size_t length, const char *file, sw_program **program,
                            sw_error *err);

/* Read a file, plain or gzip. The format is recognised by the content. HLO text and protobufs and
 * StableHLO text are read; bytecode is recognised and refused with a clear error. The program's
 * aliases become the pairs of its state (sw_state_pair). HLO text that XLA compiled for several
 * devices, which cuts an input, is refused. */
sw_status sw_read_program(const char *path, sw_program **program, sw_error *err);
/* The same, of the contents of the file. */
sw_status sw_read_program_text(const char *text, size_t length, const char *path,
                               sw_program **program, sw_error *err);

/* Set program->aliases to the pairs of results and inputs that are one state, and
 * program->state_note to what was assumed. The sidecar beside `path` wins; then input_output_alias
 * unless the ops contradict it; then buffer_donor; without any of them all inputs may be state, and
 * a result replaces the input that it is made from element by element. A sidecar that cannot be
 * read, or does not fit, changes nothing: sw_sidecar_read reports it. */
void sw_state_pair(sw_program *program, const char *path);

/* ---- sidecar: names of a program's inputs and outputs, and how to fill inputs ----------- */

typedef enum sw_role {
	SW_ROLE_PARAMETER,
	SW_ROLE_MOMENT,
	SW_ROLE_COUNTER,
	SW_ROLE_DATA,
	SW_ROLE_LOSS,
	SW_ROLE_OTHER,
	/* what codecs of gradients keep for the next step: by device, in the leading dimension; of
	 * the sum */
	SW_ROLE_RESIDUAL,
	SW_ROLE_SUM_RESIDUAL
} sw_role;
const char *sw_role_word(sw_role role); /* as the sidecar has it: "parameter", ... */

typedef enum sw_fill_kind {
	SW_FILL_ZEROS,
	SW_FILL_ONES,
	SW_FILL_CONSTANT,
	SW_FILL_NORMAL,
	SW_FILL_UNIFORM,
	SW_FILL_INTEGERS,
	SW_FILL_VALUES
} sw_fill_kind;
/* What an input is of an input of the program as it was read: the same numbers are drawn for both.
 */
typedef struct sw_fill_part {
	const char *whole; /* name of that input */
	uint32_t input;    /* its number */
	int32_t axis;      /* the part is [start, ...) of `size` along it; -1: it is the whole */
	int64_t start, size;
} sw_fill_part;
typedef struct sw_fill {
	sw_fill_kind kind;
	double a, b; /* constant: a; normal: mean a, deviation b; uniform [a, b); integers [a, b) */
	/* values: of each element, in row-major order; else NULL */
	const double *values;
	int64_t n_values;
	const sw_fill_part *part; /* NULL: the input is one of the program as it was read */
} sw_fill;
/* Copy what a fill refers to into the arena. */
void sw_fill_keep(sw_fill *fill, sw_arena *arena);

typedef struct sw_input_info {
	const char *name;
	sw_role role;
	sw_fill init;   /* how a real run initialises the input */
	sw_fill random; /* how a random test fills the input */
	bool arrives;   /* it comes from other devices, in each step: from another stage */
} sw_input_info;
typedef struct sw_output_info {
	const char *name;
	sw_role role;
	int32_t input; /* the aliased input, -1: none */
} sw_output_info;

typedef struct sw_sidecar {
	sw_arena arena;
	double learning_rate; /* 0: unknown */
	uint32_t n_inputs, n_outputs;
	sw_input_info *inputs;   /* per flattened entry input */
	sw_output_info *outputs; /* per flattened entry result */
	int32_t tokens_input;    /* the input that takes tokens, -1: none */
	int64_t vocabulary;
} sw_sidecar;

/* Read a sidecar file (docs/programs.md) and check it against the program: counts, shapes,
 * types. */
sw_status sw_sidecar_read(const char *path, const sw_program *program, sw_sidecar *sidecar,
                          sw_error *err);
/* Fill a sidecar from the program alone. Names come from op metadata or parameter names; state from
 * the aliases; float inputs are normal(0, 0.02), integers and pred 0 or 1; data of which a root
 * is taken is uniform in [0.5, 1.5). Roles: aliased -> PARAMETER (MOMENT if the name says
 * mu/nu/momentum, a root is taken of its next value, or it stays non-negative, as second moments
 * do; COUNTER if it holds integers), other -> DATA.
 * Moments start as zeros, and tests fill them with small positive numbers; scalars that stay
 * non-negative start as a half; counters start at 0. An output that is not state is the LOSS if it
 * is the only real scalar, else OTHER. */
void sw_sidecar_default(const sw_program *program, sw_sidecar *sidecar);
/* Append the path of a file beside a program: that of the program without .gz and .hlo, .mlir,
 * .stablehlo or .pb, and then the ending. A sidecar's is .inputs.json. */
void sw_path_beside(const char *program_path, const char *ending, sw_text *path);
void sw_sidecar_path(const char *program_path, sw_text *path);
/* Read the file beside a program, NAME.inputs.json for NAME.hlo[.gz]; if there is none, use the
 * default. */
sw_status sw_sidecar_find(const char *program_path, const sw_program *program, sw_sidecar *sidecar,
                          sw_error *err);
/* Return the result that the sidecar marks as the loss, otherwise the only scalar of a float type
 * that is not state; -1: there is none, or are several. */
int32_t sw_find_loss(const sw_program *program, const sw_sidecar *sidecar);
/* Write a sidecar of the program to a file, which reads back equal. */
sw_status sw_sidecar_write(const char *path, const sw_program *program, const sw_sidecar *sidecar,
                           sw_error *err);
void sw_sidecar_clear(sw_sidecar *sidecar);

#endif
