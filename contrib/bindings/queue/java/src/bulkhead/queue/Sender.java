package bulkhead.queue;

import java.lang.foreign.MemorySegment;

/** The sending end of a queue. Closed, it frees its producer; what was pushed arrives. */
public final class Sender implements AutoCloseable {
    /** The code of a full queue. */
    private static final int FULL = -1;

    private final long messageBytes;
    private MemorySegment handle;

    Sender(MemorySegment handle, long messageBytes) {
        this.handle = handle;
        this.messageBytes = messageBytes;
    }

    /**
     * Pushes a message, of native memory or of an array on the heap, without a copy in Java. Never blocks.
     *
     * @return false if the queue is full
     */
    public boolean push(MemorySegment message) {
        int code;
        try {
            code = (int) Native.PUSH.invokeExact(handle, message, message.byteSize());
        } catch (Throwable thrown) {
            throw Native.rethrown(thrown);
        }
        if (code == FULL) return false;
        Native.checked(code);
        return true;
    }

    /**
     * Pushes the first of some messages, which lie next to each other, up to as many as fit. Never blocks.
     *
     * @return their number
     */
    public int pushMany(MemorySegment messages) {
        try {
            return Native.checked((int) Native.PUSH_MANY.invokeExact(
                    handle, messages, messageBytes, Native.count(messages, messageBytes)));
        } catch (Throwable thrown) {
            throw Native.rethrown(thrown);
        }
    }

    /** Returns the index of the producer. */
    public int index() {
        return Native.checked(Native.call(Native.SENDER_INDEX, handle));
    }

    @Override
    public void close() {
        Native.close(Native.CLOSE_SENDER, handle);
        handle = MemorySegment.NULL;
    }
}
