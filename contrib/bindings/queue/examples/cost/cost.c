/* The cost of a push and a pop through bulkhead_queue.h: see contrib/bindings/queue/cost.sh.
 *
 *   cost MESSAGES     prints nanoseconds of a push and a pop: on one thread, and between two */
#define _GNU_SOURCE
#include <bulkhead_queue.h>

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef struct message {
    uint64_t words[WORDS];
} message;

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

__attribute__((noinline)) static void push_and_pop(bhq_sender *sender, bhq_receiver *receiver, uint64_t count) {
    message sent = {{0}}, received;
    for (uint64_t number = 0; number < count; number++) {
        sent.words[0] = number;
        used(&sent);
        if (bhq_push(sender, &sent, sizeof sent) != BHQ_OK ||
            bhq_pop(receiver, &received, sizeof received) != 1 || received.words[0] != number) {
            exit(1);
        }
    }
}

typedef struct sending {
    bhq_sender *sender;
    uint64_t count;
} sending;

static void *push_all(void *argument) {
    sending *own = argument;
    message sent = {{0}};
    for (uint64_t number = 0; number < own->count; number++) {
        sent.words[0] = number;
        used(&sent);
        while (bhq_push(own->sender, &sent, sizeof sent) != BHQ_OK) {
        }
    }
    return NULL;
}

static void pop_all(bhq_receiver *receiver, uint64_t count) {
    message received;
    for (uint64_t number = 0; number < count; number++) {
        while (bhq_pop(receiver, &received, sizeof received) != 1) {
        }
        if (received.words[0] != number) {
            exit(1);
        }
    }
}

int main(int argc, char **argv) {
    uint64_t count = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000000;
    bhq_queue *queue;
    bhq_sender *sender;
    bhq_receiver *receiver;
    checked(bhq_create_sealed(1, 1024, sizeof(message), &queue));
    checked(bhq_attach_sender(queue, &sender));
    checked(bhq_attach_receiver(queue, &receiver));
    double start = now_ns();
    push_and_pop(sender, receiver, count);
    printf("%.2f", (now_ns() - start) / (double)count);
    if (argc > 2) { /* one thread only */
        putchar('\n');
        return 0;
    }
    pthread_t thread;
    sending own = {sender, count};
    start = now_ns();
    pthread_create(&thread, NULL, push_all, &own);
    pop_all(receiver, count);
    printf(" %.2f\n", (now_ns() - start) / (double)count);
    pthread_join(thread, NULL);
    bhq_close_sender(sender);
    bhq_close_receiver(receiver);
    bhq_close_queue(queue);
    return 0;
}
