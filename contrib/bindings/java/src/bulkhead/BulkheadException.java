package bulkhead;

/** A mistake, or what cannot be mended: a code from -16 down, with its text. */
public final class BulkheadException extends RuntimeException {
    private static final long serialVersionUID = 1;
    private final int code;

    BulkheadException(int code, String message) {
        super(message);
        this.code = code;
    }

    /** The code: see {@link Layout}. */
    public int code() {
        return code;
    }
}
