/* Misbehaving programs, selected by the first argument: each must end in a named error or a contained crash. */
#define _GNU_SOURCE
#include "bulkhead.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static bh_context run;

/* Polls until `orders` orders of this program are answered, or the run is over. */
static void trade(uint64_t orders) {
    bh_report reports[16];
    uint64_t sent = 0, answered = 0;
    while (answered < orders) {
        bh_order order = {.price = 41300, .quantity = 1000000, .time_in_force = BH_IMMEDIATE_OR_CANCEL};
        if (sent < orders && bh_send(&order, NULL) == BH_OK) sent++;
        int32_t taken = bh_poll(reports, 16, 1000000);
        if (taken < 0) break;
        for (int32_t i = 0; i < taken; i++) answered += reports[i].is_last;
    }
}

/* Orders that the library refuses: none may reach the run. */
static int refused(void) {
    bh_order orders[] = {{.operation = 9},         {.side = 2},          {.order_type = 99}, {.time_in_force = 4},
                         {.post_only = 7},         {.self_trade = 5},    {.condition = 77},  {.condition_value = 1},
                         {.target = 3},            {.reserved = {1}},    {.operation = BH_CANCEL, .condition = 1}};
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        int32_t code = bh_send(&orders[i], NULL);
        if (code != BH_BAD_ORDER || strchr(bh_error_text(code), ':') == NULL) return 0;
    }
    return bh_send(NULL, NULL) == BH_NULL && bh_poll(NULL, 3, 0) == BH_NULL && bh_attach(BH_VERSION) == BH_ATTACHED;
}

/* A forked child that trades for its parent: the library must refuse each call of it, also after a second fork. */
static int detaches_child(void) {
    pid_t child = fork();
    if (child == 0) {
        bh_order order = {.price = 41300, .quantity = 1000000};
        pid_t grandchild = fork();
        int refused = bh_send(&order, NULL) == BH_NOT_ATTACHED && bh_poll(NULL, 0, 0) == BH_NOT_ATTACHED &&
                      bh_finish() == BH_NOT_ATTACHED;
        int status = 0;
        if (grandchild > 0) refused &= waitpid(grandchild, &status, 0) == grandchild && status == 0;
        _exit(!refused);
    }
    int status = 1;
    return waitpid(child, &status, 0) == child && status == 0;
}

/* Well-formed orders for nonexistent venues, as many as the plan has: each is rejected, until the engine quarantines the strategy. */
static void nowhere(void) {
    bh_report reports[16];
    bh_order order = {.price = 41300, .quantity = 1000000, .venue = 999};
    for (;;) {
        bh_send(&order, NULL);
        if (bh_poll(reports, 16, 0) == BH_OVER) return;
    }
}

/* Writes over the ring that carries its orders: at this level the memory has a name. */
static int scribble(void) {
    char name[256];
    snprintf(name, sizeof name, "/dev/shm/bulkhead.%s.submit-%u", getenv("BULKHEAD_RUN"), run.strategy);
    int file = open(name, O_RDWR);
    struct stat facts;
    if (file < 0 || fstat(file, &facts) != 0) return 0;
    size_t size = (size_t)facts.st_size;
    uint64_t *words = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (words == MAP_FAILED) return 0;
    for (;;) {
        for (size_t i = 16; i < size / 8; i++) words[i] = words[i] * 6364136223846793005u + i;
        if (bh_heartbeat() != BH_OK) return 0;
    }
}

/* Replacement of the library's seccomp filters: 0 none, 1 no filter, 2 filters that allow everything. */
static int filters = 0;

/* Overrides syscall() of the C library, through which the library installs its filters. */
long syscall(long number, ...) {
    va_list list;
    va_start(list, number);
    long a = va_arg(list, long), b = va_arg(list, long), c = va_arg(list, long);
    long d = va_arg(list, long), e = va_arg(list, long), f = va_arg(list, long);
    va_end(list);
    static struct sock_filter all[] = {{.code = BPF_RET | BPF_K, .k = SECCOMP_RET_ALLOW}};
    static struct sock_fprog open_to_all = {.len = 1, .filter = all};
    if (number == SYS_seccomp && filters == 1) return 0;
    if (number == SYS_seccomp && filters == 2) c = (long)&open_to_all;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    if (result >= 0 || result < -4095) return result;
    errno = (int)-result;
    return -1;
}

/* Prints and counts each forbidden action that was allowed. */
static int allowed(const char *what, long result) {
    if (result >= 0) fprintf(stderr, "allowed: %s\n", what);
    return result >= 0;
}

static int fork_and_leave(void) {
    pid_t child = fork();
    if (child == 0) _exit(0);
    return child;
}

/* Tries what a program must not do in the sandbox, before and after attaching. Returns the number of allowed actions. */
static int escape(void) {
    char path[64];
    int count = 0;
    for (int file = 3; file < 64; file++) {
        /* Memory that was handed over read-only. */
        if ((fcntl(file, F_GETFL) & O_ACCMODE) != O_RDONLY) continue;
        snprintf(path, sizeof path, "/proc/self/fd/%d", file);
        count += allowed("open again to write", open(path, O_RDWR));
    }
    snprintf(path, sizeof path, "/proc/%d/mem", getppid());
    count += allowed("the launcher's memory", open(path, O_RDONLY));
    count += allowed("a file in the folder", open("broken-was-here", O_CREAT | O_RDWR, 0600));
    count += allowed("a file in /tmp", open("/tmp/broken-was-here", O_CREAT | O_RDWR, 0600));
    count += allowed("memory with a name", open("/dev/shm/broken-was-here", O_CREAT | O_RDWR, 0600));
    count += allowed("the files in /dev/shm", open("/dev/shm", O_RDONLY | O_DIRECTORY));
    count += allowed("a socket", socket(AF_INET, SOCK_DGRAM, 0));
    count += allowed("a local socket", socket(AF_UNIX, SOCK_STREAM, 0));
    count += allowed("a process", fork_and_leave());
    count += allowed("a signal", kill(getppid(), 0));
    count += allowed("a look at the launcher", ptrace(PTRACE_SEIZE, getppid(), 0, 0));
    count += allowed("the launcher's limits", syscall(SYS_prlimit64, (long)getppid(), 7L, 0L, 0L, 0L, 0L));
    count += allowed("memory that nobody counts", syscall(SYS_memfd_create, (long)"x", 0L, 0L, 0L, 0L, 0L));
    return count;
}

/* Starts a process that stops this one as a debugger does, once it reads a byte from the returned descriptor, and for as long as this one runs. With
 * `is_orphan` its parent has ended by then. It ends within a minute. */
static int start_tracer(int is_orphan) {
    int go[2];
    pid_t traced = getpid();
    if (pipe(go) != 0) return -1;
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    pid_t child = fork();
    if (child == 0) {
        char byte;
        if (is_orphan && fork() != 0) _exit(0);
        close(go[1]);
        alarm(60);
        if (read(go[0], &byte, 1) != 1 || ptrace(PTRACE_SEIZE, traced, 0, 0) != 0) _exit(1);
        ptrace(PTRACE_INTERRUPT, traced, 0, 0);
        for (int status = 0; waitpid(traced, &status, __WALL) == traced && WIFSTOPPED(status);) {}
        _exit(0);
    }
    if (is_orphan) waitpid(child, NULL, 0);
    return go[1];
}

/* As [start_tracer], but the tracer never lets go: it neither waits for this process nor ends, so that the kernel keeps it as a zombie. With `options`
 * of ptrace. */
static int start_keeper(int options) {
    int go[2];
    pid_t traced = getpid();
    if (pipe(go) != 0) return -1;
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    if (fork() == 0) {
        char byte;
        setsid();
        close(go[1]);
        alarm(300);
        if (read(go[0], &byte, 1) != 1 || ptrace(PTRACE_SEIZE, traced, 0, (void *)(long)options) != 0) _exit(1);
        ptrace(PTRACE_INTERRUPT, traced, 0, 0);
        for (;;) pause();
    }
    return go[1];
}

static int crash_pipe = -1;

/* A crash handler as Breakpad's: another process attaches to this one and writes a report, for which this one waits. It never comes. */
static void report_crash(int number) {
    (void)number;
    if (write(crash_pipe, "", 1) != 1) _exit(3);
    for (;;) pause();
}

/* Leaves a child in a session of its own, whose parent has ended. */
static void leave_child(void) {
    pid_t child = fork();
    if (child > 0) waitpid(child, NULL, 0);
    if (child != 0) return;
    setsid();
    if (fork() != 0) _exit(0);
    alarm(300);
    for (;;) pause();
}

int main(int count, char **arguments) {
    const char *what = count > 1 ? arguments[1] : "";
    if (!strcmp(what, "never")) pause();
    /* Ignores the death of the launcher. */
    if (!strcmp(what, "stays")) {
        prctl(PR_SET_PDEATHSIG, 0);
        for (;;) pause();
    }
    if (!strcmp(what, "leaves")) return 0;
    if (!strcmp(what, "old")) {
        int32_t code = bh_attach(BH_VERSION + (1u << 16));
        fprintf(stderr, "%s\n", bh_error_text(code));
        return code == BH_WRONG_VERSION ? 7 : 1;
    }
    if (!strcmp(what, "before")) return escape() == 0 ? 40 : 41;
    if (!strcmp(what, "unfiltered")) filters = 1;
    if (!strcmp(what, "pretends")) filters = 2;
    int tracer = -1;
    if (!strcmp(what, "traced-by-child")) tracer = start_tracer(0);
    if (!strcmp(what, "traced-by-orphan")) tracer = start_tracer(1);
    if (!strcmp(what, "kept-by-child")) tracer = start_keeper(0);
    if (!strcmp(what, "kept-at-exit")) tracer = start_keeper(PTRACE_O_TRACEEXIT);
    if (!strcmp(what, "crash-handler")) crash_pipe = start_keeper(0);
    if (!strcmp(what, "leaves-child")) leave_child();
    int32_t code = bh_attach(BH_VERSION);
    if (code != BH_OK) {
        fprintf(stderr, "%s\n", bh_error_text(code));
        return 1;
    }
    bh_get_context(&run);
    if (!strcmp(what, "inherits")) {
        int64_t net = 1, price = 1;
        if (bh_position(0, &net, &price) != BH_OK || bh_position(0, NULL, &price) != BH_NULL) return 3;
        printf("epoch %d inherits %lld at %lld\n", run.epoch, (long long)net, (long long)price);
        fflush(stdout);
    }
    /* A restarted incarnation works. */
    if (run.epoch > 0) {
        trade(run.orders);
        return bh_finish() == BH_OK ? 0 : 1;
    }
    trade(50);
    if (!strcmp(what, "early")) return 0;
    if (!strcmp(what, "idle")) while (bh_poll(NULL, 0, 1000000) >= 0) {}
    if (tracer >= 0) {
        if (write(tracer, "", 1) != 1) return 3;
        for (int i = 0; i < 200; i++) {
            usleep(10000);
            bh_heartbeat();
        }
        return 3;
    }
    if (!strcmp(what, "hang"))
        for (volatile int i = 0;; i++) {}
    if (!strcmp(what, "spins"))
        for (;;) bh_heartbeat();
    if (!strcmp(what, "abort")) abort();
    if (!strcmp(what, "stop")) kill(0, SIGSTOP);
    if (crash_pipe >= 0) {
        signal(SIGSEGV, report_crash);
        raise(SIGSEGV);
    }
    if (!strcmp(what, "segv") || !strcmp(what, "inherits")) raise(SIGSEGV);
    if (!strcmp(what, "forks") && !detaches_child()) return 3;
    if (!strcmp(what, "leak"))
        for (;;) {
            char *memory = malloc(1 << 20);
            if (memory == NULL) abort();
            /* One page of it: the limit, which may be half of the machine's memory, is for what is mapped. */
            *(volatile char *)memory = 1;
            bh_heartbeat();
        }
    if (!strcmp(what, "open")) open("/etc/passwd", O_RDONLY);
    if (!strcmp(what, "socket")) socket(AF_INET, SOCK_DGRAM, 0);
    if (!strcmp(what, "fork")) fork_and_leave();
    if (!strcmp(what, "ptrace")) ptrace(PTRACE_SEIZE, getppid(), 0, 0);
    if (!strcmp(what, "signal")) kill(getppid(), 0);
    if (!strcmp(what, "pretends")) return escape() + allowed("a file", open("/etc/passwd", O_RDONLY)) == 0 ? 40 : 41;
    if (!strcmp(what, "nowhere")) nowhere();
    if (!strcmp(what, "scribble") && !scribble()) return 3;
    if (!strcmp(what, "refused") && !refused()) return 3;
    trade(run.orders - 50);
    if (bh_finish() != BH_OK || bh_finish() != BH_NOT_ATTACHED) return 4;
    printf("well\n");
    return 0;
}
