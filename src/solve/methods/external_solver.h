/* A solver outside this program: how the problem (integer_model.h) is written for it, how it is
 * called, and how its answer is read. Private to solve; the peers of bench/solve are external
 * solvers, too. */
#ifndef SW_SOLVE_EXTERNAL_SOLVER_H
#define SW_SOLVE_EXTERNAL_SOLVER_H

#include "solve/methods/integer_model.h"

/* In the model's units, without its constant. */
typedef struct external_answer {
	int32_t *choice; /* per node; the caller's, who sets all to -1 before */
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
	const char *file; /* name of the problem's file, since some solvers go by its ending */
	/* Write the problem. SW_ERR_INPUT if the solver's format cannot express it. */
	sw_status (*write)(const model *m, FILE *file, sw_error *err);
	/* Write the program's name and arguments, given the paths of the problem and of a file for
	 * the answer. Seconds and gap: 0 for none. */
	void (*command)(external_command *command, const char *problem, const char *answer,
	                double time_s, double gap);
	/* Read the answer from the program's output, and from the answer's file (NULL if it wrote
	 * none). */
	void (*read)(const model *m, const char *printed, FILE *file, external_answer *answer);
} external_solver;

extern const external_solver external_cbc;

/* Turn the answer into an assignment of the problem. False if it does not choose for each node. */
bool external_assignment(const model *m, const external_answer *answer, int32_t *assignment);

#endif
