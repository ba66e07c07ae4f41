package bulkhead.benchmark;

import io.aeron.benchmarks.Configuration;

/** What the two processes of a run agree on: the names of the queues, and their sizes. */
final class Names {
    /** Messages from the load test rig to the echo. */
    static final String REQUESTS = System.getProperty("bulkhead.benchmark.name", "load-test-rig") + "-requests";
    /** Messages back. */
    static final String ANSWERS = System.getProperty("bulkhead.benchmark.name", "load-test-rig") + "-answers";
    /** Messages that a queue has room for. */
    static final int CAPACITY = 8192;
    /** Messages that are received in one call, as the fragments of Aeron's transceiver. */
    static final int LIMIT = 10;

    /** Returns the length of a message in bytes, the rig's own setting. */
    static int messageLength() {
        return Integer.getInteger(Configuration.MESSAGE_LENGTH_PROP_NAME, Configuration.MIN_MESSAGE_LENGTH);
    }

    private Names() {}
}
