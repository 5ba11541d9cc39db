#include "test.h"
#include <unistd.h>
#include "base/cgroup.h"
#include "base/file.h"

static char root[] = "/tmp/test_cgroup.XXXXXX";

static void put(const char *path, const char *text)
{
    error e = { 0 };
    char full[256], dir[256];
    snprintf(full, sizeof full, "%s/%s", root, path);
    snprintf(dir, sizeof dir, "%s", full);
    *strrchr(dir, '/') = '\0';
    EXPECT_OK(file_make_dirs(dir, &e), e);
    EXPECT_OK(file_write(full, str_from(text), &e), e);
}

static void end(void)
{
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", root);
    EXPECT_INT(system(command), 0);
}

TEST(version_2)
{
    EXPECT(mkdtemp(root));
    uint64_t left;
    double cpus;
    const char *groups = "0::/a/b\n";
    EXPECT(!cgroup_memory_left_in(root, groups, &left));
    EXPECT(!cgroup_cpus_in(root, groups, &cpus));
    put("a/b/memory.max", "max\n");
    put("a/b/memory.current", "5000\n");
    put("a/b/cpu.max", "max 100000\n");
    EXPECT(!cgroup_memory_left_in(root, groups, &left));
    EXPECT(!cgroup_cpus_in(root, groups, &cpus));
    put("a/memory.max", "1000000\n");
    put("a/memory.current", "700000\n");
    put("a/memory.stat", "anon 100\ninactive_file 200000\nactive_file 9\n");
    put("a/cpu.max", "250000 100000\n");
    EXPECT(cgroup_memory_left_in(root, groups, &left));
    EXPECT_INT(left, 500000);
    EXPECT(cgroup_cpus_in(root, groups, &cpus));
    EXPECT(cpus == 2.5);
    put("a/b/memory.max", "6000\n"); /* the tighter one wins */
    EXPECT(cgroup_memory_left_in(root, groups, &left));
    EXPECT_INT(left, 1000);
    put("a/b/memory.current", "7000\n");
    EXPECT(cgroup_memory_left_in(root, groups, &left));
    EXPECT_INT(left, 0);
    end();
}

TEST(version_1_in_a_container)
{
    EXPECT(mkdtemp(root));
    uint64_t left;
    double cpus;
    const char *groups = "12:memory:/docker/0123\n5:cpu,cpuacct:/docker/0123\n0::/\n";
    put("memory/memory.limit_in_bytes", "9223372036854771712\n"); /* none */
    put("memory/memory.usage_in_bytes", "10\n");
    put("cpu/cpu.cfs_quota_us", "-1\n");
    put("cpu/cpu.cfs_period_us", "100000\n");
    EXPECT(!cgroup_memory_left_in(root, groups, &left));
    EXPECT(!cgroup_cpus_in(root, groups, &cpus));
    put("memory/memory.limit_in_bytes", "3000\n");
    put("cpu/cpu.cfs_quota_us", "150000\n");
    EXPECT(cgroup_memory_left_in(root, groups, &left));
    EXPECT_INT(left, 2990);
    EXPECT(cgroup_cpus_in(root, groups, &cpus));
    EXPECT(cpus == 1.5);
    end();
}

TEST(odd_group_lines)
{
    uint64_t left;
    const char *odd[] = { "", "\n", "garbage", "1:memory", "0::", ":", "0::/x", "1:memoryx,y:/a" };
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++)
        EXPECT(!cgroup_memory_left_in("/no/such", odd[i], &left));
}
