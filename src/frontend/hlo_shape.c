/* Shapes: arrays, tuples, and the trees of tuples. Memory layouts are read for bitcasts alone. */
#include "frontend/hlo.h"

#include <string.h>

/* ---- trees ------------------------------------------------------------------------------ */

const sw_hlo_tree *sw_hlo_make_tree(sw_hlo *reader, size_t first_branch, uint32_t leaves)
{
	sw_hlo_tree *tree = SW_NEW(&reader->scratch, sw_hlo_tree);
	size_t n = reader->branches.len - first_branch;
	const sw_hlo_branch *branches = n ? reader->branches.data + first_branch : NULL;
	tree->children = (uint32_t)n;
	tree->leaves = leaves;
	tree->flat = true;
	for (size_t i = 0; i < n; i++)
		tree->flat = tree->flat && !branches[i].tree;
	if (!tree->flat)
		tree->branches = sw_arena_copy(&reader->scratch, branches, n * sizeof(*branches));
	reader->branches.len = first_branch;
	return tree;
}

sw_id sw_hlo_leaf(const sw_hlo_node *node, uint32_t leaf)
{
	return node->values ? node->values[leaf] : node->first + leaf;
}

bool sw_hlo_child(sw_hlo_node node, int64_t index, sw_hlo_node *child)
{
	const sw_hlo_tree *tree = node.tree;
	if (!tree || index < 0 || index >= tree->children)
		return false;
	sw_hlo_branch branch = {NULL, (uint32_t)index};
	if (!tree->flat)
		branch = tree->branches[index];
	*child = (sw_hlo_node){.tree = branch.tree,
	                       .values = node.values ? node.values + branch.first_leaf : NULL,
	                       .first = node.values ? 0 : node.first + branch.first_leaf,
	                       .op = SW_NO_ID,
	                       .n = branch.tree ? branch.tree->leaves : 1};
	return true;
}

/* ---- arrays ----------------------------------------------------------------------------- */

/* Most shapes of a program have been seen before, so that one look at the cache finds them. */
sw_ints sw_hlo_keep_dims(sw_hlo *reader, const int64_t *dims, int32_t n)
{
	if (n == 0)
		return (sw_ints){0};
	size_t bytes = (size_t)n * sizeof(*dims);
	sw_ints *cached = &reader->dims_cache[sw_hash_bytes(dims, bytes, 0) % SW_HLO_DIMS_CACHE];
	if (cached->n != n || memcmp(cached->v, dims, bytes) != 0)
		*cached = sw_build_ints(reader->program, dims, n);
	return *cached;
}

static sw_status read_dims(sw_hlo *reader, int64_t dims[SW_MAX_RANK], sw_shape *shape)
{
	sw_lexer *lexer = &reader->lexer;
	if (sw_lex_take(lexer, ']'))
		return SW_OK;
	do {
		const char *place = (sw_lex_skip(lexer), lexer->at);
		if (shape->rank == SW_MAX_RANK)
			return sw_lex_fail(lexer, place, "the shape has more than %d dimensions",
			                   SW_MAX_RANK);
		if (sw_lex_take_text(lexer, "<="))
			shape->bounded |= 1u << shape->rank;
		if (sw_lex_peek(lexer) == '?')
			return sw_lex_fail(lexer, place,
			                   "a dimension of unknown size ('?') is not supported");
		int64_t *dim = &dims[shape->rank++];
		SW_TRY(sw_lex_int(lexer, dim));
		if (*dim < 0)
			return sw_lex_fail(lexer, place, "expected a size, found %lld",
			                   (long long)*dim);
	} while (sw_lex_take(lexer, ','));
	return sw_lex_expect(lexer, ']', "',' or ']'");
}

/* Return whether the bytes fit 63 bits. Dimensions of size 0 are left out, because the other sizes
 * must fit by themselves. */
static bool fits(const int64_t *dims, int32_t rank, int64_t element_bytes)
{
	int64_t bytes = SW_MAX(element_bytes, 1);
	for (int32_t i = 0; i < rank; i++)
		if (!sw_mul_i64(bytes, SW_MAX(dims[i], 1), &bytes))
			return false;
	return true;
}

/* Read `{1,0:T(8,128)S(1)}`. A '{' that opens a computation is followed by a name. */
static sw_status read_layout(sw_lexer *lexer, bool before_body, int32_t rank, sw_hlo_layout *read)
{
	*read = (sw_hlo_layout){0};
	if (sw_lex_peek(lexer) != '{')
		return SW_OK;
	if (before_body) {
		const char *brace = lexer->at++;
		char next = sw_lex_peek(lexer);
		lexer->at = brace;
		if (!sw_char_is(next, SW_CHAR_DIGIT) && next != ':' && next != '}')
			return SW_OK;
	}
	sw_span layout;
	SW_TRY(sw_lex_balanced(lexer, &layout));
	*read = sw_hlo_layout_of(layout, rank);
	return SW_OK;
}

static sw_status read_array(sw_hlo *reader, bool before_body)
{
	sw_lexer *lexer = &reader->lexer;
	sw_span word = sw_lex_peek_word(lexer);
	sw_shape shape = {0};
	if (!word.length)
		return sw_lex_expected(lexer, "a shape");
	if (!sw_type_find(word.start, word.length, &shape.type))
		return sw_lex_expected(lexer, "a shape such as f32[2,3]");
	lexer->at += word.length;
	SW_TRY(sw_lex_expect(lexer, '[', NULL));
	int64_t dims[SW_MAX_RANK];
	SW_TRY(read_dims(reader, dims, &shape));
	if (!fits(dims, shape.rank, sw_type_bytes(shape.type)))
		return sw_lex_fail(lexer, word.start,
		                   "the size of this shape in bytes does not fit 63 bits");
	SW_TRY(read_layout(lexer, before_body, shape.rank, &reader->layout));
	shape.dims = sw_hlo_keep_dims(reader, dims, shape.rank).v;
	sw_vec_push(&reader->leaves, shape);
	return SW_OK;
}

/* ---- tuples ----------------------------------------------------------------------------- */

static sw_status read_nested(sw_hlo *reader, bool before_body, int depth, const sw_hlo_tree **tree)
{
	sw_lexer *lexer = &reader->lexer;
	*tree = NULL;
	if (sw_lex_peek(lexer) != '(')
		return read_array(reader, before_body);
	if (depth == SW_HLO_MAX_NESTING)
		return sw_lex_fail(lexer, lexer->at, "tuples nest deeper than %d",
		                   SW_HLO_MAX_NESTING);
	lexer->at++;
	size_t first_leaf = reader->leaves.len, first_branch = reader->branches.len;
	if (sw_lex_peek(lexer) != ')') {
		do {
			sw_hlo_branch branch = {NULL, (uint32_t)(reader->leaves.len - first_leaf)};
			SW_TRY(read_nested(reader, false, depth + 1, &branch.tree));
			sw_vec_push(&reader->branches, branch);
		} while (sw_lex_take(lexer, ','));
	}
	SW_TRY(sw_lex_expect(lexer, ')', "',' or ')'"));
	*tree = sw_hlo_make_tree(reader, first_branch, (uint32_t)(reader->leaves.len - first_leaf));
	return SW_OK;
}

sw_status sw_hlo_read_shape(sw_hlo *reader, bool before_body, sw_hlo_shape *shape)
{
	shape->first = reader->leaves.len;
	SW_TRY(read_nested(reader, before_body, 0, &shape->tree));
	shape->n = (uint32_t)(reader->leaves.len - shape->first);
	return SW_OK;
}

void sw_hlo_drop_shape(sw_hlo *reader, sw_hlo_shape shape)
{
	reader->leaves.len = shape.first;
}
