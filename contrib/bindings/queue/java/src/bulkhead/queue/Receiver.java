package bulkhead.queue;

import static java.lang.foreign.ValueLayout.ADDRESS;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.function.Consumer;

/** The receiving end of a queue. Closed, it leaves the other messages to the next receiver. */
public final class Receiver implements AutoCloseable {
    private final long messageBytes;
    private final Arena arena = Arena.ofAuto();
    private final MemorySegment place = arena.allocate(ADDRESS);
    private MemorySegment handle;
    private MemorySegment callback;
    private Consumer<MemorySegment> user;
    private Throwable thrown;

    Receiver(MemorySegment handle, long messageBytes) {
        this.handle = handle;
        this.messageBytes = messageBytes;
    }

    /**
     * Pops the next message into native memory or an array on the heap, without a copy in Java. Never blocks. At most once.
     *
     * @return false if there is none now
     */
    public boolean pop(MemorySegment message) {
        try {
            return Native.checked((int) Native.POP.invokeExact(handle, message, message.byteSize())) == 1;
        } catch (Throwable thrown) {
            throw Native.rethrown(thrown);
        }
    }

    /** Pops the next message into native memory, sleeping at most for {@code timeoutNanos} until there is one. */
    public boolean pop(MemorySegment message, long timeoutNanos) {
        long waitNanos = Math.max(0, timeoutNanos);
        try {
            return Native.checked((int) Native.POP_TIMEOUT.invokeExact(handle, message, message.byteSize(), waitNanos)) == 1;
        } catch (Throwable thrown) {
            throw Native.rethrown(thrown);
        }
    }

    /**
     * Pops up to as many messages of one producer as {@code messages} has room for. Never blocks. At most once.
     *
     * @return their number
     */
    public int popMany(MemorySegment messages) {
        try {
            return Native.checked((int) Native.POP_MANY.invokeExact(
                    handle, messages, messageBytes, Native.count(messages, messageBytes)));
        } catch (Throwable thrown) {
            throw Native.rethrown(thrown);
        }
    }

    /**
     * Passes up to {@code max} messages of one producer to {@code each}, as read-only views that are valid during the call, and then frees them
     * together. At least once: an exception of {@code each} is thrown, and its message and those after it stay.
     *
     * @return their number
     */
    public int drain(int max, Consumer<MemorySegment> each) {
        user = each;
        thrown = null;
        int drained = Native.call(Native.DRAIN, handle, max, callback(), MemorySegment.NULL);
        user = null;
        if (thrown != null) throw Native.rethrown(thrown);
        return Native.checked(drained);
    }

    private MemorySegment callback() {
        if (callback == null) {
            try {
                MethodType type = MethodType.methodType(int.class, MemorySegment.class, MemorySegment.class);
                callback = Native.callback(MethodHandles.lookup().bind(this, "pass", type), arena);
            } catch (ReflectiveOperationException wrong) {
                throw new IllegalStateException(wrong);
            }
        }
        return callback;
    }

    /** Called for each message of a drain. Nothing may be thrown to the library. */
    int pass(MemorySegment message, MemorySegment context) {
        try {
            user.accept(message.reinterpret(messageBytes).asReadOnly());
            return 0;
        } catch (Throwable why) {
            thrown = why;
            return 1;
        }
    }

    /**
     * Takes the next message, sleeping at most for {@code timeoutNanos}; 0: not at all. At least once: it is the successor's if this process
     * is killed before {@link #release}.
     *
     * @return a read-only view without a copy, valid until {@link #release} or {@link #putBack}; null if there is none now
     */
    public MemorySegment take(long timeoutNanos) {
        long waitNanos = Math.max(0, timeoutNanos);
        try {
            if (Native.checked((int) Native.TAKE.invokeExact(handle, place, waitNanos)) == 0) return null;
        } catch (Throwable thrown) {
            throw Native.rethrown(thrown);
        }
        return place.get(ADDRESS, 0).reinterpret(messageBytes).asReadOnly();
    }

    /** Frees the message that was taken: it has been used, and is not taken again. */
    public void release() {
        try {
            Native.checked((int) Native.RELEASE.invokeExact(handle));
        } catch (Throwable thrown) {
            throw Native.rethrown(thrown);
        }
    }

    /** Makes the message that was taken the next one of its producer again. */
    public void putBack() {
        Native.checked(Native.call(Native.PUT_BACK, handle));
    }

    /** Returns the producer of the last message. */
    public int lastProducer() {
        return Native.checked(Native.call(Native.LAST_PRODUCER, handle));
    }

    /** Returns the producer of the last BHQ_FAULT; -1: there was none. */
    public int faultyProducer() {
        return Math.max(-1, Native.call(Native.FAULTY_PRODUCER, handle));
    }

    /** Returns the descriptor for epoll, which remains the receiver's: see {@link #prepareWait}. */
    public int waitFd() {
        return Native.checked(Native.call(Native.WAIT_FD, handle));
    }

    /** Arms the descriptor. Returns true if the queue is empty: wait at most for 100 ms, then pop until there is none. */
    public boolean prepareWait() {
        return Native.checked(Native.call(Native.PREPARE_WAIT, handle)) == 1;
    }

    /** Stops polling a dead producer. Returns false while it has messages to pop. */
    public boolean retire(int index) {
        return Native.checked(Native.call(Native.RETIRE, handle, index)) == 1;
    }

    /** Resets the ring of a dead producer for a new sender. Returns false while it has messages to pop. */
    public boolean renew(int index) {
        return Native.checked(Native.call(Native.RENEW, handle, index)) == 1;
    }

    @Override
    public void close() {
        Native.close(Native.CLOSE_RECEIVER, handle);
        handle = MemorySegment.NULL;
    }
}
