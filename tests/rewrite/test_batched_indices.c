/* Indices that count the rows in which they stand become batches, and the results stay the same to
 * the bit. */
#include "rewrite/programs.h"


#define SUM                                                                                        \
	"sum { sa = f32[] parameter(0)\n sb = f32[] parameter(1)\n ROOT ss = f32[] add(sa, sb) "   \
	"}\n"
#define ROWS                                                                                       \
	"ENTRY e { x = f32[3,5] parameter(0)\n y = s32[3] parameter(1)\n i = s32[3] "              \
	"iota(), iota_dimension=0\n"
#define COLUMNS(name)                                                                              \
	"  a = s32[3,1] reshape(" name ")\n  b = s32[3,1] reshape(y)\n"                            \
	"  c = s32[3,2] concatenate(a, b), dimensions={1}\n"
#define PICK                                                                                       \
	"  ROOT g = f32[3] gather(x, c), offset_dims={}, collapsed_slice_dims={0,1}, "             \
	"start_index_map={0,1}, index_vector_dim=1, slice_sizes={1,1} }\n"

typedef struct index_case {
	const char *name, *text;
	int32_t batches; /* of the gather or scatter */
} index_case;

static const index_case cases[] = {
	{"rows are counted", "HloModule m\n" ROWS COLUMNS("i") PICK, 1},
	{"negative ones would count from the end",
         "HloModule m\n" ROWS "  zero = s32[] constant(0)\n z = s32[3] broadcast(zero), "
         "dimensions={}\n"
         "  l = pred[3] compare(i, z), direction=LT\n three = s32[] constant(3)\n"
         "  t = s32[3] broadcast(three), dimensions={}\n w = s32[3] add(i, t)\n"
         "  s = s32[3] select(l, w, i)\n" COLUMNS("s") PICK,
         1},
	{"the places are a list",
         "HloModule m\n" ROWS "  s = s32[3] constant({0,1,2})\n" COLUMNS("s") PICK, 1},
	{"a list of other places stays",
         "HloModule m\n" ROWS "  s = s32[3] constant({0,2,1})\n" COLUMNS("s") PICK, 0},
	{"rows that are counted from 1 stay",
         "HloModule m\n" ROWS "  one = s32[] constant(1)\n o = s32[3] broadcast(one), "
         "dimensions={}\n s = s32[3] add(i, o)\n" COLUMNS("s") PICK,
         0},
	{"fewer rows than there are stay",
         "HloModule m\n"
         "ENTRY e { x = f32[4,5] parameter(0)\n y = s32[3] parameter(1)\n i = s32[3] iota(), "
         "iota_dimension=0\n" COLUMNS("i") PICK,
         0},
	{"of a diagonal one column stays an index",
         "HloModule m\n"
         "ENTRY e { x = f32[3,3] parameter(0)\n i = s32[3] iota(), iota_dimension=0\n"
         "  a = s32[3,1] reshape(i)\n c = s32[3,2] concatenate(a, a), dimensions={1}\n" PICK,
         1},
	{"rows of two dimensions, the second of which stands first in the indices",
         "HloModule m\n"
         "ENTRY e { x = f32[2,3,5] parameter(0)\n y = s32[3,2] parameter(1)\n"
         "  i = s32[2] iota(), iota_dimension=0\n j = s32[3,2,1] iota(), iota_dimension=0\n"
         "  a = s32[3,2,1] broadcast(i), dimensions={1}\n b = s32[3,2,1] reshape(y)\n"
         "  c = s32[3,2,3] concatenate(a, j, b), dimensions={2}\n"
         "  ROOT g = f32[3,2] gather(x, c), offset_dims={}, collapsed_slice_dims={0,1,2}, "
         "start_index_map={0,1,2}, index_vector_dim=2, slice_sizes={1,1,1} }\n",
         2},
	{"whole rows are taken out of each batch",
         "HloModule m\n"
         "ENTRY e { x = f32[3,5,4] parameter(0)\n y = s32[3] parameter(1)\n i = s32[3] iota(), "
         "iota_dimension=0\n" COLUMNS(
		 "i") "  ROOT g = f32[3,4] gather(x, c), offset_dims={1}, "
                      "collapsed_slice_dims={0,1}, "
                      "start_index_map={0,1}, index_vector_dim=1, slice_sizes={1,1,4} }\n",
         1},
	{"what is added there",
         "HloModule m\n" SUM ROWS COLUMNS(
		 "i") "  u = f32[3] parameter(2)\n ROOT g = f32[3,5] scatter(x, c, u), "
                      "update_window_dims={}, "
                      "inserted_window_dims={0,1}, scatter_dims_to_operand_dims={0,1}, "
                      "index_vector_dim=1, "
                      "to_apply=sum }\n",
         1},
};

static void fill(sw_tensor tensor, sw_rng *rng)
{
	sw_type type = tensor.shape.type;
	for (int64_t e = 0; e < sw_shape_elements(tensor.shape); e++)
		sw_element_set(type, sw_tensor_data(tensor), e,
		               type == SW_F32 ? sw_rng_unit(rng)
		                              : (double)sw_rng_below(rng, 7) - 1);
}

static int32_t batches_of(const sw_program *program)
{
	for (size_t i = 0; i < program->ops.len; i++) {
		const sw_op *op = &program->ops.data[i];
		if (op->opcode == SW_OP_GATHER || op->opcode == SW_OP_SCATTER)
			return op->attrs->index.operand_batch.n;
	}
	return -1;
}

static void rows_that_are_counted_are_batches(void **state)
{
	(void)state;
	for (size_t i = 0; i < SW_COUNT(cases); i++) {
		print_message("%s\n", cases[i].name);
		sw_program *out = same_canonical(cases[i].text, 5, fill);
		assert_int_equal(batches_of(out), cases[i].batches);
		sw_program_free(out);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_that_are_counted_are_batches),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
