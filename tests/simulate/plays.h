/* Programs and clusters for the tests of simulate, with simple figures: a negate of f32[k] takes k
 * seconds. */
#ifndef TEST_SIMULATE_PLAYS_H
#define TEST_SIMULATE_PLAYS_H

#include "test.h"

#include "frontend/frontend.h"
#include "simulate/simulate.h"

/* levels: the text after "levels:" in the cluster file, in flow style. */
void read_cluster(sw_cluster *cluster, const char *levels);
/* Read HLO text that must be valid. */
sw_program *read_program(const char *text);

typedef struct scene {
	sw_cluster cluster;
	sw_program *program;
	sw_simulation played;
} scene;
void play_scene(scene *s, const char *levels, const char *text);
/* The same where a collective takes a share of its devices. */
void play_sharing_scene(scene *s, const char *levels, double transfer_share, const char *text);
void scene_clear(scene *s);

/* Return the seconds of the collective with this name by the cost model. */
double seconds_of(const scene *s, const char *op);

/* Check that both are equal up to rounding. */
void assert_seconds(double actual, double expected);
void assert_breakdown(const sw_breakdown *actual, double compute_s, double exposed_s, double idle_s,
                      double hidden_s);

#endif
