/* A solver outside this program: how it is told a problem (integer_model.h), called, and
 * understood. Private to solve; the peers of bench/solve are such solvers, too. */
#ifndef SW_SOLVE_EXTERNAL_SOLVER_H
#define SW_SOLVE_EXTERNAL_SOLVER_H

#include "solve/methods/integer_model.h"

/* In the model's units, without its constant. */
typedef struct external_answer {
	int32_t *choice; /* per node; the caller's, all -1 before */
	bool has_choice, has_bound, optimal, infeasible;
	int64_t bound;
} external_answer;

/* The words of a command line. */
typedef struct external_command {
	int n;
	char words[16][512];
} external_command;
void external_word(external_command *command, const char *format, ...) SW_PRINTF(2, 3);

typedef struct external_solver {
	const char *name;
	const char *file; /* name for the problem's file: some go by its ending */
	/* SW_ERR_INPUT if the solver cannot be told such a problem. */
	sw_status (*write)(const model *m, FILE *file, sw_error *err);
	/* The program and its arguments; paths of the problem and of a file for the answer. Seconds
	 * and gap 0: none. */
	void (*command)(external_command *command, const char *problem, const char *answer,
	                double time_s, double gap);
	/* From what the program printed, and from the answer's file if it wrote one (else NULL). */
	void (*read)(const model *m, const char *printed, FILE *file, external_answer *answer);
} external_solver;

extern const external_solver external_cbc;

/* True if there is a choice for each node: then `assignment` is what it means for the problem's. */
bool external_assignment(const model *m, const external_answer *answer, int32_t *assignment);

#endif
