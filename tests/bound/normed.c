/*
 * Training steps whose kernels are small: layer norms, biases with gradients that are sums of
 * columns, numbers that are narrowed before products, residual sums, and updates that read one to
 * four arrays for each gradient, which may be clipped by the norm of all. Products read sums and
 * halves put together, too, and parameters may have running means.
 */
#include "bound/programs.h"

enum { SGD, MOMENTUM, ADAM, N_UPDATES };
enum { ONE_ARRAY, SUMS, HALVES, N_READ }; /* what products of f32 read */

typedef struct normed {
	int layers, rows, width, update, read;
	bool narrow; /* products are of bf16 */
	bool residual, norm, bias, clip, mean;
	int *states; /* written so far */
} normed;

static normed draw(sw_rng *rng)
{
	static const int sizes[] = {4, 8, 12, 16, 64, 96, 256, 512};
	return (normed){.layers = 1 + (int)sw_rng_below(rng, 3),
	                .rows = sizes[sw_rng_below(rng, SW_COUNT(sizes))],
	                .width = sizes[sw_rng_below(rng, SW_COUNT(sizes))],
	                .update = (int)sw_rng_below(rng, N_UPDATES),
	                .narrow = sw_rng_below(rng, 2),
	                .residual = sw_rng_below(rng, 2),
	                .norm = sw_rng_below(rng, 4) > 0,
	                .bias = sw_rng_below(rng, 2),
	                .clip = sw_rng_below(rng, 4) == 0,
	                .read = (int)sw_rng_below(rng, N_READ),
	                .mean = sw_rng_below(rng, 4) == 0};
}

/* Write the value `name` of the shape: R of the rows, W of the weight, C of a column per width, P a
 * number per row, S one number. `ops`: the rest of the line. */
static void line(const normed *n, sw_text *text, char shape, bool narrow, const char *name, int i,
                 const char *ops)
{
	const char *type = narrow ? "bf16" : "f32";
	sw_text_addf(text, " %s%d = ", name, i);
	if (shape == 'R' || shape == 'W')
		sw_text_addf(text, "%s[%d,%d] ", type, shape == 'R' ? n->rows : n->width, n->width);
	else if (shape == 'S')
		sw_text_addf(text, "%s[] ", type);
	else
		sw_text_addf(text, "%s[%d] ", type, shape == 'C' ? n->width : n->rows);
	for (; *ops; ops++) /* # is the layer, + the next one */
		if (*ops == '#' || *ops == '+')
			sw_text_addf(text, "%d", i + (*ops == '+'));
		else
			sw_text_addf(text, "%c", *ops);
	sw_text_add(text, "\n");
}

#define SUM_OF_ROWS ", zero), dimensions={1}, to_apply=add.f32"
#define SUM_OF_COLUMNS ", zero), dimensions={0}, to_apply=add.f32"

static void write_norm(const normed *n, sw_text *text, int i)
{
	line(n, text, 'P', false, "nm", i, "reduce(x#" SUM_OF_ROWS);
	line(n, text, 'R', false, "nb", i, "broadcast(nm#), dimensions={0}");
	line(n, text, 'R', false, "nc", i, "subtract(x#, nb#)");
	line(n, text, 'R', false, "nq", i, "multiply(nc#, nc#)");
	line(n, text, 'P', false, "nv", i, "reduce(nq#" SUM_OF_ROWS);
	line(n, text, 'P', false, "nr", i, "rsqrt(nv#)");
	line(n, text, 'R', false, "ns", i, "broadcast(nr#), dimensions={0}");
	line(n, text, 'R', false, "nh", i, "multiply(nc#, ns#)");
	line(n, text, 'R', false, "ng", i, "broadcast(g#), dimensions={1}");
	line(n, text, 'R', false, "y", i, "multiply(nh#, ng#)");
}

/* Write what a product reads for the value `of` of its rows: narrowed, or by way of an op. */
static void write_read(const normed *n, sw_text *text, const char *name, const char *of,
                       const char *beside, int i)
{
	char ops[64];
	int half = n->width / 2;
	if (!n->narrow && n->read == HALVES)
		for (int k = 0; k < 2; k++)
			sw_text_addf(text, " %s%c%d = f32[%d,%d] slice(%s%d), slice={[0:%d], [%d:%d]}\n",
			             name, "lr"[k], i, n->rows, half, of, i, n->rows, k * half,
			             (k + 1) * half);
	if (n->narrow)
		snprintf(ops, sizeof(ops), "convert(%s#)", of);
	else if (n->read == HALVES)
		snprintf(ops, sizeof(ops), "concatenate(%sr#, %sl#), dimensions={1}", name, name);
	else if (n->read == SUMS)
		snprintf(ops, sizeof(ops), "subtract(%s#, %s#)", of, beside);
	else
		snprintf(ops, sizeof(ops), "negate(%s#)", of);
	line(n, text, 'R', n->narrow, name, i, ops);
}

static void write_forward(const normed *n, sw_text *text, int i)
{
	if (n->norm)
		write_norm(n, text, i);
	else
		line(n, text, 'R', false, "y", i, "tanh(x#)");
	write_read(n, text, "u", "y", "x", i);
	line(n, text, 'W', n->narrow, "c", i, n->narrow ? "convert(w#)" : "negate(w#)");
	line(n, text, 'R', false, "z", i,
	     "dot(u#, c#), lhs_contracting_dims={1}, rhs_contracting_dims={0}");
	line(n, text, 'R', false, "ab", i, "broadcast(b#), dimensions={1}");
	line(n, text, 'R', false, "a", i, n->bias ? "add(z#, ab#)" : "negate(z#)");
	line(n, text, 'R', false, "t", i, "tanh(a#)");
	line(n, text, 'R', false, "xn", i, n->residual ? "add(x#, t#)" : "abs(t#)");
	sw_text_addf(text, " x%d = f32[%d,%d] copy(xn%d)\n", i + 1, n->rows, n->width, i);
}

static void write_norm_gradient(const normed *n, sw_text *text, int i)
{
	line(n, text, 'R', false, "hp", i, "multiply(e#, nh#)");
	line(n, text, 'C', false, "qg", i, "reduce(hp#" SUM_OF_COLUMNS);
	line(n, text, 'R', false, "he", i, "multiply(e#, ng#)");
	line(n, text, 'P', false, "h1", i, "reduce(he#" SUM_OF_ROWS);
	line(n, text, 'R', false, "hb", i, "broadcast(h1#), dimensions={0}");
	line(n, text, 'R', false, "hd", i, "subtract(he#, hb#)");
	line(n, text, 'R', false, "hf", i, "multiply(hd#, ns#)");
}

static void write_backward(const normed *n, sw_text *text, int i)
{
	line(n, text, 'R', false, "ts", i, "multiply(t#, t#)");
	line(n, text, 'R', false, "dz", i, "multiply(d+, ts#)");
	if (n->bias)
		line(n, text, 'C', false, "qb", i, "reduce(dz#" SUM_OF_COLUMNS);
	write_read(n, text, "dc", "dz", "t", i);
	line(n, text, 'W', false, "qw", i,
	     "dot(u#, dc#), lhs_contracting_dims={0}, rhs_contracting_dims={0}");
	line(n, text, 'R', false, "e", i,
	     "dot(dc#, c#), lhs_contracting_dims={1}, rhs_contracting_dims={1}");
	if (n->norm)
		write_norm_gradient(n, text, i);
	else
		line(n, text, 'R', false, "hf", i, "negate(e#)");
	line(n, text, 'R', false, "d", i, n->residual ? "add(d+, hf#)" : "abs(hf#)");
}

static char shape_of(char kind)
{
	return kind == 'w' ? 'W' : 'C';
}

/* Write the new value and moments of one parameter of layer i: w, b or g. */
static void write_update(const normed *n, sw_text *text, char kind, int i)
{
	char shape = shape_of(kind), lines[9][96];
	int k = 0;
#define STEP(name, ...)                                                                            \
	do {                                                                                       \
		char label[8];                                                                     \
		snprintf(label, sizeof(label), "%s%c", name, kind);                                \
		snprintf(lines[k], sizeof(*lines), __VA_ARGS__);                                   \
		line(n, text, shape, false, label, i, lines[k++]);                                 \
	} while (0)
	STEP("k", n->clip ? "broadcast(norm), dimensions={}" : "negate(q%c#)", kind);
	STEP("l", n->clip ? "multiply(q%c#, k%c#)" : "abs(k%c#)", kind, kind);
	if (n->update != SGD)
		STEP("mo", "add(m%c#, l%c#)", kind, kind);
	if (n->update == ADAM) {
		STEP("sq", "multiply(l%c#, l%c#)", kind, kind);
		STEP("vo", "add(v%c#, sq%c#)", kind, kind);
		STEP("rt", "sqrt(vo%c#)", kind);
		STEP("st", "divide(mo%c#, rt%c#)", kind, kind);
	}
	STEP("new", "subtract(%c#, %s%c#)", kind,
	     n->update == SGD ? "l" : n->update == MOMENTUM ? "mo" : "st", kind);
	if (n->mean)
		STEP("ro", "add(r%c#, new%c#)", kind, kind);
#undef STEP
}

static const char *kinds_of(const normed *n)
{
	return n->bias ? n->norm ? "wbg" : "wb" : n->norm ? "wg" : "w";
}

/* Write the norm of the gradients of all weights, once they are there. */
static void write_clip(const normed *n, sw_text *text)
{
	for (int i = 0; i < n->layers && n->clip; i++) {
		line(n, text, 'W', false, "cq", i, "multiply(qw#, qw#)");
		line(n, text, 'S', false, "cs", i,
		     "reduce(cq#, zero), dimensions={0,1}, to_apply=add.f32");
		if (i == 0)
			sw_text_add(text, " ct0 = f32[] negate(cs0)\n");
		else
			sw_text_addf(text, " ct%d = f32[] add(ct%d, cs%d)\n", i, i - 1, i);
	}
	if (n->clip)
		sw_text_addf(text, " norm = f32[] rsqrt(ct%d)\n", n->layers - 1);
}

typedef void visit_state(const normed *n, sw_text *text, const char *state, char kind, int i);

static void visit_states(const normed *n, sw_text *text, visit_state *visit)
{
	static const char *const states[N_UPDATES] = {"", "m", "mv"};
	for (int i = 0; i < n->layers; i++)
		for (const char *kind = kinds_of(n); *kind; kind++) {
			visit(n, text, "", *kind, i);
			for (const char *s = states[n->update]; *s; s++)
				visit(n, text, *s == 'm' ? "m" : "v", *kind, i);
			if (n->mean)
				visit(n, text, "r", *kind, i);
		}
}

static void write_alias(const normed *n, sw_text *text, const char *state, char kind, int i)
{
	(void)state, (void)kind, (void)i;
	sw_text_addf(text, "%s {%d}: (%d, {}, may-alias)", *n->states ? "," : "", *n->states,
	             *n->states);
	++*n->states;
}

static void write_parameter(const normed *n, sw_text *text, const char *state, char kind, int i)
{
	char name[8], ops[32];
	snprintf(name, sizeof(name), "%s%c", state, kind);
	snprintf(ops, sizeof(ops), "parameter(%d)", (*n->states)++);
	line(n, text, shape_of(kind), false, name, i, ops);
}

static void write_type(const normed *n, sw_text *text, const char *state, char kind, int i)
{
	(void)state, (void)i;
	sw_text_addf(text, "f32[%d%s", n->width, kind == 'w' ? "," : "], ");
	if (kind == 'w')
		sw_text_addf(text, "%d], ", n->width);
}

static void write_result(const normed *n, sw_text *text, const char *state, char kind, int i)
{
	(void)n;
	sw_text_addf(text, "%s%s%c%d, ", *state ? state : "new", *state ? "o" : "", kind, i);
}

void write_normed(sw_rng *rng, sw_text *text)
{
	normed n = draw(rng);
	int states = 0;
	n.states = &states;
	sw_text_add(text, "HloModule normed, input_output_alias={");
	visit_states(&n, text, write_alias);
	sw_text_add(text, " }\nadd.f32 {\n a.1 = f32[] parameter(0)\n b.1 = f32[] parameter(1)\n"
	                  " ROOT s.1 = f32[] add(a.1, b.1)\n}\nENTRY main {\n"
	                  " zero = f32[] constant(0)\n");
	states = 0;
	visit_states(&n, text, write_parameter);
	for (int i = 0; i < n.layers && !n.bias; i++)
		line(&n, text, 'C', false, "b", i, "broadcast(zero), dimensions={}");
	sw_text_addf(text, " x0 = f32[%d,%d] parameter(%d)\n", n.rows, n.width, states);
	for (int i = 0; i < n.layers; i++)
		write_forward(&n, text, i);
	sw_text_addf(text, " d%d = f32[%d,%d] sine(x%d)\n", n.layers, n.rows, n.width, n.layers);
	for (int i = n.layers; i-- > 0;)
		write_backward(&n, text, i);
	write_clip(&n, text);
	for (int i = 0; i < n.layers; i++)
		for (const char *kind = kinds_of(&n); *kind; kind++)
			write_update(&n, text, *kind, i);
	sw_text_add(text, " ROOT r = (");
	visit_states(&n, text, write_type);
	sw_text_addf(text, "f32[%d,%d]) tuple(", n.rows, n.width);
	visit_states(&n, text, write_result);
	sw_text_addf(text, "x%d)\n}\n", n.layers);
}
