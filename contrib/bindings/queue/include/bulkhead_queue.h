/* bulkhead_queue: queues between processes that survive a crash of either side.
 *
 * Every function that returns int32_t returns 0 or more on success and a negative code otherwise;
 * bhq_error_text has its text. A handle is used by one thread at a time. The guide is
 * contrib/bindings/queue/README.md.
 *
 * Made of contrib/bindings/queue/src by contrib/bindings/queue/tests/header.rs: change it there. */

#ifndef BULKHEAD_QUEUE_H
#define BULKHEAD_QUEUE_H

#include <stddef.h>
#include <stdint.h>

// Version of this interface: major in the upper 16 bits, minor below. A library serves programs of
// its major version and of no later minor version.
#define BHQ_VERSION 65538

// Version of the memory layout that inline pushes and pops use; bhq_fast_sender_of and
// bhq_fast_receiver_of refuse a program that passes another version.
#define BHQ_LAYOUT 2

// Maximum size of a message in bytes.
#define BHQ_MAX_MESSAGE_BYTES 65536

// Maximum number of producers of a queue.
#define BHQ_MAX_PRODUCERS 1024

// The longest time, in nanoseconds (100 ms), that a program may wait for the descriptor of
// bhq_wait_fd before it pops again. A sender that is killed before its wake-up leaves its message
// unannounced.
#define BHQ_MAX_WAIT_NS 100000000

// State of a producer: bhq_attach_sender may attach a sender.
#define BHQ_STATE_FREE 0

// State of a producer: a sender of a running process is attached.
#define BHQ_STATE_ALIVE 1

// State of a producer: its process crashed, or was killed. bhq_resume_sender continues it.
#define BHQ_STATE_DEAD 2

// State of a producer: the receiver does not poll it any more. bhq_renew frees it.
#define BHQ_STATE_RETIRED 3

// Success; from a pop or a take (reading in place), which return 1 for a message: there is no
// message now.
#define BHQ_OK 0

// The queue has no room for the message now, which was not taken: push it again later.
#define BHQ_FULL -1

// A producer broke the protocol and is not read any more: bhq_faulty_producer returns its index.
// The next pop continues with the others.
#define BHQ_FAULT -2

// No queue has that name.
#define BHQ_NOT_FOUND -3

// The queue is being created: open it again.
#define BHQ_INCOMPLETE -4

// A live process has a queue of that name.
#define BHQ_LIVING -5

// No producer is free.
#define BHQ_NO_FREE_PRODUCER -6

// No producer is free, and a sender's process crashed: call bhq_resume_sender to continue as its
// producer.
#define BHQ_SENDER_CRASHED -7

// The last receiver crashed: call bhq_resume_receiver.
#define BHQ_RECEIVER_CRASHED -8

// A live process has attached the receiver.
#define BHQ_ATTACHED -9

// The producer is alive, and can be neither resumed, retired nor renewed.
#define BHQ_PRODUCER_ALIVE -10

// The producer was retired: bhq_renew frees it.
#define BHQ_RETIRED -11

// Returned by bhq_faulty_producer if no producer has broken the protocol.
#define BHQ_NO_PRODUCER -12

// A required pointer is null.
#define BHQ_NULL -16

// The name is not of 1 to 64 characters of a-z, A-Z, 0-9, - and _.
#define BHQ_BAD_NAME -17

// The size of a message is not that of the queue, or not of 1 to 65,536 bytes.
#define BHQ_BAD_SIZE -18

// The capacity is out of range.
#define BHQ_BAD_CAPACITY -19

// The number of producers is not of 1 to 1,024.
#define BHQ_BAD_PRODUCERS -20

// The queue has no producer of that index.
#define BHQ_BAD_INDEX -21

// The descriptors are not those of a sealed queue (one without a name), or the queue has a name
// and so no descriptors.
#define BHQ_BAD_DESCRIPTORS -22

// A message was taken: release it or put it back before the next one.
#define BHQ_TAKEN -23

// No message was taken.
#define BHQ_NOT_TAKEN -24

// Too little space in /dev/shm, or too little memory.
#define BHQ_NO_SPACE -25

// The queue's memory is missing, damaged or of another build, or the system refused a call.
#define BHQ_SYSTEM -26

// A defect of this library: close the handle.
#define BHQ_DEFECT -27

// The program was compiled for another layout than the library's: compile it again.
#define BHQ_BAD_LAYOUT -28

// A handle of a queue, from which its ends are attached. Ends outlive it.
typedef struct bhq_queue bhq_queue;

// The handle of a queue's receiving end.
typedef struct bhq_receiver bhq_receiver;

// The handle of a queue's sending end.
typedef struct bhq_sender bhq_sender;

// A sender's position and its queue's layout, which the inline C function bhq_fast_push reads and
// writes to push without a call. A program does not use the fields.
typedef struct {
    // Number of messages that the sender has published.
    uint64_t tail;
    // Position up to which the sender may push without reading the receiver's position.
    uint64_t limit;
    // Maximum number of messages in the queue.
    uint64_t capacity;
    // Number of places minus one.
    uint64_t mask;
    // Bytes of a message.
    uint64_t message_bytes;
    // Bytes from one place to the next.
    uint64_t place_bytes;
    // Address of the first place (the memory of one message).
    uint8_t *places;
    // Address of the sender's published position.
    uint64_t *tail_word;
    // Address of the receiver's published position.
    const uint64_t *head_word;
    // Address of the word that is 0 until a receiver of the queue has waited.
    const uint64_t *wake_flag;
    // The sender's handle, for calls.
    bhq_sender *sender;
} bhq_fast_sender;

// A receiver's position and its queue's layout, which the inline C function bhq_fast_pop reads and
// writes to pop without a call. A program does not use the fields.
typedef struct {
    // Number of messages that the receiver has taken.
    uint64_t head;
    // Number of messages that are known to be published.
    uint64_t end;
    // Maximum number of messages in the queue; 0 while each pop is a call.
    uint64_t capacity;
    // Number of places minus one.
    uint64_t mask;
    // Bytes of a message.
    uint64_t message_bytes;
    // Bytes from one place to the next.
    uint64_t place_bytes;
    // Address of the first place (the memory of one message).
    const uint8_t *places;
    // Address of the sender's published position.
    const uint64_t *tail_word;
    // Address of the receiver's published position.
    uint64_t *head_word;
    // The receiver's handle, for calls.
    bhq_receiver *receiver;
    // Number of messages that the last look at the sender's position found.
    uint64_t found;
} bhq_fast_receiver;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Returns the version of the library, to be compared with BHQ_VERSION of the header.
uint32_t bhq_version(void);

// Returns the English text of a code: of this thread's last error if that had this code. Never
// null; valid until the thread's next error.
const char *bhq_error_text(int32_t code);

// Creates a queue under a name, of messages of `message_bytes` bytes (1 to 65,536), and writes its
// handle to `queue`. One producer: SPSC; up to 1,024: MPSC, with a ring for each producer.
// `capacity` is the number of messages of each producer, at least. Leftovers of a crashed creator
// of that name are removed first.
//
// Returns BHQ_OK, BHQ_LIVING, BHQ_NO_SPACE, BHQ_SYSTEM, or a code for a wrong argument.
//
// # Safety
// `name` is null or a C string; `queue` is null or valid for the write of a pointer.
int32_t bhq_create(const char *name,
                   uint32_t producers,
                   uint32_t capacity,
                   size_t message_bytes,
                   bhq_queue **queue);

// Creates a queue without a name, in sealed memory. Other processes open it with the descriptors
// of bhq_fds. Otherwise as bhq_create.
//
// # Safety
// `queue` is null or valid for the write of a pointer.
int32_t bhq_create_sealed(uint32_t producers,
                          uint32_t capacity,
                          size_t message_bytes,
                          bhq_queue **queue);

// Opens a queue that another process has created under a name, and writes its handle to `queue`.
// `message_bytes` is the size of its messages; 0: any, see bhq_message_bytes.
//
// Returns BHQ_OK, BHQ_NOT_FOUND, BHQ_INCOMPLETE, BHQ_BAD_SIZE, BHQ_SYSTEM or BHQ_BAD_NAME.
//
// # Safety
// `name` is null or a C string; `queue` is null or valid for the write of a pointer.
int32_t bhq_open(const char *name, size_t message_bytes, bhq_queue **queue);

// Opens a sealed queue with the two descriptors of bhq_fds, which were inherited or sent over a
// Unix socket. They are checked, duplicated, and remain the caller's. `message_bytes` as for
// bhq_open.
//
// Returns BHQ_OK, BHQ_BAD_DESCRIPTORS, BHQ_BAD_SIZE or BHQ_SYSTEM.
//
// # Safety
// `queue` is null or valid for the write of a pointer. The descriptors are open, or negative.
int32_t bhq_open_fds(int32_t memory_fd, int32_t pipe_fd, size_t message_bytes, bhq_queue **queue);

// Writes the two descriptors of a sealed queue, its memory and its pipe. They remain the queue's
// and are close-on-exec: duplicate them for a child, or send them over a Unix socket
// (SCM_RIGHTS). BHQ_BAD_DESCRIPTORS: the queue has a name instead.
//
// # Safety
// `queue` is null or a handle; `memory_fd` and `pipe_fd` are null or valid for the write of a
// number.
int32_t bhq_fds(const bhq_queue *queue, int32_t *memory_fd, int32_t *pipe_fd);

// Returns the size of the queue's messages in bytes; 0 for a null handle.
//
// # Safety
// `queue` is null or a handle.
size_t bhq_message_bytes(const bhq_queue *queue);

// Returns the maximum number of producers of the queue; 0 for a null handle.
//
// # Safety
// `queue` is null or a handle.
uint32_t bhq_producers(const bhq_queue *queue);

// Returns the state of a producer, BHQ_STATE_FREE to BHQ_STATE_RETIRED, and writes the id of its
// process to `pid`, unless that is null; 0: none. The kernel has the answer, not a timeout: a
// process that has ended is dead at once, unless a child that it forked without `exec` still runs
// and so keeps its locks. The id is of the process's own PID namespace.
//
// Returns BHQ_BAD_INDEX or BHQ_SYSTEM otherwise.
//
// # Safety
// `queue` is null or a handle; `pid` is null or valid for the write of a number.
int32_t bhq_producer_state(const bhq_queue *queue, uint32_t index, uint64_t *pid);

// Returns 1 if a live process has attached the receiver, 0 if none has.
//
// # Safety
// `queue` is null or a handle.
int32_t bhq_has_receiver(const bhq_queue *queue);

// Attaches a sender as the first free producer, and writes its handle to `sender`.
//
// Returns BHQ_OK, BHQ_NO_FREE_PRODUCER, BHQ_SENDER_CRASHED or BHQ_SYSTEM.
//
// # Safety
// `queue` is null or a handle; `sender` is null or valid for the write of a pointer.
int32_t bhq_attach_sender(bhq_queue *queue, bhq_sender **sender);

// Attaches a sender in place of a crashed producer. It continues after the last message whose push
// had returned; the receiver does not need to do anything.
//
// Returns BHQ_OK, BHQ_BAD_INDEX, BHQ_PRODUCER_ALIVE, BHQ_RETIRED or BHQ_SYSTEM.
//
// # Safety
// `queue` is null or a handle; `sender` is null or valid for the write of a pointer.
int32_t bhq_resume_sender(bhq_queue *queue, uint32_t index, bhq_sender **sender);

// Attaches the receiver of the queue, and writes its handle to `receiver`.
//
// Returns BHQ_OK, BHQ_ATTACHED, BHQ_RECEIVER_CRASHED or BHQ_SYSTEM.
//
// # Safety
// `queue` is null or a handle; `receiver` is null or valid for the write of a pointer.
int32_t bhq_attach_receiver(bhq_queue *queue, bhq_receiver **receiver);

// Attaches the receiver in place of a crashed one. Every message that was neither popped nor
// released arrives, in order.
//
// Returns BHQ_OK, BHQ_ATTACHED or BHQ_SYSTEM.
//
// # Safety
// `queue` is null or a handle; `receiver` is null or valid for the write of a pointer.
int32_t bhq_resume_receiver(bhq_queue *queue, bhq_receiver **receiver);

// Closes a queue's handle; null: does nothing. Attached ends continue. The creator's handle
// removes the name.
//
// # Safety
// `queue` is null or a handle, which is not used again.
void bhq_close_queue(bhq_queue *queue);

// Detaches a sender and frees its producer; null: does nothing. What it has pushed arrives.
//
// # Safety
// `sender` is null or a handle, which is not used again.
void bhq_close_sender(bhq_sender *sender);

// Detaches the receiver; null: does nothing. The next one takes the messages that were not popped
// or released.
//
// # Safety
// `receiver` is null or a handle, which is not used again.
void bhq_close_receiver(bhq_receiver *receiver);

// Removes the files of a queue whose creator was killed. Returns their number; 0: there were none.
//
// Returns BHQ_LIVING, BHQ_BAD_NAME or BHQ_SYSTEM otherwise.
//
// # Safety
// `name` is null or a C string.
int32_t bhq_remove(const char *name);

// Copies a message of `bytes` bytes into the queue, and wakes a waiting receiver. Never blocks. No
// allocation, and no system call unless the receiver waits. `bytes` is the size of the queue's
// messages.
//
// Returns BHQ_OK, BHQ_FULL, BHQ_BAD_SIZE or BHQ_NULL. Release: the receiver that pops the message
// sees everything that this thread did before.
//
// # Safety
// `sender` is null or a handle; `message` is null or valid for the read of `bytes` bytes.
int32_t bhq_push(bhq_sender *sender, const void *message, size_t bytes);

// Returns the index of the sender's producer; BHQ_NULL for a null handle.
//
// # Safety
// `sender` is null or a handle.
int32_t bhq_sender_index(const bhq_sender *sender);

// Takes the next message and copies it to `message`. Never blocks, allocates or makes a system
// call. At most once: a receiver that is killed afterwards loses the message if it had not used
// it. `bytes` is the size of the queue's messages.
//
// Returns 1 for a message, 0 for none now, BHQ_FAULT, BHQ_TAKEN, BHQ_BAD_SIZE or BHQ_NULL.
// Acquire: sees everything that the sender did before its push.
//
// # Safety
// `receiver` is null or a handle; `message` is null or valid for the write of `bytes` bytes.
int32_t bhq_pop(bhq_receiver *receiver, void *message, size_t bytes);

// Takes the next message as bhq_pop does, sleeping until there is one, at most for `timeout_ns`
// nanoseconds. The death of a sender does not end the wait: see bhq_producer_state.
//
// # Safety
// `receiver` is null or a handle; `message` is null or valid for the write of `bytes` bytes.
int32_t bhq_pop_timeout(bhq_receiver *receiver, void *message, size_t bytes, uint64_t timeout_ns);

// Takes the next message and writes its address to `message`: the receiver's own copy, aligned to
// 8 bytes, valid until bhq_release or bhq_put_back. At least once: a message that was not released
// is the successor's if this process is killed. Sleeps at most for `timeout_ns` nanoseconds; 0:
// not at all.
//
// Returns 1 for a message, 0 for none now, BHQ_FAULT, BHQ_TAKEN or BHQ_NULL. Acquire: as bhq_pop.
//
// # Safety
// `receiver` is null or a handle; `message` is null or valid for the write of a pointer.
int32_t bhq_take(bhq_receiver *receiver, const void **message, uint64_t timeout_ns);

// Frees the slots of the message that was taken, which has been used and is not taken again.
//
// Returns BHQ_OK, BHQ_NOT_TAKEN or BHQ_NULL. Release: what this thread did with the message comes
// before its slot is reused.
//
// # Safety
// `receiver` is null or a handle.
int32_t bhq_release(bhq_receiver *receiver);

// Makes the message that was taken the next one of its producer again. Messages of other producers
// may come first.
//
// Returns BHQ_OK, BHQ_NOT_TAKEN or BHQ_NULL.
//
// # Safety
// `receiver` is null or a handle.
int32_t bhq_put_back(bhq_receiver *receiver);

// Returns the index of the producer of the message that was popped or taken last; BHQ_NULL for a
// null handle.
//
// # Safety
// `receiver` is null or a handle.
int32_t bhq_last_producer(const bhq_receiver *receiver);

// Returns the index of the producer of the last BHQ_FAULT; BHQ_NO_PRODUCER: there was none;
// BHQ_NULL for a null handle.
//
// # Safety
// `receiver` is null or a handle.
int32_t bhq_faulty_producer(const bhq_receiver *receiver);

// Returns the file descriptor that becomes readable for a message pushed after bhq_prepare_wait,
// for poll and epoll. It remains the receiver's. BHQ_NULL for a null handle.
//
// # Safety
// `receiver` is null or a handle.
int32_t bhq_wait_fd(const bhq_receiver *receiver);

// Arms the descriptor of bhq_wait_fd. Returns 1 if the queue is empty: wait until the descriptor
// is readable, at most for BHQ_MAX_WAIT_NS, then pop until there is none. Returns 0 if there is a
// message already.
//
// # Safety
// `receiver` is null or a handle.
int32_t bhq_prepare_wait(bhq_receiver *receiver);

// Stops polling a dead producer. Returns 1, or 0 while it has messages to pop.
//
// Returns BHQ_BAD_INDEX, BHQ_PRODUCER_ALIVE or BHQ_SYSTEM otherwise.
//
// # Safety
// `receiver` is null or a handle.
int32_t bhq_retire(bhq_receiver *receiver, uint32_t index);

// Resets the ring of a dead, retired or faulty producer and frees it for a new sender. Returns 1,
// or 0 while it has messages to pop.
//
// Returns BHQ_BAD_INDEX, BHQ_PRODUCER_ALIVE or BHQ_SYSTEM otherwise.
//
// # Safety
// `receiver` is null or a handle.
int32_t bhq_renew(bhq_receiver *receiver, uint32_t index);

// Returns the state of a producer as bhq_producer_state does, for a receiver whose process has
// closed the queue's handle.
//
// # Safety
// `receiver` is null or a handle; `pid` is null or valid for the write of a number.
int32_t bhq_receiver_producer_state(const bhq_receiver *receiver, uint32_t index, uint64_t *pid);

// Copies the first of `count` messages, which lie next to each other, into the queue, up to as
// many as fit, and wakes a waiting receiver. A sender that is killed here has pushed the first
// ones, or none. `bytes` is the size of each.
//
// Returns the number of messages that were pushed, BHQ_BAD_SIZE or BHQ_NULL. Release: as bhq_push.
//
// # Safety
// `sender` is null or a handle; `messages` is null or valid for the read of `count` times `bytes`
// bytes.
int32_t bhq_push_many(bhq_sender *sender, const void *messages, size_t bytes, uint32_t count);

// Takes up to `max` messages of one producer, copies them to `messages`, next to each other, and
// frees their places together. At most once, as bhq_pop. `bytes` is the size of each.
//
// Returns the number of messages, 0 for none now, BHQ_FAULT, BHQ_TAKEN, BHQ_BAD_SIZE or BHQ_NULL.
//
// # Safety
// `receiver` is null or a handle; `messages` is null or valid for the write of `max` times `bytes`
// bytes.
int32_t bhq_pop_many(bhq_receiver *receiver, void *messages, size_t bytes, uint32_t max);

// Passes up to `max` messages of one producer to `each`, one after the other, with `context`; then
// frees their places together. A message's address is aligned to 8 bytes, and valid until `each`
// returns. At least once: all of them are the successor's if this process is killed before. A
// message for which `each` returns another value than 0 stays, and so do those after it. `each`
// calls no function of this receiver, and throws nothing.
//
// Returns the number of messages that were freed, BHQ_FAULT, BHQ_TAKEN or BHQ_NULL.
//
// # Safety
// `receiver` is null or a handle; `each` is null or can be called with `context`.
int32_t bhq_drain(bhq_receiver *receiver,
                  uint32_t max,
                  int32_t (*each)(const void *message, void *context),
                  void *context);

// Writes to `fast` what bhq_fast_push of bulkhead_queue_inline.h works with, valid until the
// sender is closed. `layout` is BHQ_LAYOUT, and `fast_bytes` the size of what is pointed to. Calls
// and pushes without a call may alternate, on one thread at a time. bhq_open_fast_sender calls it.
//
// Returns BHQ_OK, BHQ_BAD_LAYOUT or BHQ_NULL.
//
// # Safety
// `sender` is null or a handle; `fast` is null or valid for the write of a pointer.
int32_t bhq_fast_sender_of(bhq_sender *sender,
                           uint32_t layout,
                           size_t fast_bytes,
                           bhq_fast_sender **fast);

// Wakes the receiver if it waits, after a push without a call. bhq_fast_push calls it.
//
// # Safety
// `sender` is null or a handle.
int32_t bhq_wake(bhq_sender *sender);

// Writes to `fast` what bhq_fast_pop of bulkhead_queue_inline.h works with, as bhq_fast_sender_of
// does. bhq_open_fast_receiver calls it.
//
// Returns BHQ_OK, BHQ_BAD_LAYOUT or BHQ_NULL.
//
// # Safety
// `receiver` is null or a handle; `fast` is null or valid for the write of a pointer.
int32_t bhq_fast_receiver_of(bhq_receiver *receiver,
                             uint32_t layout,
                             size_t fast_bytes,
                             bhq_fast_receiver **fast);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* BULKHEAD_QUEUE_H */

/* Pushes and pops without a call for each message. */
#include "bulkhead_queue_inline.h"
