/* What a peer needs to be told, and to answer. Private to bench/solve. */
#ifndef BENCH_SOLVE_PEERS_H
#define BENCH_SOLVE_PEERS_H

#include "bench.h"
#include "model.h"

/* In the model's units, without its constant. */
typedef struct peer_answer {
	int32_t *choice; /* per node; the caller's, all -1 before */
	bool has_choice, has_bound, optimal, infeasible;
	int64_t bound;
} peer_answer;

/* The words of a command line. */
typedef struct peer_command {
	int n;
	char words[16][512];
} peer_command;
void peer_word(peer_command *command, const char *format, ...) SW_PRINTF(2, 3);

struct peer {
	const char *name;
	const char *file; /* name for the problem's file: toulbar2 goes by its ending */
	/* SW_ERR_INPUT if the peer cannot be told such a problem. */
	sw_status (*write)(const model *m, FILE *file, sw_error *err);
	/* The program and its arguments; paths of the problem and of a file for the answer. */
	void (*command)(peer_command *command, const char *problem, const char *answer, int time_s);
	/* From what the program printed, and from the answer's file if it wrote one (else NULL). */
	void (*read)(const model *m, const char *printed, FILE *file, peer_answer *answer);
};

extern const peer peer_toulbar2, peer_cbc;

#endif
