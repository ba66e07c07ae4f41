/* A sender that is killed at a random moment, and its successor, again and again.
 *
 *   cc crash_and_successor.c $(pkg-config --cflags --libs bulkhead-queue) -o crash && ./crash 20
 *
 * The receiver checks that no message is lost, doubled or torn. A sender stores the number of its
 * pushes that have returned in memory that survives it: all of these must arrive.
 *
 * A third word plants an error that the receiver must find: lost, doubled or torn. */
#define _GNU_SOURCE
#include <bulkhead_queue.h>

#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef WORDS
#define WORDS 3
#endif

/* With -DINLINE pushes and pops are not calls. */
#ifdef INLINE
static bhq_fast_receiver *fast;
#define PUSH(sender, message) bhq_fast_push(sender, message, sizeof *(message))
#define POP(receiver, message) bhq_fast_pop(fast, message, sizeof *(message))
#else
#define PUSH(sender, message) bhq_push(sender, message, sizeof *(message))
#define POP(receiver, message) bhq_pop(receiver, message, sizeof *(message))
#endif

typedef struct numbered {
    uint64_t words[WORDS];
} numbered;

/* The receiver's handles, closed whenever its program ends: no file is left in /dev/shm. */
static bhq_queue *queue;
static bhq_receiver *receiver;

static void close_handles(void) {
    bhq_close_receiver(receiver);
    bhq_close_queue(queue);
}

static int32_t checked(int32_t code) {
    if (code < 0) {
        fprintf(stderr, "%s\n", bhq_error_text(code));
        exit(1);
    }
    return code;
}

static void *checked_map(int fd) {
    void *memory = mmap(NULL, sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED) {
        perror("mmap");
        exit(1);
    }
    return memory;
}

static numbered message_of(uint64_t number) {
    numbered message;
    for (size_t word = 0; word < WORDS; word++) {
        message.words[word] = number * (2 * word + 1);
    }
    return message;
}

/* Pushes messages from `number` on, until it is killed. */
static void send_until_killed(const char *name, uint64_t number, int fd, const char *planted) {
    uint64_t *returned = checked_map(fd);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    bhq_sender *sender;
    checked(bhq_open(name, sizeof(numbered), &queue));
    if (checked(bhq_producer_state(queue, 0, NULL)) == BHQ_STATE_DEAD) {
        checked(bhq_resume_sender(queue, 0, &sender));
    } else {
        checked(bhq_attach_sender(queue, &sender));
    }
#ifdef INLINE
    bhq_fast_sender *end;
    checked(bhq_open_fast_sender(sender, &end));
#else
    bhq_sender *end = sender;
#endif
    if (number > 0 && strcmp(planted, "lost") == 0) {
        number++;
    } else if (number > 0 && strcmp(planted, "doubled") == 0) {
        number--;
    }
    for (;; number++) {
        numbered message = message_of(number);
        if (number % 100 == 99 && strcmp(planted, "torn") == 0) {
            message.words[WORDS - 1]++;
        }
        int32_t code;
        while ((code = PUSH(end, &message)) == BHQ_FULL) {
            sched_yield();
        }
        checked(code);
        __atomic_store_n(returned, number + 1, __ATOMIC_RELEASE);
    }
}

/* Takes the messages that are there, at most `max`, and checks each. Returns the number of the next
 * one. */
static uint64_t receive(uint64_t next, uint64_t max) {
    numbered copy;
    const void *message;
    uint64_t end = next + max;
    /* In turn: a copy into own memory, and the receiver's copy in place. */
    while (next != end &&
           (next % 2 == 0 ? checked(POP(receiver, &copy)) == 1
                          : checked(bhq_take(receiver, &message, 0)) == 1)) {
        const numbered *found = next % 2 == 0 ? &copy : message;
        numbered expected = message_of(next);
        if (memcmp(found, &expected, sizeof expected) != 0) {
            uint64_t number = found->words[0];
            numbered same = message_of(number);
            const char *what = memcmp(found, &same, sizeof same) != 0 ? "torn"
                               : number < next                       ? "doubled"
                                                                     : "lost";
            fprintf(stderr, "%s: message %llu instead of %llu\n", what, (unsigned long long)number,
                    (unsigned long long)next);
            exit(1);
        }
        if (next % 2 == 1) {
            checked(bhq_release(receiver));
        }
        next++;
    }
    return next;
}

int main(int argc, char **argv) {
    if (argc == 5) {
        send_until_killed(argv[1], strtoull(argv[2], NULL, 10), atoi(argv[3]), argv[4]);
    }
    int rounds = argc > 1 ? atoi(argv[1]) : 10;
    char name[64], number[32], descriptor[16];
    snprintf(name, sizeof name, "c-crash-%d-%d", WORDS, (int)getpid());
    srand((unsigned)getpid());
    /* Inherited by the senders. */
    int fd = memfd_create("returned", 0);
    if (fd < 0 || ftruncate(fd, sizeof(uint64_t)) != 0) {
        perror("memory for the number of pushes");
        return 1;
    }
    uint64_t *returned = checked_map(fd), next = 0;
    atexit(close_handles);
    checked(bhq_create(name, 1, 256, sizeof(numbered), &queue));
    checked(bhq_attach_receiver(queue, &receiver));
#ifdef INLINE
    checked(bhq_open_fast_receiver(receiver, &fast));
#endif
    for (int round = 0; round < rounds; round++) {
        snprintf(number, sizeof number, "%llu", (unsigned long long)next);
        snprintf(descriptor, sizeof descriptor, "%d", fd);
        char *arguments[] = {argv[0], name, number, descriptor, argc > 2 ? argv[2] : "nothing", NULL};
        pid_t child;
        if (posix_spawn(&child, "/proc/self/exe", NULL, NULL, arguments, environ) != 0) {
            perror("the sender cannot be started");
            return 1;
        }
        /* At least some messages, and then a random time of up to 5 ms. */
        uint64_t enough = next + 200;
        struct timespec start, now;
        clock_gettime(CLOCK_MONOTONIC, &start);
        while (next < enough) {
            next = receive(next, 100);
            clock_gettime(CLOCK_MONOTONIC, &now);
            if (now.tv_sec - start.tv_sec > 60) {
                fprintf(stderr, "no messages for a minute\n");
                return 1;
            }
            sched_yield();
        }
        clock_gettime(CLOCK_MONOTONIC, &start);
        long run_ns = rand() % 5000000;
        do {
            next = receive(next, 100);
            clock_gettime(CLOCK_MONOTONIC, &now);
        } while ((now.tv_sec - start.tv_sec) * 1000000000L + now.tv_nsec - start.tv_nsec < run_ns);
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        if (checked(bhq_producer_state(queue, 0, NULL)) != BHQ_STATE_DEAD) {
            fprintf(stderr, "the killed sender is not seen to be dead\n");
            return 1;
        }
        next = receive(next, UINT64_MAX);
        uint64_t pushed = __atomic_load_n(returned, __ATOMIC_ACQUIRE);
        /* One more: its push was complete, and had not returned. */
        if (next != pushed && next != pushed + 1) {
            fprintf(stderr, "lost: %llu pushes returned, %llu messages arrived\n", (unsigned long long)pushed,
                    (unsigned long long)next);
            return 1;
        }
    }
    printf("%d senders killed, %llu messages of %zu bytes: none lost, doubled or torn\n", rounds,
           (unsigned long long)next, sizeof(numbered));
    return 0;
}
