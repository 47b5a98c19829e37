/* memory: what the system has left, by the machine and by control groups of both versions. */
#include "base/memory.h"

#include <stdint.h>
#include <stdlib.h>

#include "tests/open_files.h"
#include "tests/system_files.h"

#define MIB ((size_t)1 << 20)

static void test_machine(void)
{
    char root[FOLDER_NAME];
    folder_make(root);
    memory_state m = memory_read_state(root); /* nothing is known */
    CHECK(m.total == SIZE_MAX && m.available == SIZE_MAX && m.stalled == 0 && !memory_is_short(&m));

    system_file(root, "/proc/meminfo", "MemTotal:  8388608 kB\nMemFree: 1 kB\nMemAvailable:  4194304 kB\n");
    m = memory_read_state(root);
    CHECK(m.total == 8192 * MIB && m.available == 4096 * MIB && !memory_is_short(&m));
    system_file(root, "/proc/meminfo", "MemTotal:  8388608 kB\nMemAvailable:  262143 kB\n"); /* 1/32 */
    m = memory_read_state(root);
    CHECK(memory_is_short(&m));
    system_file(root, "/proc/meminfo", "MemTotal:  8388608 kB\nMemAvailable:  262144 kB\n");
    m = memory_read_state(root);
    CHECK(!memory_is_short(&m));
    /* of a large machine 512 MiB are enough */
    system_file(root, "/proc/meminfo", "MemTotal:  838860800 kB\nMemAvailable:  524288 kB\n");
    m = memory_read_state(root);
    CHECK(!memory_is_short(&m));
    system_file(root, "/proc/meminfo", "MemTotal:  838860800 kB\nMemAvailable:  524287 kB\n");
    m = memory_read_state(root);
    CHECK(memory_is_short(&m));
    system_file(root, "/proc/meminfo", "MemTotal: some\nMemAvailable:\n");
    m = memory_read_state(root);
    CHECK(m.total == SIZE_MAX && m.available == SIZE_MAX);
}

/* What is waited for: of the machine, or of the own group alone where the kernel knows it. */
static void test_stalls(void)
{
    char root[FOLDER_NAME];
    folder_make(root);
    system_file(root, "/proc/meminfo", "MemTotal:  8388608 kB\nMemAvailable:  4194304 kB\n");
    system_file(root, "/proc/pressure/memory",
                "some avg10=55.00 avg60=0.00 avg300=0.00 total=0\nfull avg10=9.90 avg60=0.00 total=0\n"
                "full total=77.0\n");
    memory_state m = memory_read_state(root);
    CHECK(m.stalled > 0.0989 && m.stalled < 0.0991 && !memory_is_short(&m));
    system_file(root, "/proc/pressure/memory", "some avg10=55.00\nfull avg10=10.00 avg60=0.00 total=0\n");
    m = memory_read_state(root);
    CHECK(memory_is_short(&m));
    system_file(root, "/proc/self/cgroup", "0::/a\n");
    system_file(root, "/sys/fs/cgroup/a/memory.pressure", "some avg10=1.00\nfull avg10=0.50 avg60=0.00\n");
    m = memory_read_state(root);
    CHECK(m.stalled < 0.006 && !memory_is_short(&m));
    system_file(root, "/sys/fs/cgroup/a/memory.pressure", "some avg10=1.00\nfull avg10=-1e99 total=0\n");
    m = memory_read_state(root);
    CHECK(m.stalled == 0);
    static const struct {
        const char *text;
        double stalled;
    } CASES[] = {{"full avg10=100\n", 1},
                 {"full avg10=100.5\n", 0},
                 {"full avg10=0\n", 0},
                 {"full avg10=nan\n", 0},
                 {"", 0}};
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        system_file(root, "/sys/fs/cgroup/a/memory.pressure", CASES[i].text);
        m = memory_read_state(root);
        CHECK(m.stalled == CASES[i].stalled);
    }
}

/* Version 2: the tightest of the groups up to the root counts; pages of files can be dropped. */
static void test_groups(void)
{
    char root[FOLDER_NAME];
    folder_make(root);
    system_file(root, "/proc/meminfo", "MemTotal:  8388608 kB\nMemAvailable:  4194304 kB\n");
    system_file(root, "/proc/self/cgroup", "1:name=systemd:/x\n0::/user/parley\n");
    system_file(root, "/sys/fs/cgroup/user/parley/memory.max", "max\n");
    system_file(root, "/sys/fs/cgroup/user/parley/memory.current", "1048576\n");
    memory_state m = memory_read_state(root);
    CHECK(m.total == 8192 * MIB && m.available == 4096 * MIB);
    /* A group whose use nobody knows, or a limit that is all there is, says nothing. */
    system_file(root, "/sys/fs/cgroup/user/memory.max", "1073741824\n");
    m = memory_read_state(root);
    CHECK(m.total == 8192 * MIB && m.available == 4096 * MIB);
    system_file(root, "/sys/fs/cgroup/user/memory.max", "18446744073709551615\n");
    system_file(root, "/sys/fs/cgroup/user/memory.current", "1\n");
    m = memory_read_state(root);
    CHECK(m.total == 8192 * MIB && m.available == 4096 * MIB);
    /* Lines of no group, in front of the one that is. */
    system_file(root, "/proc/self/cgroup", "nonsense\n1:memory\n0::user\n\n7:memory:\n0::/user/parley\n");
    system_file(root, "/sys/fs/cgroup/user/memory.max", "1073741824\n");
    m = memory_read_state(root);
    CHECK(m.total == 1024 * MIB && m.available == 1024 * MIB - 1);

    system_file(root, "/sys/fs/cgroup/user/memory.max", "1073741824\n");    /* 1024 MiB */
    system_file(root, "/sys/fs/cgroup/user/memory.current", "838860800\n"); /* 800 MiB */
    system_file(root, "/sys/fs/cgroup/user/memory.stat",
                "anon 1\nfile 2\ninactive_file 104857600\nactive_file 209715200\n"); /* 100 and 200 MiB */
    m = memory_read_state(root);
    CHECK(m.total == 1024 * MIB && m.available == 524 * MIB && !memory_is_short(&m));
    system_file(root, "/sys/fs/cgroup/user/parley/memory.max",
                "536870912\n"); /* 512 MiB, of which 1 is used */
    m = memory_read_state(root);
    CHECK(m.total == 512 * MIB && m.available == 511 * MIB);
    system_file(root, "/sys/fs/cgroup/user/parley/memory.current", "536870912\n");
    m = memory_read_state(root);
    CHECK(m.available == 0 && memory_is_short(&m));
    /* In a container the path is the host's; the files of its own group stand at the root. */
    system_file(root, "/proc/self/cgroup", "0::/host/only\n");
    system_file(root, "/sys/fs/cgroup/memory.max", "268435456\n");
    system_file(root, "/sys/fs/cgroup/memory.current", "134217728\n");
    m = memory_read_state(root);
    CHECK(m.total == 256 * MIB && m.available == 128 * MIB);
}

static void test_groups_v1(void)
{
    char root[FOLDER_NAME];
    folder_make(root);
    system_file(root, "/proc/meminfo", "MemTotal:  8388608 kB\nMemAvailable:  4194304 kB\n");
    system_file(root, "/proc/self/cgroup", "5:cpu,cpuacct:/c\n4:memory:/m\n0::/\n");
    system_file(root, "/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    system_file(root, "/sys/fs/cgroup/memory/memory.usage_in_bytes", "0\n");
    system_file(root, "/sys/fs/cgroup/memory/m/memory.limit_in_bytes", "629145600\n"); /* 600 MiB */
    system_file(root, "/sys/fs/cgroup/memory/m/memory.usage_in_bytes", "524288000\n"); /* 500 MiB */
    memory_state m = memory_read_state(root);
    CHECK(m.total == 600 * MIB && m.available == 100 * MIB);
    system_file(root, "/sys/fs/cgroup/memory/m/memory.stat",
                "inactive_file 1\ntotal_inactive_file 52428800\ntotal_active_file 99999999999\n");
    m = memory_read_state(root);
    CHECK(m.available == 600 * MIB); /* more files than use: all of it is free */
}

int main(void)
{
    test_machine();
    test_stalls();
    test_groups();
    test_groups_v1();
    const memory_state here = memory_read_state(NULL);
    CHECK(here.available <= here.total && here.available == SIZE_MAX ? here.total == SIZE_MAX : true);
    CHECK(here.available > 16 * MIB); /* this test runs, after all */
    CHECK(memory_available() > 16 * MIB);
    CHECK_ALL_CLOSED();
    CHECK_DONE();
}
