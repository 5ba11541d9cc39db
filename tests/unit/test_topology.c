#include "test.h"
#include "base/file.h"
#include "base/topology.h"

/* A machine as the system describes it, in a folder of its own. */
static void make_machine(char *sys)
{
    EXPECT(mkdtemp(sys));
}
static void remove_machine(const char *sys)
{
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", sys);
    EXPECT_INT(system(command), 0);
}
static void describe(const char *sys, const char *folder, const char *file, const char *text)
{
    error e = { 0 };
    char path[256];
    snprintf(path, sizeof path, "%s/%s", sys, folder);
    EXPECT_OK(file_make_dirs(path, &e), e);
    snprintf(path, sizeof path, "%s/%s/%s", sys, folder, file);
    EXPECT_OK(file_write(path, str_from(text), &e), e);
}
static void describe_siblings(const char *sys, int cpu, const char *siblings)
{
    char folder[48];
    snprintf(folder, sizeof folder, "cpu/cpu%d/topology", cpu);
    describe(sys, folder, "thread_siblings_list", siblings);
}
/* Processors i and i + cores are one core. */
static void describe_cores(const char *sys, int cores)
{
    for (int i = 0; i < 2 * cores; i++) {
        char list[48];
        snprintf(list, sizeof list, "%d,%d\n", i % cores, i % cores + cores);
        describe_siblings(sys, i, list);
    }
}
/* Four cores a socket, two threads each: 0-3,8-11 and 4-7,12-15; node 1 is memory alone. */
static void describe_sockets(const char *sys)
{
    describe_cores(sys, 8);
    describe(sys, "node", "online", "0-2\n");
    describe(sys, "node/node0", "cpulist", "0-3,8-11\n");
    describe(sys, "node/node1", "cpulist", "\n");
    describe(sys, "node/node2", "cpulist", "4-7,12-15\n");
}

TEST(cores_are_counted_once)
{
    char sys[] = "/tmp/test_topology.XXXXXX";
    make_machine(sys);
    describe_cores(sys, 4);
    describe_siblings(sys, 3, "3,7-7\n");                       /* a list of ranges */
    const unsigned char all[9] = { 1, 1, 1, 1, 1, 1, 1, 1, 1 }; /* of cpu 8 nothing is known */
    const unsigned char some[9] = { 1, 0, 1, 0, 1, 1, 0, 0, 0 };
    topology t;
    topology_describe(&t, sys, all, 8);
    EXPECT_INT(t.cores, 4);
    EXPECT_INT(t.cpus, 8);
    EXPECT_INT(t.nodes, 1);
    topology_describe(&t, sys, all, 9);
    EXPECT_INT(t.cores, 5);
    /* 0 with 4, 2, and 5 whose first thread is not ours */
    topology_describe(&t, sys, some, 9);
    EXPECT_INT(t.cores, 3);
    EXPECT_INT(t.node_cores[0], 3);
    remove_machine(sys);
}

TEST(R105_workers_are_spread_over_sockets_as_cores_are)
{
    char sys[] = "/tmp/test_topology.XXXXXX";
    make_machine(sys);
    describe_sockets(sys);
    unsigned char all[16];
    memset(all, 1, sizeof all);
    topology t;
    topology_describe(&t, sys, all, 16);
    EXPECT_INT(t.nodes, 2);
    EXPECT_INT(t.node_cores[0], 4);
    EXPECT_INT(t.node_cores[1], 4);
    EXPECT_INT(t.node[11], 1);
    EXPECT_INT(t.node[12], 2);
    for (int w = 0; w < 8; w++) EXPECT_INT(topology_node(&t, w, 8), w / 4);
    for (int w = 0; w < 16; w++) EXPECT_INT(topology_node(&t, w, 16), w / 8);
    for (int w = 0; w < 4; w++) EXPECT_INT(topology_node(&t, w, 4), -1); /* one node holds them */

    /* a mask that leaves two cores of the first socket: six workers, two of them there */
    all[2] = all[3] = all[10] = all[11] = 0;
    topology_describe(&t, sys, all, 16);
    EXPECT_INT(t.node_cores[0], 2);
    const int want[6] = { 0, 0, 1, 1, 1, 1 };
    for (int w = 0; w < 6; w++) EXPECT_INT(topology_node(&t, w, 6), want[w]);

    /* a mask with one socket has one node */
    for (int i = 0; i < 4; i++) all[i] = all[i + 8] = 0;
    topology_describe(&t, sys, all, 16);
    EXPECT_INT(t.nodes, 1);
    EXPECT_INT(topology_node(&t, 7, 8), -1);
    remove_machine(sys);
}

TEST(threads_are_cores_within_the_quota)
{
    char sys[] = "/tmp/test_topology.XXXXXX", why[80];
    make_machine(sys);
    describe_sockets(sys);
    unsigned char all[16];
    memset(all, 1, sizeof all);
    topology t;
    topology_describe(&t, sys, all, 16);
    EXPECT_INT(topology_threads(&t, why, sizeof why), 8);
    EXPECT_STR(why, "8 physical cores on 2 memory nodes, no quota");
    t.quota = 7.65;
    EXPECT_INT(topology_threads(&t, why, sizeof why), 7);
    EXPECT_STR(why, "8 physical cores on 2 memory nodes, quota 7.65");
    t.quota = 0.5;
    EXPECT_INT(topology_threads(&t, NULL, 0), 1);
    t.quota = 12;
    EXPECT_INT(topology_threads(&t, NULL, 0), 8);
    remove_machine(sys);
}

TEST(a_thread_kept_to_a_node_still_runs)
{
    topology t;
    topology_read(&t);
    EXPECT(t.cores >= 1 && t.cores <= t.cpus && t.nodes >= 1);
    topology_keep(&t, pthread_self(), 0);
    topology after;
    topology_read(&after);
    EXPECT_INT(after.nodes, 1);
    EXPECT_INT(after.cores, t.node_cores[0]);
}
