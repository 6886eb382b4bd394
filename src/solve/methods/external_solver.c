#include "solve/methods/external_solver.h"

#include <assert.h>
#include <stdarg.h>

void external_word(external_command *command, const char *format, ...)
{
	va_list list;
	assert(command->n < (int)SW_COUNT(command->words));
	va_start(list, format);
	vsnprintf(command->words[command->n++], sizeof command->words[0], format, list);
	va_end(list);
}

bool external_assignment(const model *m, const external_answer *answer, int32_t *assignment)
{
	for (size_t n = 0; n < m->nodes.len; n++)
		if (answer->choice[n] < 0 || answer->choice[n] >= m->nodes.data[n].strategies)
			return false;
	if (answer->has_choice)
		model_restore(m, answer->choice, assignment);
	return answer->has_choice;
}
