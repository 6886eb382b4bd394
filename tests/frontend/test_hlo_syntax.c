/* Each element of the grammar: it is read, it has the right meaning, and printing preserves it. */
#include "frontend/helpers.h"

#include <string.h>

/* Instructions of an entry. All are read, printed and read again. */
static const char *const bodies[] = {
	/* names */
	"  %a = f32[] parameter(0)",
	"  ROOT a.b-c_1 = f32[] parameter(0)",
	"  %0 = f32[] parameter(0)\n  %1 = f32[] negate(%0)",
	"  a = f32[] parameter(0)\n  ROOT = f32[] negate(a)",
	"  a = f32[] parameter(0)\n  add = f32[] add(a, a)\n  ROOT e = f32[] add(add, a)",
	/* white space and comments */
	"a=f32[]parameter(0)ROOT b=f32[]negate(a)",
	"\ta\r\n=\r\nf32 [ ] parameter ( 0 ) , metadata = { op_name = \"x\" }",
	"/* one */a /*two*/ = // three\n f32[2/*four*/] parameter(/**/0)// five",
	/* shapes */
	"  a = f32[2,3]{1,0} parameter(0)",
	"  a = f32[2,3]{1,0:T(8,128)(2,1)S(1)} parameter(0)",
	"  a = f32[2,3]{0,1:D(D,C)L(2)#(u32)*(u8)E(4)} parameter(0)",
	"  a = s4[2]{0:E(4)} parameter(0)",
	"  a = f32[<=8,3] parameter(0)\n  ROOT b = f32[<=8,3] negate(a)",
	"  a = () parameter(0)",
	"  a = (f32[2], ((s32[]), ())) parameter(0)\n  b = ((s32[]), ()) get-tuple-element(a), "
	"index=1\n"
	"  c = (s32[]) get-tuple-element(b), index=0\n  ROOT d = s32[] get-tuple-element(c), "
	"index=0",
	"  a = token[] after-all()\n  b = opaque[] custom-call(a), custom_call_target=\"t\"",
	"  a = f32[1,2,1,2,1,2,1,2,1,2,1,2,1,2,1,2] parameter(0)",
	"  a = f32[0,4] parameter(0)\n  ROOT b = f32[0,4] negate(a)",
	/* operands */
	"  a = f32[2]{0} parameter(0)\n  b = f32[2] add(f32[2]{0} %a, f32[2] a)",
	"  a = f32[] parameter(0)\n  b = f32[] add(negate(a), f32[] abs(multiply(a, a)))",
	"  a = f32[] add(f32[] parameter(0), f32[] constant(2))",
	"  a = (f32[], s32[]) parameter(0)\n  b = (f32[], s32[]) opt-barrier((f32[], s32[]) a)",
	"  a = f32[] parameter(0)\n  b = ((f32[], f32[]), f32[]) tuple((f32[], f32[]) tuple(a, a), "
	"a)",
	"  a = f32[] parameter(0)\n  b = (f32[], (f32[])) tuple(a, tuple(a))",
	/* tuples */
	"  a = f32[] parameter(0)\n  t = (f32[], f32[]) tuple(a, a)\n  ROOT b = f32[] "
	"get-tuple-element(t), index=1",
	"  t = () tuple()",
	"  a = f32[] parameter(0)\n  t = (f32[]) tuple(a)\n  c = (f32[]) copy(t)",
	"  a = f32[] parameter(0)\n  c = (f32[], opaque[]) custom-call(a), "
	"custom_call_target=\"t\"\n"
	"  ROOT g = opaque[] get-tuple-element(c), index=1",
	"  a = f32[] parameter(0)\n  t = (f32[], f32[]) tuple(a, a)\n"
	"  ROOT c = f32[] custom-call(t, a, t), custom_call_target=\"t\"",
	"  a = f32[] parameter(0)\n  t = (f32[], ()) tuple(a, tuple())\n  ROOT c = () "
	"unknown-thing(t, t)",
	/* attributes that are kept */
	"  a = f32[] parameter(0), sharding={replicated}",
	"  a = f32[] parameter(0), sharding={devices=[2,1,4]<=[2,4]T(1,0) last_tile_dim_replicate}",
	"  a = f32[] parameter(0), sharding={mesh['x'=2,'y'=2], [{'y'}, {}], replicated={'x'}}",
	"  a = f32[] parameter(0), frontend_attributes={a=\"}\",b=\"\\\"\"}, x={[(\"]\")]}",
	"  a = f32[] parameter(0), backend_config={\"k\":{\"n\":\"5\"},\"l\":[1,2]}, y=\"text\", "
	"z=-1.5e3",
	"  a = f32[] parameter(0), parameter_replication={false}",
	"  a = f32[] parameter(0)\n  b = f32[] negate(a), control-predecessors={a}\n"
	"  ROOT c = f32[] abs(b), control-predecessors={%a, %b}",
	"  a = f32[] parameter(0), metadata={op_type=\"t\" "
	"op_name=\"jit(f)/\\\"a\\\"\\\\\\n\\303\\251\" "
	"x={1,2} y=true}",
	"  a = f32[] parameter(0), metadata={}",
	"  a = f32[] parameter(0), metadata={op_name=\"no UTF-8: \\377\"}",
	"  a = f32[] parameter(0), literal=/*c*/{1, /*index=5*/2}",
	/* attributes that are understood */
	"  a = f32[] parameter(0)\n  p = f32[] pad(a, a), padding=",
	"  a = f32[2,2] parameter(0)\n  z = f32[] constant(0)\n  p = f32[1,5] pad(a, z), "
	"padding=-1_0x0_1_2",
	"  a = f32[] parameter(0)\n  s = f32[] slice(a), slice={}",
	"  a = f32[8] parameter(0)\n  s = f32[2] slice(a), slice={[ 1 : 8 : 4 ]}",
	"  a = f32[2,3] parameter(0)\n  b = f32[4,3] parameter(1)\n"
	"  d = f32[2,4] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={1}, "
	"operand_precision={highest,default}",
	"  a = f32[2,3] parameter(0)\n  b = f32[5] parameter(1)\n  d = f32[2,3,5] dot(a, b)",
	"  a = f32[2,1,8] parameter(0)\n  k = f32[3,1,2] parameter(1)\n  c = f32[2,2,14] "
	"convolution(a, "
	"k), "
	"window={size=3 pad=2_3 lhs_dilate=2 rhs_dilate=3 rhs_reversal=1}, dim_labels=bf0_0io->bf0",
	"  a = f32[2,3] parameter(0)\n  k = f32[3,4] parameter(1)\n  c = f32[2,4] convolution(a, "
	"k), "
	"dim_labels=bf_io->bf",
	"  a = f32[4,8] parameter(0)\n  k = f32[2,8] parameter(1)\n"
	"  c = f32[4,8] convolution(a, k), dim_labels=bf_io->bf, feature_group_count=4",
	"  a = f32[4] parameter(0)\n  b = f32[4] all-to-all(a), replica_groups={{0,1},{2,3}}, "
	"dimensions={0}",
	"  a = f32[4] parameter(0)\n  b = f32[4] collective-permute(a), source_target_pairs={}",
	"  a = f32[4] parameter(0)\n  b = f32[4] collective-broadcast(a), "
	"replica_groups={{0,1,2},{3}}",
};

static void every_element_survives_printing(void **state)
{
	(void)state;
	for (size_t i = 0; i < SW_COUNT(bodies); i++)
		check_entry(bodies[i]);
}

/* ---- modules ---------------------------------------------------------------------------- */

#define F "f {\n  p = f32[] parameter(0)\n}\n"

static const char *const modules[] = {
	"HloModule m ENTRY e { ROOT a = f32[] parameter(0) }",
	"\n\n// first\nHloModule m-1.x_y\n" F,
	"HloModule m, entry_computation_layout={(f32[]{:T(256)})->f32[]}\n" F,
	"HloModule m, input_output_alias={ {}: (0, {}, must-alias) }\n" F,
	"HloModule m, input_output_alias={ {}: 0 }, buffer_donor={}\n" F,
	"HloModule m, is_scheduled=true, alias_passthrough_params=true, x={a={b=[1,2]}}, "
	"num_partitions=8\n" F,
	"HloModule m\nFileNames\nFunctionNames\n1 \"}{\"\nFileLocations\nStackFrames\n" F,
	"HloModule m\nFileNames {\n  p = f32[] parameter(0)\n}\n",
	"HloModule m\nENTRY {\n  p = f32[] parameter(0)\n}\n",
	"HloModule m\n%f (p: f32[], q: (f32[2]{0}, ())) -> (f32[], f32[]) {\n  p = f32[] "
	"parameter(0)\n"
	"  q = (f32[2], ()) parameter(1)\n  ROOT t = (f32[], f32[]) tuple(p, p)\n}, "
	"execution_thread=\"host\", x=y\n",
	"HloModule m\nf () -> f32[2]{0} {\n  c = f32[2] constant({1, 2})\n}\n",
	"HloModule m\nf () -> f32[] {\n  c = f32[] constant(1)\n}\n",
	/* the same names in two computations, and a computation's name for an instruction */
	"HloModule m\nf {\n  p = f32[] parameter(0)\n}\ng {\n  p = f32[] parameter(0)\n"
	"  ROOT f = f32[] call(p), to_apply=%f\n}\n",
	/* parameters out of order */
	"HloModule m\nf {\n  ROOT b = s32[] parameter(1)\n  a = f32[] parameter(0)\n}\ng {\n  x = "
	"f32[] "
	"parameter(0)\n"
	"  y = s32[] parameter(1)\n  ROOT r = s32[] call(x, y), to_apply=f\n}\n",
	/* the entry need not be last */
	"HloModule m\nENTRY g {\n  a = s32[] parameter(0)\n}\n" F,
};

static void every_module_survives_printing(void **state)
{
	(void)state;
	for (size_t i = 0; i < SW_COUNT(modules); i++)
		check_text(modules[i]);
}

static void the_entry_is_marked_or_last(void **state)
{
	(void)state;
	sw_program *program = read_text("HloModule m\nENTRY g {\n  a = s32[] parameter(0)\n}\n" F);
	assert_string_equal(sw_entry(program)->name, "g");
	sw_program_free(program);
	program = read_text("HloModule m\ng {\n  a = s32[] parameter(0)\n}\n" F);
	assert_string_equal(sw_entry(program)->name, "f");
	sw_program_free(program);
}

static void the_root_is_marked_or_last(void **state)
{
	(void)state;
	sw_program *program = read_text(
		"HloModule m\ne {\n  ROOT a = f32[] parameter(0)\n  b = f32[] negate(a)\n}\n");
	assert_int_equal(sw_entry(program)->results.data[0], op_named(program, "a")->first_result);
	sw_program_free(program);
	program =
		read_text("HloModule m\ne {\n  a = f32[] parameter(0)\n  b = f32[] negate(a)\n}\n");
	assert_int_equal(sw_entry(program)->results.data[0], op_named(program, "b")->first_result);
	sw_program_free(program);
}

/* ---- meanings --------------------------------------------------------------------------- */

static void tuples_become_values(void **state)
{
	(void)state;
	sw_program *program =
		read_text("HloModule m\ne {\n  p = (f32[2], (s32[], f32[3])) parameter(0)\n"
	                  "  q = (s32[], f32[3]) get-tuple-element(p), index=1\n"
	                  "  i = s32[] get-tuple-element(q), index=0\n"
	                  "  n = s32[] negate(i)\n"
	                  "  ROOT t = ((s32[], f32[3]), s32[]) tuple(q, n)\n}\n");
	const sw_computation *entry = sw_entry(program);
	const sw_op *p = op_named(program, "p");
	assert_int_equal(program->ops.len, 2);
	assert_int_equal(p->n_results, 3);
	assert_int_equal(op_named(program, "n")->operands[0], p->first_result + 1);
	assert_int_equal(entry->results.len, 3);
	assert_int_equal(entry->results.data[1], p->first_result + 2);
	assert_true(entry->root_tuple);
	sw_program_free(program);
}

static void aliases_count_leaves(void **state)
{
	(void)state;
	sw_program *program = read_text(
		"HloModule m, input_output_alias={ {0,1}: (1, {1}, must-alias), {1}: (0, {}, "
		"may-alias) }, "
		"buffer_donor={ (2, {}) }\ne {\n  a = f32[] parameter(0)\n  b = (s32[], f32[2]) "
		"parameter(1)\n"
		"  c = f32[] parameter(2)\n  x = s32[] get-tuple-element(b), index=0\n"
		"  y = f32[2] get-tuple-element(b), index=1\n"
		"  ROOT r = ((s32[], f32[2]), f32[]) tuple((s32[], f32[2]) tuple(x, y), a)\n}\n");
	assert_int_equal(program->aliases.len, 2);
	assert_int_equal(program->aliases.data[0].output, 1);
	assert_int_equal(program->aliases.data[0].input, 2);
	assert_true(program->aliases.data[0].must);
	assert_int_equal(program->aliases.data[1].output, 2);
	assert_int_equal(program->aliases.data[1].input, 0);
	assert_false(program->aliases.data[1].must);
	assert_int_equal(program->donors.len, 1);
	assert_int_equal(program->donors.data[0], 3);
	sw_program_free(program);
}

static const char *extra_of(const sw_extra *extras, const char *name)
{
	for (; extras; extras = extras->next)
		if (strcmp(extras->name, name) == 0)
			return extras->text;
	return NULL;
}

static void attributes_that_are_not_understood_are_kept(void **state)
{
	(void)state;
	sw_program *program = read_text(
		"HloModule m, is_scheduled=true\ne {\n  a = f32[] parameter(0), sharding={ "
		"mesh['x'=2] , "
		"[] }, "
		"backend_config={\"a\":\"},{\"}, metadata={op_name=\"jit(f)/\\\"x\\\"\" "
		"source_line=3}\n"
		"  ROOT b = f32[2] frobnicate(a), frob={x}\n}, execution_thread=\"host\"\n");
	const sw_op *a = op_named(program, "a"), *b = op_named(program, "b");
	assert_string_equal(a->op_name, "jit(f)/\"x\"");
	assert_string_equal(extra_of(a->extras, "sharding"), "{ mesh['x'=2] , [] }");
	assert_string_equal(extra_of(a->extras, "backend_config"), "{\"a\":\"},{\"}");
	assert_null(extra_of(a->extras, "metadata"));
	assert_string_equal(extra_of(program->extras, "is_scheduled"), "true");
	assert_string_equal(extra_of(sw_entry(program)->extras, "execution_thread"), "\"host\"");
	assert_int_equal(b->opcode, SW_OP_UNKNOWN);
	assert_string_equal(sw_op_opcode_name(b), "frobnicate");
	assert_string_equal(extra_of(b->extras, "frob"), "{x}");
	assert_int_equal(a->line, 3);
	assert_int_equal(b->line, 4);
	sw_program_free(program);
}

static void trip_counts_are_found(void **state)
{
	(void)state;
	sw_program *program = NULL;
	sw_error err = {0};
	assert_int_equal(sw_read_program("tests/frontend/snippets/opcodes.hlo", &program, &err),
	                 SW_OK);
	assert_int_equal(op_named(program, "while")->attrs->loop.trip_count, 5);
	sw_program_free(program);
}

/* ---- replica groups --------------------------------------------------------------------- */

typedef struct group_case {
	const char *text;
	int64_t n_groups, group_size;
	int64_t members[8];
} group_case;

static const group_case groups[] = {
	{"{}", 0, 0, {0}},
	{"{{0,1},{2,3}}", 2, 2, {0, 1, 2, 3}},
	{"{{3,1,0},{2}}", 2, 3, {3, 1, 0, 2, -1, -1}},
	{"[2,2]<=[4]", 2, 2, {0, 1, 2, 3}},
	{"[2,2]<=[2,2]T(1,0)", 2, 2, {0, 2, 1, 3}},
	{"mesh['x'=2,'y'=4] {'y'}", 2, 4, {0, 1, 2, 3, 4, 5, 6, 7}},
	{"mesh['x'=2,'y'=4] {'x'}", 4, 2, {0, 4, 1, 5, 2, 6, 3, 7}},
	{"mesh[x=2,y=4] {y,x}", 1, 8, {0, 4, 1, 5, 2, 6, 3, 7}},
	{"mesh['x'=2,'y'=4] {}", 8, 1, {0, 1, 2, 3, 4, 5, 6, 7}},
	{"mesh['x'=2,'y'=4] {'y':(1)2}", 4, 2, {0, 2, 1, 3, 4, 6, 5, 7}},
	{"mesh['x'=2,'y'=4] {'y':(2)2}", 4, 2, {0, 1, 2, 3, 4, 5, 6, 7}},
	{"mesh['x'=8] {'x':(2)2}", 4, 2, {0, 2, 1, 3, 4, 6, 5, 7}},
	{"mesh['x'=8] {'x':(4)2,'x':(1)2}", 2, 4, {0, 4, 1, 5, 2, 6, 3, 7}},
	{"mesh['x'=2,'y'=2], device_ids=([[3,2],[1,0]]) {'y'}", 2, 2, {3, 2, 1, 0}},
	{"mesh['x'=2,'y'=2], device_ids=([2,2]<=[2,2]T(1,0)) {'y'}", 2, 2, {0, 2, 1, 3}},
};

static void groups_have_these_members(void **state)
{
	(void)state;
	for (size_t i = 0; i < SW_COUNT(groups); i++) {
		const group_case *c = &groups[i];
		sw_text text = {0};
		sw_text_addf(&text,
		             "HloModule m, num_partitions=8\ne {\n  a = f32[4] parameter(0)\n"
		             "  b = f32[4] collective-broadcast(a), replica_groups=%s\n}\n",
		             c->text);
		sw_program *program = read_text(text.data);
		const sw_groups *found = &op_named(program, "b")->attrs->collective.groups;
		assert_int_equal(found->n_groups, c->n_groups);
		assert_int_equal(found->group_size, c->group_size);
		for (int64_t k = 0; k < c->n_groups * c->group_size; k++)
			if (sw_groups_member(found, k / c->group_size, k % c->group_size) !=
			    c->members[k])
				fail_msg("%s: member %lld is wrong", c->text, (long long)k);
		check_round_trip(program, c->text);
		sw_program_free(program);
		sw_text_clear(&text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_element_survives_printing),
		cmocka_unit_test(every_module_survives_printing),
		cmocka_unit_test(the_entry_is_marked_or_last),
		cmocka_unit_test(the_root_is_marked_or_last),
		cmocka_unit_test(tuples_become_values),
		cmocka_unit_test(aliases_count_leaves),
		cmocka_unit_test(attributes_that_are_not_understood_are_kept),
		cmocka_unit_test(trip_counts_are_found),
		cmocka_unit_test(groups_have_these_members),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
