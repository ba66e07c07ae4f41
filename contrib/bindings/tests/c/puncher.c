/* A contained program that tries to remove shared memory which others have mapped: by holes, truncation, and growth until /dev/shm is full. Prints each
 * allowed action; exit 40: none, 41: some. Outside of a container it does nothing (exit 3).
 *
 *   puncher early      before it attaches, with the descriptors that it was handed; it never attaches
 *   puncher late       after it has attached and traded, with what it has mapped and what it finds in /dev/shm
 */
#define _GNU_SOURCE
#include "bulkhead.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define HOLE (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE)
#define GROWN (48L << 20)

/* As linux/falloc.h of newer kernels has it. */
struct space {
    int16_t type, whence;
    int64_t start, len;
    int32_t sysid;
    uint32_t pid;
    int32_t pad[4];
};
#define UNRESERVE _IOW('X', 43, struct space)
#define ZERO _IOW('X', 57, struct space)

static int count = 0;

static void allowed(const char *what, const char *to, long result) {
    if (result < 0) return;
    fprintf(stderr, "allowed: %s, %s\n", what, to);
    count++;
}

/* Punches holes through a mapping, which removes the pages for every process that has the file mapped. */
static void punch_mapping(void *start, size_t bytes, const char *name) {
    allowed("madvise", name, madvise(start, bytes, MADV_REMOVE));
    struct iovec range = {start, bytes};
    int own = (int)syscall(SYS_pidfd_open, getpid(), 0);
    allowed("process_madvise", name, syscall(SYS_process_madvise, own, &range, 1, MADV_REMOVE, 0));
    close(own);
}

/* Punches holes into a file, by every available call. */
static void punch(int file, const char *name) {
    struct stat facts;
    if (fstat(file, &facts) != 0 || !S_ISREG(facts.st_mode)) return;
    allowed("fallocate", name, fallocate(file, HOLE, 0, facts.st_size));
    allowed("fallocate to zero", name, fallocate(file, FALLOC_FL_ZERO_RANGE, 0, facts.st_size));
    struct space range = {.whence = SEEK_SET, .len = facts.st_size};
    allowed("ioctl", name, ioctl(file, UNRESERVE, &range));
    allowed("ioctl to zero", name, ioctl(file, ZERO, &range));
    void *memory = mmap(NULL, (size_t)facts.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory != MAP_FAILED) punch_mapping(memory, (size_t)facts.st_size, name);
}

/* Changes the length: grows by every available call until the file system is full, and truncates. */
static void resize(int file, const char *name) {
    struct stat facts;
    if (fstat(file, &facts) != 0 || !S_ISREG(facts.st_mode)) return;
    allowed("fallocate to grow", name, fallocate(file, 0, 0, GROWN));
    for (long more = 16 << 20; more >= 4096; more /= 2) {
        while (fallocate(file, 0, 0, facts.st_size + more) == 0 && fstat(file, &facts) == 0 && facts.st_size < 60 << 20) {}
    }
    allowed("write beyond the end", name, pwrite(file, "x", 1, GROWN + (1 << 20)));
    allowed("truncate to grow", name, ftruncate(file, GROWN + (2 << 20)));
    allowed("truncate", name, ftruncate(file, 0));
}

/* All holes first, then all growth, so that no memory is left to fill the holes. */
static void attack(void) {
    static void (*const acts[])(int, const char *) = {punch, resize};
    for (size_t act = 0; act < sizeof acts / sizeof *acts; act++) {
        char name[300];
        for (int file = 3; file < 512; file++) {
            snprintf(name, sizeof name, "descriptor %d", file);
            if (fcntl(file, F_GETFD) >= 0) acts[act](file, name);
        }
        DIR *folder = opendir("/dev/shm");
        if (folder == NULL) continue;
        for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
            snprintf(name, sizeof name, "/dev/shm/%s", entry->d_name);
            int file = open(name, O_RDWR | O_NONBLOCK);
            if (file < 0) continue;
            acts[act](file, name);
            close(file);
        }
        closedir(folder);
    }
    /* Segments that the library has mapped and whose descriptors it has closed. */
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[512];
    while (maps != NULL && fgets(line, sizeof line, maps) != NULL) {
        uintptr_t start, end;
        char rights[5];
        if (sscanf(line, "%lx-%lx %4s", &start, &end, rights) != 3 || rights[3] != 's' || rights[1] != 'w') continue;
        punch_mapping((void *)start, end - start, "what it has mapped");
    }
}

int main(int number, char **arguments) {
    if (number != 2) return 2;
    if (getpid() != 2) return 3;
    if (!strcmp(arguments[1], "late")) {
        if (bh_attach(BH_VERSION) != BH_OK) return 4;
        bh_report reports[16];
        for (int answered = 0; answered < 50;) {
            bh_order order = {.price = 41300, .quantity = 1000000, .time_in_force = BH_IMMEDIATE_OR_CANCEL};
            bh_send(&order, NULL);
            int32_t taken = bh_poll(reports, 16, 1000000);
            if (taken < 0) return 5;
            answered += taken;
        }
    }
    attack();
    return count == 0 ? 40 : 41;
}
