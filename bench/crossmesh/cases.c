/* The experiments of the cross-mesh resharding paper, sections 5.1 and 5.3.1. */
#include "bench_crossmesh.h"

/* The baselines send each slice from the holder with the lowest load (section 5.1.2), whole slices
 * in the order of their sizes. */
static const transfer_way ours = {"ours", "ours", SW_CROSSMESH_AUTO, SW_CROSSMESH_ENSEMBLE, 0},
			  send_recv = {"send_recv", "send/recv", SW_CROSSMESH_SEND_RECV,
                                       SW_CROSSMESH_GREEDY, 1},
			  local_gather = {"local_all_gather", "local all-gather",
                                          SW_CROSSMESH_LOCAL_ALL_GATHER, SW_CROSSMESH_GREEDY, 1},
			  global_gather = {"global_all_gather", "global all-gather",
                                           SW_CROSSMESH_GLOBAL_ALL_GATHER, SW_CROSSMESH_GREEDY, 1},
			  broadcast = {"broadcast", "broadcast", SW_CROSSMESH_BROADCAST,
                                       SW_CROSSMESH_ENSEMBLE, 1},
			  naive = {"naive", "naive order", SW_CROSSMESH_BROADCAST,
                                   SW_CROSSMESH_NAIVE, 1},
			  balanced = {"load_balance", "load balance only", SW_CROSSMESH_BROADCAST,
                                      SW_CROSSMESH_GREEDY, 1};

static const transfer_case devices_of_a_node[] = {
	{"1 device", "R@0", "R@4"},
	{"2 devices", "R@0", "R@4-5"},
	{"3 devices", "R@0", "R@4-6"},
	{"4 devices", "R@0", "R@4-7"},
};
static const transfer_case nodes_of_two[] = {
	{"1 node", "R@0", "R@4-5"},
	{"2 nodes", "R@0", "R@4-5,8-9"},
	{"3 nodes", "R@0", "R@4-5,8-9,12-13"},
	{"4 nodes", "R@0", "R@4-5,8-9,12-13,16-17"},
};
static const transfer_case table2[] = {
	{"case1", "S0RR@2x4:0-7", "S0RR@2x4:8-15"},
	{"case2", "RRR@2x4:0-7", "S0RR@2x4:8-15"},
	{"case3", "RS0R@2x4:0-7", "S0RR@2x4:8-15"},
	{"case4", "RS01R@2x4:0-7", "S01RR@2x4:8-15"},
	{"case5", "S1RR@2x4:0-7", "S0RR@2x4:8-15"},
	{"case6", "S0RR@2x4:0-7", "S0RR@3x4:8-19"},
	{"case7", "S1RR@1x4:0-3", "RRR@2x4:4-11"},
	{"case8", "RRR@2x3:0-2,4-6", "RRR@3x2:8-9,12-13,16-17"},
	{"case9", "RS0R@2x4:0-7", "RRS0@2x4:8-15"},
};

const experiment experiments[] = {
	{"figure5_devices",
         "figure 5, left: from one device to the devices of one node",
         "u8[1000000000]",
         "u8[16777216]",
         4,
         SW_COUNT(devices_of_a_node),
         {&ours, &send_recv, &local_gather, &global_gather},
         devices_of_a_node},
	{"figure5_nodes",
         "figure 5, right: from one device to nodes of two",
         "u8[1000000000]",
         "u8[16777216]",
         4,
         SW_COUNT(nodes_of_two),
         {&ours, &send_recv, &local_gather, &global_gather},
         nodes_of_two},
	{"table2",
         "table 2 with figure 6: from meshes to meshes; figure 8: broadcasts in other orders",
         "f32[1024,1024,512]",
         "f32[256,128,128]",
         7,
         SW_COUNT(table2),
         {&ours, &send_recv, &local_gather, &global_gather, &broadcast, &naive, &balanced},
         table2},
};
const size_t n_experiments = SW_COUNT(experiments);
