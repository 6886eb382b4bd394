/* Which products reach which, and with how many of their elements. */
#include "test.h"

#include "bound/flows.h"

#include <string.h>

#include "frontend/frontend.h"

#define DOT "lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"

/* A flow that is expected: its ends' names, its bytes, and the class of the sink's first dimension.
 */
typedef struct expected_flow {
	const char *source, *sink;
	double bytes;
	int8_t first_class;
	bool through_state;
} expected_flow;

typedef struct flow_case {
	const char *name, *text;
	expected_flow flows[4]; /* the first without a source ends them */
} flow_case;

static const flow_case cases[] = {
	{"a slice of what was joined has what it cuts out of each part",
         "HloModule m\n"
         "ENTRY e { x = f32[8,8] parameter(0)\n  u = f32[8,4] parameter(1)\n"
         "  v = f32[5,4] parameter(2)\n  a = f32[8,4] dot(x, u), " DOT "  y = f32[8,8] negate(x)\n"
         "  b = f32[8,4] dot(y, u), " DOT "  c = f32[8,8] concatenate(a, b), dimensions={1}\n"
         "  s = f32[8,5] slice(c), slice={[0:8], [0:5]}\n"
         "  ROOT d = f32[8,4] dot(s, v), " DOT "}\n",
         {{"a", "d", 8 * 4 * 4, 0, false}, {"b", "d", 8 * 1 * 4, 0, false}}},
	{"what is not cut out does not flow",
         "HloModule m\n"
         "ENTRY e { x = f32[8,8] parameter(0)\n  u = f32[8,4] parameter(1)\n"
         "  v = f32[4,4] parameter(2)\n  a = f32[8,4] dot(x, u), " DOT "  y = f32[8,8] negate(x)\n"
         "  b = f32[8,4] dot(y, u), " DOT "  c = f32[8,8] concatenate(a, b), dimensions={1}\n"
         "  s = f32[8,4] slice(c), slice={[0:8], [4:8]}\n"
         "  ROOT d = f32[8,4] dot(s, v), " DOT "}\n",
         {{"b", "d", 8 * 4 * 4, 0, false}}},
	{"what may be overwritten does not flow",
         "HloModule m\n"
         "ENTRY e { x = f32[8,8] parameter(0)\n  u = f32[8,4] parameter(1)\n"
         "  v = f32[4,4] parameter(2)\n  n = f32[1,4] parameter(3)\n  i = s32[] parameter(4)\n"
         "  z = s32[] constant(0)\n  a = f32[8,4] dot(x, u), " DOT
         "  c = f32[8,4] dynamic-update-slice(a, n, i, z)\n"
         "  ROOT d = f32[8,4] dot(c, v), " DOT "}\n",
         {{0}}},
	{"a layer of a stack that was updated reaches the next step's product of that layer",
         "HloModule m, input_output_alias={ {0}: (0, {}, may-alias) }\n"
         "ENTRY e { w = f32[2,4,4] parameter(0)\n  x = f32[8,4] parameter(1)\n"
         "  y = f32[8,4] parameter(2)\n  t = f32[4,8] transpose(x), dimensions={1,0}\n"
         "  f = f32[1,4,4] slice(w), slice={[1:2], [0:4], [0:4]}\n  g = f32[4,4] reshape(f)\n"
         "  d = f32[8,4] dot(x, g), " DOT "  a = f32[4,4] dot(t, y), " DOT
         "  n = f32[8,4] subtract(d, y)\n  b = f32[4,4] dot(t, n), " DOT
         "  p = f32[1,4,4] reshape(a)\n  q = f32[1,4,4] reshape(b)\n  z = s32[] constant(0)\n"
         "  o = s32[] constant(1)\n  s = f32[] constant(0)\n"
         "  e0 = f32[2,4,4] broadcast(s), dimensions={}\n"
         "  e1 = f32[2,4,4] dynamic-update-slice(e0, p, z, z, z)\n"
         "  e2 = f32[2,4,4] dynamic-update-slice(e1, q, o, z, z)\n"
         "  u = f32[2,4,4] subtract(w, e2)\n"
         "  ROOT r = (f32[2,4,4], f32[8,4]) tuple(u, d) }\n",
         {{"b", "d", 4 * 4 * 4, 0, true}, {"d", "b", 8 * 4 * 4, 0, false}}},
	{"what is padded flows on, with the zeros beside it",
         "HloModule m\n"
         "ENTRY e { x = f32[8,8] parameter(0)\n  u = f32[8,4] parameter(1)\n"
         "  v = f32[4,4] parameter(2)\n  a = f32[8,4] dot(x, u), " DOT "  o = f32[] constant(0)\n"
         "  c = f32[12,4] pad(a, o), padding=1_3x0_0\n"
         "  ROOT d = f32[12,4] dot(c, v), " DOT "}\n",
         {{"a", "d", 8 * 4 * 4, 0, false}}},
	{"what padding puts apart is not followed",
         "HloModule m\n"
         "ENTRY e { x = f32[8,8] parameter(0)\n  u = f32[8,4] parameter(1)\n"
         "  v = f32[4,4] parameter(2)\n  a = f32[8,4] dot(x, u), " DOT "  o = f32[] constant(0)\n"
         "  c = f32[15,4] pad(a, o), padding=0_0_1x0_0\n"
         "  ROOT d = f32[15,4] dot(c, v), " DOT "}\n",
         {{0}}},
	{"halves of heads flow through a reshape that joins them, and what is cut out after it does not",
         "HloModule m\n"
         "ENTRY e { x = f32[8,8] parameter(0)\n  u = f32[8,4] parameter(1)\n"
         "  v = f32[4,4] parameter(2)\n  w = f32[2,4] parameter(3)\n"
         "  a = f32[8,4] dot(x, u), " DOT "  h = f32[8,2,2] reshape(a)\n"
         "  s = f32[8,2,1] slice(h), slice={[0:8], [0:2], [0:1]}\n"
         "  c = f32[8,2,2] concatenate(s, s), dimensions={2}\n  r = f32[8,4] reshape(c)\n"
         "  d = f32[8,4] dot(r, v), " DOT
         "  t = f32[8,2] slice(r), slice={[0:8], [0:2]}\n  b = f32[8,4] dot(t, w), " DOT
         "  ROOT y = (f32[8,4], f32[8,4]) tuple(d, b) }\n",
         {{"a", "d", 8 * 2 * 4, 0, false}}},
	{"an element of a stack is in one place of it",
         "HloModule m\n"
         "ENTRY e { x = f32[4,8] parameter(0)\n  u = f32[8,4] parameter(1)\n"
         "  v = f32[2,4,4] parameter(2)\n  a = f32[4,4] dot(x, u), " DOT
         "  y = f32[4,8] negate(x)\n  b = f32[4,4] dot(y, u), " DOT
         "  p = f32[1,4,4] reshape(a)\n  q = f32[1,4,4] reshape(b)\n"
         "  c = f32[2,4,4] concatenate(p, q), dimensions={0}\n"
         "  ROOT d = f32[2,4,4] dot(c, v), lhs_batch_dims={0}, rhs_batch_dims={0}, "
         "lhs_contracting_dims={2}, rhs_contracting_dims={1} }\n",
         {{"a", "d", 4 * 4 * 4, SW_PLACED, false}, {"b", "d", 4 * 4 * 4, SW_PLACED, false}}},
};

static const sw_bound_flow *find_flow(const sw_program *program, const sw_bound_flow_list *list,
                                      const expected_flow *expected)
{
	for (size_t f = 0; f < list->n; f++)
		if (!strcmp(sw_op_at(program, list->at[f].source)->name, expected->source) &&
		    !strcmp(sw_op_at(program, list->at[f].sink)->name, expected->sink))
			return &list->at[f];
	return NULL;
}

static void check_flows(const flow_case *c, const sw_program *program,
                        const sw_bound_flow_list *list)
{
	size_t n = 0;
	for (; n < SW_COUNT(c->flows) && c->flows[n].source; n++) {
		const expected_flow *expected = &c->flows[n];
		const sw_bound_flow *flow = find_flow(program, list, expected);
		if (!flow)
			fail_msg("%s: no flow from %s to %s", c->name, expected->source,
			         expected->sink);
		assert_true(flow->bytes == expected->bytes);
		assert_int_equal(flow->sink_class[0], expected->first_class);
		assert_int_equal(flow->through_state, expected->through_state);
		assert_true(flow->share == 1);
	}
	for (size_t f = 0; f < list->n && list->n != n; f++)
		print_message("flow from %s to %s\n", sw_op_at(program, list->at[f].source)->name,
		              sw_op_at(program, list->at[f].sink)->name);
	assert_int_equal(list->n, n);
}

static void flows_are_these(void **state)
{
	(void)state;
	for (size_t i = 0; i < SW_COUNT(cases); i++) {
		sw_program *program;
		sw_sidecar sidecar;
		sw_error err;
		sw_arena arena;
		sw_arena_init(&arena);
		print_message("%s\n", cases[i].name);
		if (sw_read_hlo(cases[i].text, strlen(cases[i].text), "test.hlo", &program, &err))
			fail_msg("%d:%d: %s", err.line, err.column, err.message);
		sw_sidecar_default(program, &sidecar);
		bool *is_product = SW_NEW_N(&arena, bool, program->ops.len + 1);
		for (sw_id id = 0; id < program->ops.len; id++)
			is_product[id] = sw_op_at(program, id)->opcode == SW_OP_DOT;
		sw_bound_flow_list list = sw_bound_flows(
			program, &sidecar, sw_rules_make(program, &arena), is_product, &arena);
		check_flows(&cases[i], program, &list);
		sw_sidecar_clear(&sidecar);
		sw_program_free(program);
		sw_arena_clear(&arena);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(flows_are_these)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
