/* Bare loops of the packed ring between two threads, with and without two ideas:
 *
 *   plain   the receiver looks at the sender's position whenever it knows of no message
 *   waits   it waits for eight PAUSE instructions if its last look found more than one message, and
 *           few
 *   beside  as waits, and the sender keeps copies of its last two messages in the line of its
 *           position, from which the receiver takes a single message
 *
 *   cc -O2 -DBYTES=8 bare_loops.c -o loops -lpthread && ./loops RUNS MESSAGES
 *
 * A line for each run: ns of a round trip (plain, waits, beside), then of a message of a stream.
 * Both threads are SCHED_FIFO on cores 0 and 1, as far as that is allowed. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#if BYTES == 4
typedef uint32_t message;
#else
typedef uint64_t message;
#endif
enum { CAPACITY = 1024, PLACES = 2 * CAPACITY };
enum { PLAIN, WAITS, BESIDE };

typedef struct ring {
    _Alignas(128) uint64_t tail;
    message last[2];
    _Alignas(128) uint64_t head;
    _Alignas(128) message places[PLACES];
} ring;

typedef struct end {
    _Alignas(128) ring *ring;
    uint64_t own, known, found;
} end;

#define LOAD(word, order) __atomic_load_n(&(word), __ATOMIC_##order)
#define STORE(word, value, order) __atomic_store_n(&(word), value, __ATOMIC_##order)
#define INLINE static inline __attribute__((always_inline))

INLINE int push(end *sender, message value, int variant) {
    ring *ring = sender->ring;
    uint64_t tail = sender->own;
    if (tail == sender->known) {
        uint64_t waiting = tail - LOAD(ring->head, ACQUIRE);
        if (waiting >= CAPACITY) return 0;
        sender->known = tail + (CAPACITY - waiting);
    }
    STORE(ring->places[tail % PLACES], value, RELAXED);
    if (variant == BESIDE) STORE(ring->last[tail % 2], value, RELAXED);
    sender->own = tail + 1;
    STORE(ring->tail, tail + 1, RELEASE);
    return 1;
}

INLINE int pop(end *receiver, message *value, int variant) {
    ring *ring = receiver->ring;
    uint64_t head = receiver->own;
    int is_copied = 0;
    if (head == receiver->known) {
        if (variant != PLAIN && receiver->found > 1 && receiver->found <= CAPACITY / 8) {
            for (int spin = 0; spin < 8; spin++) __builtin_ia32_pause();
        }
        uint64_t tail = LOAD(ring->tail, ACQUIRE);
        receiver->found = tail - head;
        if (tail == head) {
            if (variant != BESIDE) __builtin_prefetch(&ring->places[head % PLACES]);
            return 0;
        }
        receiver->known = tail;
        if (variant == BESIDE && tail == head + 1) {
            *value = LOAD(ring->last[head % 2], RELAXED);
            __atomic_thread_fence(__ATOMIC_ACQUIRE);
            /* The sender has not begun to overwrite the copy. */
            is_copied = LOAD(ring->tail, RELAXED) == tail;
        }
    }
    if (!is_copied) *value = LOAD(ring->places[head % PLACES], RELAXED);
    receiver->own = head + 1;
    STORE(ring->head, head + 1, RELEASE);
    return 1;
}

static ring *there, *back;
static long count;

static double now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return 1e9 * (double)now.tv_sec + (double)now.tv_nsec;
}

static void start(pthread_t *thread, void *(*run)(void *)) {
    pthread_attr_t attributes;
    cpu_set_t core;
    CPU_ZERO(&core);
    CPU_SET(1, &core);
    pthread_attr_init(&attributes);
    pthread_attr_setaffinity_np(&attributes, sizeof core, &core);
    if (pthread_create(thread, &attributes, run, NULL)) exit(1);
}

/* Functions of a variant: NAME_echo, NAME_drain, NAME_round_trip and NAME_stream. */
#define FUNCTIONS(name, variant)                                                                                     \
    static void *name##_echo(void *unused) {                                                                         \
        end receiver = {there, 0, 0, 0}, sender = {back, 0, 0, 0};                                                   \
        message value;                                                                                               \
        for (long number = 0; number < count; number++) {                                                            \
            while (!pop(&receiver, &value, variant));                                                                \
            while (!push(&sender, value, variant));                                                                  \
        }                                                                                                            \
        return unused;                                                                                               \
    }                                                                                                                \
    static void *name##_drain(void *unused) {                                                                        \
        end receiver = {there, 0, 0, 0};                                                                             \
        message value;                                                                                               \
        for (long number = 0; number < count; number++) {                                                            \
            while (!pop(&receiver, &value, variant));                                                                \
            if (value != (message)number) abort();                                                                   \
        }                                                                                                            \
        return unused;                                                                                               \
    }                                                                                                                \
    static double name##_measure(int is_stream) {                                                                    \
        memset(there, 0, sizeof *there);                                                                             \
        memset(back, 0, sizeof *back);                                                                               \
        end sender = {there, 0, 0, 0}, receiver = {back, 0, 0, 0};                                                   \
        message value;                                                                                               \
        pthread_t thread;                                                                                            \
        start(&thread, is_stream ? name##_drain : name##_echo);                                                      \
        double begin = now_ns();                                                                                     \
        for (long number = 0; number < count; number++) {                                                            \
            while (!push(&sender, (message)number, variant));                                                        \
            if (is_stream) continue;                                                                                 \
            while (!pop(&receiver, &value, variant));                                                                \
            if (value != (message)number) abort();                                                                   \
        }                                                                                                            \
        pthread_join(thread, NULL);                                                                                  \
        return (now_ns() - begin) / (double)count;                                                                   \
    }
FUNCTIONS(plain, PLAIN)
FUNCTIONS(waits, WAITS)
FUNCTIONS(beside, BESIDE)

int main(int arguments, char **values) {
    if (arguments != 3) return 2;
    count = atol(values[2]);
    there = aligned_alloc(4096, (sizeof(ring) + 4095) / 4096 * 4096);
    back = aligned_alloc(4096, (sizeof(ring) + 4095) / 4096 * 4096);
    cpu_set_t core;
    CPU_ZERO(&core);
    CPU_SET(0, &core);
    struct sched_param priority = {.sched_priority = 10};
    if (sched_setaffinity(0, sizeof core, &core) || sched_setscheduler(0, SCHED_FIFO, &priority)) perror("not alone on its core");
    for (int run = 0; run < atoi(values[1]); run++) {
        double trips[] = {plain_measure(0), waits_measure(0), beside_measure(0)};
        double streams[] = {plain_measure(1), waits_measure(1), beside_measure(1)};
        printf("%.1f %.1f %.1f  %.1f %.1f %.1f\n", trips[0], trips[1], trips[2], streams[0], streams[1], streams[2]);
        fflush(stdout);
        nanosleep(&(struct timespec){0, 20000000}, NULL);
    }
}
