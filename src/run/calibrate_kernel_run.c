/*
 * A kernel as a program that the interpreter runs: a few equal ops, written from the text of one.
 */
#include "run/calibrate_kernel_run.h"

#include "frontend/frontend.h"
#include "run/ranks.h"

#include <string.h>

static bool is_chained(const kernel *k)
{
	return strstr(k->op, "%P") != NULL;
}

/* Write the name of operand n of op i. */
static void add_operand(sw_text *text, const kernel *k, int i, int n)
{
	if (n == 0 && is_chained(k) && i > 0)
		sw_text_addf(text, "r%d", i - 1);
	else
		sw_text_addf(text, "p%d_%d", i, n);
}

static void substitute(sw_text *text, const kernel *k, const char *template, sw_type type,
                       int64_t size, int i)
{
	for (const char *c = template; *c; c++) {
		if (c[0] != '%') {
			sw_text_add_n(text, c, 1);
			continue;
		}
		if (*++c == 'T')
			sw_text_add(text, sw_type_name(type));
		else if (*c == 'N')
			sw_text_addf(text, "%lld", (long long)size);
		else
			add_operand(text, k, i, *c == 'P' ? 0 : *c - '0');
	}
}

static void write_inputs(const kernel *k, sw_type type, int64_t size, int ops, sw_text *text)
{
	int number = 0;
	for (int i = 0; i < ops; i++)
		for (int n = 0; n < MAX_OPERANDS && k->operands[n]; n++) {
			if (n == 0 && is_chained(k) && i > 0)
				continue;
			sw_text_add(text, "  ");
			add_operand(text, k, i, n);
			sw_text_add(text, " = ");
			substitute(text, k, k->operands[n], type, size, i);
			sw_text_addf(text, " parameter(%d)\n", number++);
		}
}

/* Results that no op reads are the program's outputs. */
static void write_root(const kernel *k, sw_type type, int64_t size, int ops, sw_text *text)
{
	int first = is_chained(k) ? ops - 1 : 0;
	sw_text_add(text, "  ROOT all = (");
	for (int i = first; i < ops; i++) {
		sw_text_add(text, i > first ? ", " : "");
		substitute(text, k, k->result, type, size, i);
	}
	sw_text_add(text, ") tuple(");
	for (int i = first; i < ops; i++)
		sw_text_addf(text, "%sr%d", i > first ? ", " : "", i);
	sw_text_add(text, ")\n}\n");
}

/* Write the same op several times. Each has operands and a result of its own, so that an operand
 * was last accessed some ops ago, as in a step. */
static void write_program(const kernel *k, sw_type type, int64_t size, int ops, sw_text *text)
{
	sw_text_add(text, "HloModule kernel\n");
	substitute(
		text, k,
		"sum {\n  a = %T[] parameter(0)\n  b = %T[] parameter(1)\n  ROOT c = %T[] add(a, "
		"b)\n}\n"
		"less {\n  d = %T[] parameter(0)\n  e = %T[] parameter(1)\n  ROOT f = pred[] "
		"compare(d, e), direction=LT\n}\n"
		"not_less {\n  g = %T[] parameter(0)\n  h = %T[] parameter(1)\n  ROOT i = pred[] "
		"compare(g, h), direction=GE\n}\nENTRY main {\n",
		type, size, 0);
	write_inputs(k, type, size, ops, text);
	for (int i = 0; i < ops; i++) {
		sw_text_addf(text, "  r%d = ", i);
		substitute(text, k, k->result, type, size, i);
		sw_text_add(text, " ");
		substitute(text, k, k->op, type, size, i);
		sw_text_add(text, "\n");
	}
	write_root(k, type, size, ops, text);
}

/* Repeat PERIOD numbers: drawing as many as a large tensor has would take longer than the
 * measurement. */
static void fill(sw_tensor tensor, uint64_t stream)
{
	enum { PERIOD = 4096 };
	sw_type type = tensor.shape.type;
	bool is_index = sw_type_kind_of(type) == SW_KIND_SIGNED;
	int64_t n = sw_shape_elements(tensor.shape), bytes = n * sw_type_bytes(type);
	int64_t done = SW_MIN(n, (int64_t)PERIOD) * sw_type_bytes(type);
	char *data = sw_tensor_data(tensor);
	for (int64_t i = 0; i < SW_MIN(n, (int64_t)PERIOD); i++) {
		double u = sw_random_unit(0, stream, (uint64_t)i);
		sw_element_set(type, data, i, is_index ? (double)(int)(256 * u) : 0.5 + u);
	}
	for (; done < bytes; done *= 2)
		memcpy(data + done, data, (size_t)SW_MIN(done, bytes - done));
}

sw_status kernel_run_init(const kernel *k, sw_type type, int64_t size, int blas_threads,
                          kernel_run *r, sw_error *err)
{
	sw_text text = {0};
	sw_arena arena;
	const sw_id *inputs;
	sw_interpret_options options = {.blas_threads = blas_threads};
	sw_arena_init(&arena);
	write_program(k, type, size, r->ops, &text);
	sw_status status = sw_read_hlo(text.data, text.len, k->what, &r->program, err);
	if (status == SW_OK)
		options.placement = r->placement = sw_placement_new(r->program);
	if (status == SW_OK)
		status = sw_interpreter_new(r->program, &options, &r->interpreter, err);
	r->n_inputs = status == SW_OK
	                      ? sw_program_inputs(r->program, r->program->entry, &arena, &inputs)
	                      : 0;
	for (uint32_t i = 0; i < r->n_inputs && status == SW_OK; i++) {
		status = sw_interpreter_input(r->interpreter, i, &r->inputs[i], err);
		if (status == SW_OK)
			fill(r->inputs[i], i);
	}
	sw_arena_clear(&arena);
	sw_text_clear(&text);
	return status;
}

void kernel_run_clear(kernel_run *r)
{
	sw_tensors_drop(r->inputs, OPS_OF_SMALL * MAX_OPERANDS);
	sw_interpreter_free(r->interpreter);
	sw_placement_free(r->placement);
	if (r->program)
		sw_program_free(r->program);
}

sw_status kernel_run_body(void *context, sw_error *err)
{
	kernel_run *r = context;
	sw_tensor inputs[OPS_OF_SMALL * MAX_OPERANDS], outputs[OPS_OF_SMALL];
	uint32_t n = (uint32_t)sw_entry(r->program)->results.len;
	for (uint32_t i = 0; i < r->n_inputs; i++)
		inputs[i] = sw_tensor_keep(r->inputs[i]);
	sw_status status = sw_interpret(r->interpreter, inputs, r->n_inputs, outputs, n, err);
	for (uint32_t i = 0; i < n && status == SW_OK; i++)
		sw_tensor_drop(&outputs[i]);
	return status;
}
