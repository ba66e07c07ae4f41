/* The cost of a push and a pop through bulkhead_queue.h: see contrib/bindings/queue/cost.sh.
 *
 *   cost MESSAGES [one-thread]     prints nanoseconds of two copies of a message's cache lines, and of
 *                                  a push and a pop: on one thread with a receiver that is caught up
 *                                  and one that is behind, and between two threads in a stream and in
 *                                  round trips */
#define _GNU_SOURCE
#include <bulkhead_queue.h>

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef INLINE /* without a call for each message */
typedef bhq_fast_sender sender_end;
typedef bhq_fast_receiver receiver_end;
#define push(end, message) bhq_fast_push(end, message, sizeof *(message))
#define pop(end, message) bhq_fast_pop(end, message, sizeof *(message))
#else
typedef bhq_sender sender_end;
typedef bhq_receiver receiver_end;
#define push(end, message) bhq_push(end, message, sizeof *(message))
#define pop(end, message) bhq_pop(end, message, sizeof *(message))
#endif

#if BYTES == 4
typedef uint32_t word;
#else
typedef uint64_t word;
#endif

typedef struct message {
    word words[BYTES / sizeof(word)];
} message;

#define BEHIND 512

static void checked(int32_t code) {
    if (code < 0) {
        fprintf(stderr, "%s\n", bhq_error_text(code));
        exit(1);
    }
}

static double now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return 1e9 * (double)now.tv_sec + (double)now.tv_nsec;
}

/* Keeps the compiler from moving or dropping what is written to memory. */
static inline void used(void *memory) { __asm__ volatile("" : : "r"(memory) : "memory"); }

/* Two copies of as many cache lines as a message has, by the C library. */
__attribute__((noinline)) static void copy_lines(uint64_t count) {
    static unsigned char lines[3][(BYTES + 63) / 64 * 64] __attribute__((aligned(64)));
    /* Not known to the compiler: it calls memcpy. */
    volatile size_t bytes = sizeof lines[0];
    for (uint64_t number = 0; number < count; number++) {
        lines[0][0] = (unsigned char)number;
        used(lines);
        memcpy(lines[1], lines[0], bytes);
        used(lines);
        memcpy(lines[2], lines[1], bytes);
        used(lines);
    }
}

__attribute__((noinline)) static void push_and_pop(sender_end *sender, receiver_end *receiver, uint64_t count) {
    message sent = {{0}}, received;
    for (uint64_t number = 0; number < count; number++) {
        sent.words[0] = (word)number;
        used(&sent);
        if (push(sender, &sent) != BHQ_OK || pop(receiver, &received) != 1 || received.words[0] != (word)number) {
            exit(1);
        }
    }
}

__attribute__((noinline)) static void push_then_pop(sender_end *sender, receiver_end *receiver, uint64_t count) {
    message sent = {{0}}, received;
    for (uint64_t first = 0; first < count; first += BEHIND) {
        for (uint64_t number = first; number < first + BEHIND; number++) {
            sent.words[0] = (word)number;
            used(&sent);
            if (push(sender, &sent) != BHQ_OK) {
                exit(1);
            }
        }
        for (uint64_t number = first; number < first + BEHIND; number++) {
            if (pop(receiver, &received) != 1 || received.words[0] != (word)number) {
                exit(1);
            }
        }
    }
}

typedef struct ends {
    sender_end *sender;
    receiver_end *receiver;
    uint64_t count;
} ends;

static void *push_all(void *argument) {
    ends *own = argument;
    message sent = {{0}};
    for (uint64_t number = 0; number < own->count; number++) {
        sent.words[0] = (word)number;
        used(&sent);
        while (push(own->sender, &sent) != BHQ_OK) {
        }
    }
    return NULL;
}

static void pop_next(receiver_end *receiver, message *received) {
    while (pop(receiver, received) != 1) {
    }
}

static void *echo_all(void *argument) {
    ends *own = argument;
    message received;
    for (uint64_t number = 0; number < own->count; number++) {
        pop_next(own->receiver, &received);
        while (push(own->sender, &received) != BHQ_OK) {
        }
    }
    return NULL;
}

static void make(sender_end **sender, receiver_end **receiver) {
    bhq_queue *queue;
    bhq_sender *sending;
    bhq_receiver *receiving;
    checked(bhq_create_sealed(1, 1024, sizeof(message), &queue));
    checked(bhq_attach_sender(queue, &sending));
    checked(bhq_attach_receiver(queue, &receiving));
#ifdef INLINE
    checked(bhq_open_fast_sender(sending, sender));
    checked(bhq_open_fast_receiver(receiving, receiver));
#else
    *sender = sending;
    *receiver = receiving;
#endif
}

int main(int argc, char **argv) {
    uint64_t count = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000000;
    sender_end *sender, *answer;
    receiver_end *receiver, *answered;
    make(&sender, &receiver);
    double start = now_ns();
    copy_lines(count);
    printf("%.2f ", (now_ns() - start) / (double)count);
    start = now_ns();
    push_and_pop(sender, receiver, count);
    printf("%.2f ", (now_ns() - start) / (double)count);
    start = now_ns();
    push_then_pop(sender, receiver, count);
    printf("%.2f ", (now_ns() - start) / (double)((count + BEHIND - 1) / BEHIND * BEHIND));
    if (argc > 2) { /* one thread only */
        putchar('\n');
        return 0;
    }
    pthread_t thread;
    ends own = {sender, NULL, count};
    message received;
    start = now_ns();
    pthread_create(&thread, NULL, push_all, &own);
    for (uint64_t number = 0; number < count; number++) {
        pop_next(receiver, &received);
        if (received.words[0] != (word)number) {
            exit(1);
        }
    }
    printf("%.2f ", (now_ns() - start) / (double)count);
    pthread_join(thread, NULL);
    make(&answer, &answered);
    ends back = {answer, receiver, count / 8};
    start = now_ns();
    pthread_create(&thread, NULL, echo_all, &back);
    message sent = {{0}};
    for (uint64_t number = 0; number < count / 8; number++) {
        sent.words[0] = (word)number;
        used(&sent);
        if (push(sender, &sent) != BHQ_OK) {
            exit(1);
        }
        pop_next(answered, &received);
        if (received.words[0] != (word)number) {
            exit(1);
        }
    }
    printf("%.2f\n", (now_ns() - start) / (double)(count / 8));
    pthread_join(thread, NULL);
    return 0;
}
