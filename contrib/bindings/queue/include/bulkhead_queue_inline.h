/* bulkhead_queue_inline: pushes and pops without a call for each message. bulkhead_queue.h includes
 * it.
 *
 * These functions are the library's push and pop over the same memory. BHQ_LAYOUT and the sizes of
 * the structs are compared with the library's when an end is opened. They may alternate with the
 * library's calls on the same end. Whatever is rare is a call: a wake-up, a fault, a queue of several
 * producers, a receiver that has waited or has a message that was taken. A message whose size is
 * known when the program is compiled is copied without a loop.
 *
 *   bhq_fast_sender *fast;
 *   bhq_open_fast_sender(sender, &fast);
 *   bhq_fast_push(fast, &message, sizeof message);
 */

#ifndef BULKHEAD_QUEUE_INLINE_H
#define BULKHEAD_QUEUE_INLINE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Opens a sender for bhq_fast_push. `fast` is the sender's, valid until that is closed. Returns
 * BHQ_OK, BHQ_BAD_LAYOUT or BHQ_NULL. */
static inline int32_t bhq_open_fast_sender(bhq_sender *sender, bhq_fast_sender **fast) {
    return bhq_fast_sender_of(sender, BHQ_LAYOUT, sizeof **fast, fast);
}

/* Opens a receiver for bhq_fast_pop, as bhq_open_fast_sender does. */
static inline int32_t bhq_open_fast_receiver(bhq_receiver *receiver, bhq_fast_receiver **fast) {
    return bhq_fast_receiver_of(receiver, BHQ_LAYOUT, sizeof **fast, fast);
}

/* Bytes up to which a message of whole words is copied word by word. A block copy would load words
 * that were just written in larger pieces, and wait until they have left the CPU's store buffer. */
#define BHQ_WORD_COPY_ 64

/* Copies a message to its place. Short ones in words, which are atomic as the library's. */
static inline void bhq_copy_in_(uint8_t *place, const void *message, size_t bytes) {
    if (bytes % 8 == 0 && bytes <= BHQ_WORD_COPY_) {
#pragma GCC unroll 8
        for (size_t at = 0; at < bytes; at += 8) {
            uint64_t word;
            memcpy(&word, (const uint8_t *)message + at, 8);
            __atomic_store_n((uint64_t *)(void *)(place + at), word, __ATOMIC_RELAXED);
        }
    } else if (bytes == 4) {
        uint32_t word;
        memcpy(&word, message, 4);
        __atomic_store_n((uint32_t *)(void *)place, word, __ATOMIC_RELAXED);
    } else {
        memcpy(place, message, bytes);
    }
}

/* Copies a message out of its place. */
static inline void bhq_copy_out_(void *message, const uint8_t *place, size_t bytes) {
    if (bytes % 8 == 0 && bytes <= BHQ_WORD_COPY_) {
#pragma GCC unroll 8
        for (size_t at = 0; at < bytes; at += 8) {
            uint64_t word = __atomic_load_n((const uint64_t *)(const void *)(place + at), __ATOMIC_RELAXED);
            memcpy((uint8_t *)message + at, &word, 8);
        }
    } else if (bytes == 4) {
        uint32_t word = __atomic_load_n((const uint32_t *)(const void *)place, __ATOMIC_RELAXED);
        memcpy(message, &word, 4);
    } else {
        memcpy(message, place, bytes);
    }
}

/* Copies a message of `bytes` bytes into the queue, as bhq_push does. Returns BHQ_OK, BHQ_FULL, or an
 * error of bhq_push. */
static inline int32_t bhq_fast_push(bhq_fast_sender *fast, const void *message, size_t bytes) {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    if (__builtin_expect(bytes != fast->message_bytes, 0)) {
        return bhq_push(fast->sender, message, bytes);
    }
    uint64_t tail = fast->tail;
    if (tail == fast->limit) {
        /* Acquire: the receiver has read what it has freed. */
        uint64_t waiting = tail - __atomic_load_n(fast->head_word, __ATOMIC_ACQUIRE);
        if (waiting >= fast->capacity) {
            return BHQ_FULL;
        }
        fast->limit = tail + (fast->capacity - waiting);
    }
    bhq_copy_in_(fast->places + (tail & fast->mask) * fast->place_bytes, message, bytes);
    fast->tail = tail + 1;
    /* Release: the receiver that sees the position sees the message. */
    __atomic_store_n(fast->tail_word, tail + 1, __ATOMIC_RELEASE);
    if (__builtin_expect(__atomic_load_n(fast->wake_flag, __ATOMIC_RELAXED) != 0, 0)) {
        return bhq_wake(fast->sender);
    }
    return BHQ_OK;
#else
    return bhq_push(fast->sender, message, bytes);
#endif
}

/* Waits for a moment, as the library's receiver does, if the last look found more messages than one
 * and few: each look takes lines away from the sender, which needs them for its next push. */
static inline void bhq_step_back_(const bhq_fast_receiver *fast) {
    if (fast->found > 1 && fast->found * 8 <= fast->capacity) {
        for (int spin = 0; spin < 8; spin++) {
#if defined(__x86_64__)
            __builtin_ia32_pause();
#elif defined(__aarch64__)
            __asm__ volatile("isb" ::: "memory");
#endif
        }
    }
}

/* Takes the next message and copies it to `message`, as bhq_pop does. Returns 1 for a message, 0 for
 * none now, or an error of bhq_pop. */
static inline int32_t bhq_fast_pop(bhq_fast_receiver *fast, void *message, size_t bytes) {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    if (__builtin_expect(fast->capacity == 0 || bytes != fast->message_bytes, 0)) {
        return bhq_pop(fast->receiver, message, bytes);
    }
    uint64_t head = fast->head;
    const uint8_t *place = fast->places + (head & fast->mask) * fast->place_bytes;
    if (head == fast->end) {
        bhq_step_back_(fast);
        /* Acquire: the sender has written what it has published. */
        uint64_t tail = __atomic_load_n(fast->tail_word, __ATOMIC_ACQUIRE);
        if (tail == head) {
            fast->found = 0;
            __builtin_prefetch(place);
            return 0;
        }
        if (__builtin_expect(tail - head > fast->capacity, 0)) {
            return bhq_pop(fast->receiver, message, bytes); /* which reports the fault */
        }
        fast->found = tail - head;
        fast->end = tail;
    }
    bhq_copy_out_(message, place, bytes);
    fast->head = head + 1;
    /* Release: the sender that sees the position writes after our reads. */
    __atomic_store_n(fast->head_word, head + 1, __ATOMIC_RELEASE);
    return 1;
#else
    return bhq_pop(fast->receiver, message, bytes);
#endif
}

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
