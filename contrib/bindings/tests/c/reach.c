/* A strategy that trades correctly, and before that tries to reach the other processes of its run: by signals, by ptrace, by their memory, by
 * their descriptors, and by the names of segments. Prints each success as `got: …`; the operator's rights decide, so as the launcher's user it has some.
 */
#define _GNU_SOURCE
#include "bulkhead.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static void tried(const char *what, const char *whom, long result) {
    if (result >= 0) fprintf(stderr, "got: %s %s\n", what, whom);
}

/* Reads a field of a process's status, and an address that it has mapped. */
static long status_number(const char *pid, const char *field) {
    char path[300], line[256];
    long value = -1;
    snprintf(path, sizeof path, "/proc/%s/status", pid);
    FILE *status = fopen(path, "r");
    while (status != NULL && fgets(line, sizeof line, status) != NULL)
        if (!strncmp(line, field, strlen(field))) value = atol(line + strlen(field));
    if (status != NULL) fclose(status);
    return value;
}

static void reach(const char *name) {
    char path[300];
    pid_t pid = atoi(name);
    tried("signal", name, kill(pid, 0));
    if (ptrace(PTRACE_SEIZE, pid, 0, 0) == 0) {
        tried("trace", name, 0);
        ptrace(PTRACE_INTERRUPT, pid, 0, 0);
        waitpid(pid, NULL, __WALL);
        ptrace(PTRACE_DETACH, pid, 0, 0);
    }
    snprintf(path, sizeof path, "/proc/%s/mem", name);
    tried("memory", name, open(path, O_RDWR));
    snprintf(path, sizeof path, "/proc/%s/maps", name);
    int maps = open(path, O_RDONLY);
    char start[32] = {0};
    if (maps >= 0 && read(maps, start, sizeof start - 1) > 0) {
        char word[8];
        struct iovec own = {word, sizeof word}, other = {(void *)strtoul(start, NULL, 16), sizeof word};
        tried("a word of memory", name, process_vm_readv(pid, &own, 1, &other, 1, 0));
    }
    int handle = (int)syscall(SYS_pidfd_open, pid, 0);
    for (int number = 0; handle >= 0 && number < 64; number++) tried("descriptor", name, syscall(SYS_pidfd_getfd, handle, number, 0));
}

static void reach_names(const char *folder, const char *prefix) {
    DIR *entries = opendir(folder);
    char path[600];
    for (struct dirent *entry; entries != NULL && (entry = readdir(entries)) != NULL;) {
        if (strncmp(entry->d_name, prefix, strlen(prefix)) != 0) continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        tried("segment", entry->d_name, open(path, O_RDONLY));
    }
    if (entries != NULL) closedir(entries);
}

/* Opens memory that was handed over read-only again, for writing. */
static void reopen(void) {
    char path[64];
    for (int number = 3; number < 256; number++) {
        int flags = fcntl(number, F_GETFL);
        if (flags < 0 || (flags & O_ACCMODE) != O_RDONLY) continue;
        snprintf(path, sizeof path, "/proc/self/fd/%d", number);
        tried("right to write", path, open(path, O_RDWR));
    }
}

int main(void) {
    char parent[16];
    long launcher = getppid();
    snprintf(parent, sizeof parent, "%ld", launcher);
    reopen();
    /* In a container the launcher is not visible, and has the id 0. */
    if (launcher > 0) reach(parent);
    DIR *processes = launcher > 0 ? opendir("/proc") : NULL;
    for (struct dirent *entry; processes != NULL && (entry = readdir(processes)) != NULL;)
        if (atoi(entry->d_name) > 0 && atoi(entry->d_name) != getpid() && status_number(entry->d_name, "PPid:") == launcher) reach(entry->d_name);
    if (processes != NULL) closedir(processes);
    reach_names("/dev/shm", "bulkhead.");
    fprintf(stderr, "tried as %d\n", (int)getuid());
    if (bh_attach(BH_VERSION) != BH_OK) return 1;
    bh_context run;
    bh_get_context(&run);
    bh_report reports[16];
    uint64_t sent = 0, answered = 0;
    while (answered < run.orders) {
        bh_order order = {.price = 41300, .quantity = 1000000, .time_in_force = BH_IMMEDIATE_OR_CANCEL};
        if (sent < run.orders && bh_send(&order, NULL) == BH_OK) sent++;
        int32_t taken = bh_poll(reports, 16, 1000000);
        if (taken < 0) break;
        for (int32_t i = 0; i < taken; i++) answered += reports[i].is_last;
    }
    return bh_finish() == BH_OK ? 0 : 1;
}
