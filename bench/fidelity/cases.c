/* The programs are of different kinds: dense layers, attention, convolutions, experts, recurrent
 * cells; small steps and long ones. */
#include "fidelity.h"

#include <string.h>

static const char *const real_programs[] = {"mlp", "gpt-tiny", "resnet-tiny", "gpt", NULL};
static const char *const paced_programs[] = {"mlp", "lstm-lm-tiny", "moe-mixtral-tiny", "gpt",
                                             NULL};
static const char *const unequal_programs[] = {"odd-tiny", "unet-tiny", "gpt", NULL};

static const char *const of_two[] = {"dp", "zero1", "zero3", "megatron:tp=2", "auto", NULL};
static const char *const of_four[] = {"dp", "zero1", "zero3", "megatron:tp=4", "auto", NULL};
static const char *const of_six[] = {"dp", "zero1", "zero3", "auto", NULL};

const lab_case all_labs[] = {
	{"lab-2x1", "clusters/lab-2x1.yaml", false, real_programs, of_two},
	{"lab-4x1", "clusters/lab-4x1.yaml", true, paced_programs, of_four},
	{"lab-2x4", "clusters/lab-2x4.yaml", true, paced_programs, of_four},
	{"lab-unequal", "clusters/lab-unequal.yaml", true, unequal_programs, of_six},
};
const size_t n_labs = SW_COUNT(all_labs);

static const char *const transformer[] = {"gpt", NULL};
static const char *const eight[] = {
	"dp",    "zero1",         "zero3", "megatron:tp=2", "megatron:tp=4", "megatron:tp=8",
	"summa", "axonn:2,2,1,2", NULL};
static const char *const with_variables[] = {"mlp", "lstm-lm-tiny", "gpt", NULL};
static const char *const of_variables[] = {
	"dp",       "ps",      "ps:balanced",       "ps:balanced,proxy", "ps:partitioned",
	"parallax", "horovod", "allreduce:chunk=4", "ways",              NULL};
const lab_case ways_lab = {"lab-4x1", "clusters/lab-4x1.yaml", true, with_variables, of_variables};
const lab_case figure_4_lab = {"lab-2x4", "clusters/lab-2x4.yaml", true, transformer, eight};

bool is_chosen(const char *list, const char *name)
{
	size_t length = strlen(name);
	for (const char *at = list; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
		if (strncmp(at, name, length) == 0 && (at[length] == ',' || !at[length]))
			return true;
	return !list;
}
