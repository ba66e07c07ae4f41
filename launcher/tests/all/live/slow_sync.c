/* A library to preload: one slow fdatasync for each file SLOW_SYNC that is created.

   The calling thread waits in the kernel for a child that sleeps (vfork). To an observer that is
   what a busy disk looks like: an uninterruptible sleep, which only the kernel ends. The threads of
   a journal itself are not slowed down. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int fdatasync(int file) {
    int (*sync)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
    const char *request = getenv("SLOW_SYNC");
    const struct timespec pause = {.tv_sec = 4};
    char name[16] = "";
    prctl(PR_GET_NAME, name);
    if (request && strncmp(name, "journal-", 8) && unlink(request) == 0) {
        pid_t child = vfork();
        if (child == 0) {
            nanosleep(&pause, NULL);
            _exit(0);
        }
        if (child > 0)
            waitpid(child, NULL, 0);
    }
    return sync(file);
}
