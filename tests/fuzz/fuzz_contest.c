/* The reader of the contest's problems, on any bytes, plain or packed: what it accepts is a problem
 * that the check accepts and the evaluator can evaluate. */
#include "solve/contest_problem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void evaluate_something(const sw_problem *problem)
{
	sw_evaluation evaluation;
	sw_overuse run;
	int32_t *assignment = sw_alloc((problem->nodes.len + 1) * sizeof(*assignment));
	for (size_t n = 0; n < problem->nodes.len; n++)
		assignment[n] = problem->nodes.data[n].strategies - 1;
	sw_problem_evaluate(problem, assignment, &evaluation);
	int32_t runs = sw_problem_overuse(problem, assignment, &run, 1);
	if (evaluation.within ? runs != 0 : runs < 1)
		abort();
	if (runs && run.excess != evaluation.peak_usage - problem->capacity)
		abort();
	free(assignment);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	sw_problem problem;
	sw_error err = {0};
	sw_status status = sw_problem_parse(&problem, (const char *)data, size, &err);
	if (status != SW_OK) {
		if (!err.message[0] || err.code != status || status != SW_ERR_INPUT ||
		    problem.nodes.len)
			abort();
		return 0;
	}
	if (sw_problem_check(&problem, &err) != SW_OK)
		abort();
	evaluate_something(&problem);
	sw_problem_clear(&problem);
	return 0;
}
