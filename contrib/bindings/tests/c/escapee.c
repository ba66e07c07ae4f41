/* A program that tries to escape from its container, and never attaches. Prints each allowed action; exit 40: none, 41: some. Outside of a container it
 * does nothing (exit 3), since some actions would succeed.
 *
 *   escapee escape ABSTRACT-SOCKET PID      all of it; a socket and a process of the host's
 *   escapee with-key COMMAND…               executes that with a key in its session's keyring, which is to be found in no container
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/keyctl.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#define KEY "bulkhead-test"

static int count = 0;

static void allowed(const char *what, long result) {
    if (result < 0) return;
    fprintf(stderr, "allowed: %s\n", what);
    count++;
}

/* Kernel settings, cgroups and process 1: files are opened for writing, but nothing is written. */
static void files(void) {
    static const char *const to_write[] = {
        "/proc/sys/kernel/core_pattern",
        "/proc/sys/vm/overcommit_memory",
        "/proc/irq/default_smp_affinity",
        "/proc/sysrq-trigger",
        "/proc/self/uid_map",
        "/proc/1/oom_score_adj",
        "/sys/kernel/mm/transparent_hugepage/enabled",
        "/sys/fs/cgroup/cgroup.procs",
        "/sys/fs/cgroup/pids/cgroup.procs",
        "/sys/fs/cgroup/memory/cgroup.procs",
        "/etc/passwd",
        "/dev/kmsg",
    };
    for (size_t i = 0; i < sizeof to_write / sizeof *to_write; i++) allowed(to_write[i], open(to_write[i], O_WRONLY));
    static const char *const to_read[] = {"/proc/1/mem", "/proc/1/environ", "/proc/1/root/etc", "/proc/1/ns/mnt",
                                          "/proc/kcore", "/dev/mem"};
    for (size_t i = 0; i < sizeof to_read / sizeof *to_read; i++) allowed(to_read[i], open(to_read[i], O_RDONLY));
}

/* Inherited descriptors: none may be reopened for writing, and the file for stderr must not become setuid. */
static void handed(void) {
    char path[64];
    for (int file = 3; file < 64; file++) {
        if (fcntl(file, F_GETFD) < 0) continue;
        snprintf(path, sizeof path, "/proc/self/fd/%d", file);
        int again = open(path, O_WRONLY | O_NONBLOCK);
        allowed("a descriptor to write", write(again, "x", 1));
        allowed("a signal through a descriptor", syscall(SYS_pidfd_send_signal, file, 0, NULL, 0));
    }
    allowed("set-user-id", fchmod(2, 04700));
    allowed("set-group-id", fchmod(2, 02700));
}

static void namespaces(void) {
    allowed("a user namespace", unshare(CLONE_NEWUSER));
    allowed("a mount", mount("tmpfs", "/mnt", "tmpfs", 0, NULL));
    allowed("a mount to write", mount(NULL, "/proc", NULL, MS_REMOUNT | MS_BIND, NULL));
    allowed("another root", chroot("/"));
    allowed("another host name", sethostname("x", 1));
    allowed("the first process", ptrace(PTRACE_SEIZE, 1, 0, 0));
}

static void machine(const char *name, const char *pid) {
    int sockets = socket(AF_UNIX, SOCK_STREAM, 0);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strncpy(address.sun_path + 1, name, sizeof address.sun_path - 2);
    socklen_t length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
    allowed("an abstract socket", connect(sockets, (struct sockaddr *)&address, length));
    allowed("a socket to the hypervisor", socket(AF_VSOCK, SOCK_STREAM, 0));
    allowed("the kernel's ciphers", socket(AF_ALG, SOCK_SEQPACKET, 0));
    allowed("a signal", kill(atoi(pid), 0));
    struct sched_param highest = {.sched_priority = 99};
    allowed("a priority", sched_setscheduler(0, SCHED_FIFO, &highest));
    allowed("a key", syscall(SYS_keyctl, KEYCTL_SEARCH, KEY_SPEC_SESSION_KEYRING, "user", KEY, 0));
    allowed("a new key", syscall(SYS_add_key, "user", KEY, "x", 1, KEY_SPEC_SESSION_KEYRING));
    struct perf_event_attr event = {.type = PERF_TYPE_SOFTWARE, .size = sizeof event};
    allowed("a counter", syscall(SYS_perf_event_open, &event, 0, -1, -1, 0));
    union bpf_attr map = {.map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 1};
    allowed("a program in the kernel", syscall(SYS_bpf, BPF_MAP_CREATE, &map, sizeof map));
    allowed("calls that no filter sees", syscall(SYS_io_uring_setup, 1, NULL));
}

int main(int number, char **arguments) {
    if (number > 2 && !strcmp(arguments[1], "with-key")) {
        syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL);
        if (syscall(SYS_add_key, "user", KEY, "x", 1, KEY_SPEC_SESSION_KEYRING) < 0) perror("no key");
        execv(arguments[2], arguments + 2);
        return 1;
    }
    if (number != 4) return 2;
    if (getpid() != 2) return 3;
    files();
    handed();
    namespaces();
    machine(arguments[2], arguments[3]);
    return count == 0 ? 40 : 41;
}
