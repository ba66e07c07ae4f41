package bulkhead.queue;

/** A failed call: its code of bulkhead_queue.h, and its text. */
public final class QueueException extends RuntimeException {
    private static final long serialVersionUID = 1;
    private final int code;

    QueueException(int code, String text) {
        super(text);
        this.code = code;
    }

    /** Returns the code, which is negative: BHQ_LIVING and so on. */
    public int code() {
        return code;
    }
}
