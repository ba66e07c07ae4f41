package bulkhead.queue;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * A handle of a queue between processes that survives a crash of either side, from which its ends are attached. Ends outlive it. The
 * creator's handle removes the name when it is closed.
 *
 * <p>A message is a fixed number of bytes, 1 to 65,536. A handle is used by one thread at a time. Failures are {@link QueueException}. The
 * library is the one that the system property {@code bulkhead.queue.library} names, else {@code libbulkhead_queue.so.1}.
 */
public final class Queue implements AutoCloseable {
    private MemorySegment handle;

    private Queue(MemorySegment handle) {
        this.handle = handle;
    }

    /**
     * Creates a queue under a name: SPSC with one producer, MPSC with up to 1,024.
     *
     * @param capacity the number of messages of each producer, at least
     */
    public static Queue create(String name, long messageBytes, int capacity, int producers) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment text = arena.allocateFrom(name);
            return new Queue(Native.handle(Native.CREATE, text, producers, capacity, messageBytes));
        }
    }

    /** Creates a queue without a name: see {@link #fds}. */
    public static Queue createSealed(long messageBytes, int capacity, int producers) {
        return new Queue(Native.handle(Native.CREATE_SEALED, producers, capacity, messageBytes));
    }

    /** Opens a queue by its name. {@code messageBytes}: the size that is expected; 0: any. */
    public static Queue open(String name, long messageBytes) {
        try (Arena arena = Arena.ofConfined()) {
            return new Queue(Native.handle(Native.OPEN, arena.allocateFrom(name), messageBytes));
        }
    }

    /** Opens a sealed queue. The descriptors remain the caller's. */
    public static Queue open(int memoryFd, int pipeFd, long messageBytes) {
        return new Queue(Native.handle(Native.OPEN_FDS, memoryFd, pipeFd, messageBytes));
    }

    /** Removes the files of a queue whose creator was killed. Returns their number. */
    public static int remove(String name) {
        try (Arena arena = Arena.ofConfined()) {
            return Native.checked(Native.call(Native.REMOVE, arena.allocateFrom(name)));
        }
    }

    /** Returns the descriptors of a sealed queue, memory and pipe. They remain the queue's. */
    public int[] fds() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment fds = arena.allocate(JAVA_INT, 2);
            Native.checked(Native.call(Native.FDS, handle, fds, fds.asSlice(4)));
            return fds.toArray(JAVA_INT);
        }
    }

    /** Returns the size of the messages in bytes. */
    public long messageBytes() {
        return Native.messageBytes(handle);
    }

    /** Returns the maximum number of producers. */
    public int producers() {
        return Native.call(Native.PRODUCERS, handle);
    }

    /** Returns the state of a producer. The kernel has the answer, not a timeout. */
    public Producer producer(int index) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment pid = arena.allocate(JAVA_LONG);
            int state = Native.checked(Native.call(Native.PRODUCER_STATE, handle, index, pid));
            return new Producer(Producer.State.values()[state], pid.get(JAVA_LONG, 0));
        }
    }

    /** Returns true if a live process has attached the receiver. */
    public boolean hasReceiver() {
        return Native.checked(Native.call(Native.HAS_RECEIVER, handle)) == 1;
    }

    /** Attaches a sender as the first free producer. */
    public Sender sender() {
        return new Sender(Native.handle(Native.ATTACH_SENDER, handle), messageBytes());
    }

    /** Attaches a sender in place of a crashed producer, after its last message. */
    public Sender resumeSender(int index) {
        return new Sender(Native.handle(Native.RESUME_SENDER, handle, index), messageBytes());
    }

    /** Attaches the receiver. */
    public Receiver receiver() {
        return new Receiver(Native.handle(Native.ATTACH_RECEIVER, handle), messageBytes());
    }

    /** Attaches the receiver in place of a crashed one. */
    public Receiver resumeReceiver() {
        return new Receiver(Native.handle(Native.RESUME_RECEIVER, handle), messageBytes());
    }

    @Override
    public void close() {
        Native.close(Native.CLOSE_QUEUE, handle);
        handle = MemorySegment.NULL;
    }
}
