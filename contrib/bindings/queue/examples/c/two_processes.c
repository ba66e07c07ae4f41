/* Two processes and one queue between them.
 *
 *   cc two_processes.c $(pkg-config --cflags --libs bulkhead-queue) -o two_processes && ./two_processes
 *
 * The program creates a queue, starts itself again as the sender, and receives its messages. It
 * waits asleep, and stops if the sender is killed. */
#define _GNU_SOURCE
#include <bulkhead_queue.h>

#include <sched.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MESSAGES = 100000 };

typedef struct trade {
    uint64_t sequence;
    uint64_t price;
    uint64_t quantity;
} trade;

/* Ends the program if a call failed. */
static int32_t checked(int32_t code) {
    if (code < 0) {
        fprintf(stderr, "%s\n", bhq_error_text(code));
        exit(1);
    }
    return code;
}

static trade numbered(uint64_t sequence) {
    return (trade){sequence, 100 + sequence % 7, 1 + sequence % 3};
}

static int send_all(const char *name) {
    bhq_queue *queue;
    bhq_sender *sender;
    checked(bhq_open(name, sizeof(trade), &queue));
    checked(bhq_attach_sender(queue, &sender));
    for (uint64_t sequence = 0; sequence < MESSAGES; sequence++) {
        trade message = numbered(sequence);
        int32_t code;
        while ((code = bhq_push(sender, &message, sizeof message)) == BHQ_FULL) {
            sched_yield();
        }
        checked(code);
    }
    bhq_close_sender(sender);
    bhq_close_queue(queue);
    return 0;
}

int main(int argc, char **argv) {
    if (argc > 1) {
        return send_all(argv[1]);
    }
    char name[64];
    snprintf(name, sizeof name, "c-two-processes-%d", (int)getpid());
    bhq_queue *queue;
    bhq_receiver *receiver;
    checked(bhq_create(name, 1, 1024, sizeof(trade), &queue));
    checked(bhq_attach_receiver(queue, &receiver));
    pid_t child;
    char *arguments[] = {argv[0], name, NULL};
    if (posix_spawn(&child, "/proc/self/exe", NULL, NULL, arguments, environ) != 0) {
        perror("the sender cannot be started");
        return 1;
    }
    for (uint64_t sequence = 0; sequence < MESSAGES;) {
        trade message;
        if (checked(bhq_pop_timeout(receiver, &message, sizeof message, 100000000)) == 0) {
            if (checked(bhq_producer_state(queue, 0, NULL)) == BHQ_STATE_DEAD) {
                fprintf(stderr, "the sender was killed\n");
                return 1;
            }
            continue;
        }
        trade expected = numbered(sequence++);
        if (message.sequence != expected.sequence || message.price != expected.price ||
            message.quantity != expected.quantity) {
            fprintf(stderr, "trade %llu is wrong\n", (unsigned long long)expected.sequence);
            return 1;
        }
    }
    waitpid(child, NULL, 0);
    bhq_close_receiver(receiver);
    bhq_close_queue(queue);
    printf("%d trades from process %d to %d, in order\n", MESSAGES, (int)child, (int)getpid());
    return 0;
}
