package bulkhead.queue;

/** The state of a producer, and the id of its process in its own PID namespace; 0: none. */
public record Producer(State state, long pid) {
    /** States of a producer, in the order of their codes. */
    public enum State {
        /** A sender may attach. */
        FREE,
        /** A sender of a running process is attached. */
        ALIVE,
        /** Its process crashed, or was killed. */
        DEAD,
        /** The receiver does not poll it any more. */
        RETIRED
    }
}
