/* Small programs, written by hand, and the order of their ops after scheduling. */
#include "schedule/scheduled.h"

#include <string.h>

#define HEAD                                                                                       \
	"HloModule step, num_partitions=4\n"                                                       \
	"sum { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] add(a, b) }\n"     \
	"ENTRY main { x = f32[4096] parameter(0)\n y = f32[4096] parameter(1)\n"
#define REDUCE(name, of)                                                                           \
	name " = f32[4096] all-reduce(" of "), replica_groups={{0,1,2,3}}, to_apply=sum\n"
#define GATHER(name, of)                                                                           \
	name " = f32[16384] all-gather(" of "), replica_groups={{0,1,2,3}}, dimensions={0}\n"

/* Collectives of 16 KiB: an all-reduce takes about 25 us, an all-gather 49 us; a kernel on them 10
 * us. */
static const struct {
	const char *what, *overlap;
	int64_t memory_bytes;
	const char *text, *order;
} cases[] = {
	{"kernels that do not need a sum run beside it", "all", 0,
         HEAD "p = f32[4096] multiply(x, x)\n" REDUCE(
		 "r", "p") "q = f32[4096] add(r, x)\n"
                           "k = f32[4096] exponential(y)\n l = f32[4096] "
                           "tanh(k)\n ROOT z = f32[4096] add(q, l) }",
         "p r.start k l r.done q z"},
	{"kernels that may come after a sum's start are deferred behind it", "all", 0,
         HEAD "k = f32[4096] exponential(y)\n l = f32[4096] tanh(k)\n p = f32[4096] multiply(x, "
              "x)\n" REDUCE("r", "p") "q = f32[4096] add(r, x)\n ROOT z = f32[4096] add(q, l) }",
         "p r.start k l r.done q z"},
	{"nothing moves where nothing communicates", "all", 0,
         HEAD
         "p = f32[4096] multiply(x, x)\n k = f32[4096] exponential(y)\n q = f32[4096] add(p, x)\n"
         "ROOT z = f32[4096] add(q, k) }",
         "p k q z"},
	{"a kind that may not overlap stays in place", "all-gather,broadcast", 0,
         HEAD "p = f32[4096] multiply(x, x)\n" REDUCE(
		 "r", "p") "q = f32[4096] add(r, x)\n"
                           "k = f32[4096] exponential(y)\n ROOT z = f32[4096] add(q, k) }",
         "p r q k z"},
	{"a control predecessor comes first", "all", 0,
         HEAD "p = f32[4096] multiply(x, x)\n" REDUCE(
		 "r",
		 "p") "q = f32[4096] add(r, x)\n"
                      "k = f32[4096] exponential(y), control-predecessors={q}\n ROOT z = f32[4096] "
                      "add(q, k) }",
         "p r.start r.done q k z"},
	{"random states are drawn in their order", "all", 0,
         HEAD
         "p = f32[4096] multiply(x, x)\n g = u64[2] rng-get-and-update-state(), delta=1\n" REDUCE(
		 "r",
		 "p") "q = f32[4096] add(r, x)\n h = u64[2] rng-get-and-update-state(), delta=1\n"
                      "k = f32[4096] exponential(y)\n z = f32[4096] add(q, k)\n"
                      "ROOT t = (f32[4096], u64[2], u64[2]) tuple(z, g, h) }",
         "p r.start g h k r.done q z"},
	{"a buffer is not overwritten before it is read", "all", 0,
         HEAD "i = s32[] parameter(2)\n one = f32[1] slice(y), slice={[0:1]}\n k = f32[4096] "
              "exponential(x)\n"
              "p = f32[4096] dynamic-update-slice(x, one, i)\n" REDUCE(
		      "r", "p") "q = f32[4096] add(r, y)\n"
                                "ROOT z = f32[4096] add(q, k) }",
         "one k p r.start r.done q z"},
	{"a sum that can begin early does, even if another path is longer", "all", 0,
         HEAD "e = f32[4096] exponential(x)\n f = f32[4096] tanh(e)\n g = f32[4096] tanh(f)\n"
              "h = f32[4096] tanh(g)\n" REDUCE("r", "h") "m = f32[4096] multiply(e, y)\n" REDUCE(
		      "n", "m") "ROOT z = f32[4096] add(r, n) }",
         "e m n.start f g h r.start r.done n.done z"},
	{"kernels that no collective needs run beside the last one", "all", 0,
         HEAD "e = f32[4096] exponential(x)\n" REDUCE(
		 "r", "e") "k = f32[4096] negate(r)\n l = f32[4096] tanh(k)\n"
                           "f = f32[4096] tanh(y)\n g = f32[4096] tanh(f)\n h = f32[4096] "
                           "tanh(g)\n" REDUCE("n", "h") "ROOT z = f32[4096] add(l, n) }",
         "e r.start f g h n.start r.done k l n.done z"},
	{"gathers are ahead of their use", "all", 0,
         HEAD GATHER("g", "x") "p = f32[] reduce(g, c0), dimensions={0}, to_apply=sum\n" GATHER(
		 "h", "y") "q = f32[] reduce(h, c0), dimensions={0}, to_apply=sum\n ROOT z = f32[] "
                           "add(p, q) }",
         "g.start h.start g.done p h.done q z"},
	{"gathers are not ahead of their use without memory for it", "all", 1,
         HEAD GATHER("g", "x") "p = f32[] reduce(g, c0), dimensions={0}, to_apply=sum\n" GATHER(
		 "h", "y") "q = f32[] reduce(h, c0), dimensions={0}, to_apply=sum\n ROOT z = f32[] "
                           "add(p, q) }",
         "g.start g.done p h.start h.done q z"},
	{"pairs that the program has already stay pairs, and move", "none", 0,
         HEAD
         "t = ((f32[4096]), f32[4096]) async-start(x), calls=begun\n"
         "d = f32[4096] async-done(t)\n q = f32[4096] add(d, x)\n k = f32[4096] exponential(y)\n"
         "ROOT z = f32[4096] add(q, k) }",
         "t k d q z"},
};

/* Return the text with the computation and the constant that cases may use inserted before the
 * entry and at its head. */
static char *whole_text(const char *text)
{
	static const char head[] = "ENTRY main {";
	sw_text whole = {0};
	const char *at = strstr(text, head);
	sw_text_add_n(&whole, text, (size_t)(at - text));
	sw_text_add(&whole,
	            "begun { v = f32[4096] parameter(0)\n ROOT w = f32[4096] all-reduce(v), "
	            "replica_groups={{0,1,2,3}}, to_apply=sum }\n");
	sw_text_addf(&whole, "%s c0 = f32[] constant(0)\n%s", head, at + strlen(head));
	return whole.data;
}

static void ops_stand_where_they_should(void **state)
{
	(void)state;
	for (size_t i = 0; i < SW_COUNT(cases); i++) {
		scheduled s;
		sw_text order = {0};
		char *text = whole_text(cases[i].text);
		open_local(text, &s);
		schedule(&s, cases[i].overlap, cases[i].memory_bytes);
		print_order(s.scheduled, &order);
		if (strcmp(order.data, cases[i].order) != 0)
			fail_msg("%s: %s", cases[i].what, order.data);
		sw_text_clear(&order);
		free(text);
		close_scheduled(&s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(ops_stand_where_they_should)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
