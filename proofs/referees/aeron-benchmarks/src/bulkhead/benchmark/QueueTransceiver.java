package bulkhead.benchmark;

import static java.lang.foreign.ValueLayout.JAVA_LONG_UNALIGNED;

import bulkhead.queue.Queue;
import bulkhead.queue.Receiver;
import bulkhead.queue.Sender;
import io.aeron.benchmarks.Configuration;
import io.aeron.benchmarks.MessageTransceiver;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.HdrHistogram.ValueRecorder;
import org.agrona.concurrent.NanoClock;

/** Sends the rig's messages through one queue to {@link EchoNode} and receives them through another one. */
public final class QueueTransceiver extends MessageTransceiver {
    private final Arena arena = Arena.ofConfined();
    private Queue requests, answers;
    private Sender sender;
    private Receiver receiver;
    private MemorySegment sent, received;
    private long checksumOffset;

    public QueueTransceiver(NanoClock clock, ValueRecorder recorder) {
        super(clock, recorder);
    }

    @Override
    public void init(Configuration configuration) {
        int length = configuration.messageLength();
        requests = Queue.open(Names.REQUESTS, length);
        answers = Queue.open(Names.ANSWERS, length);
        sender = requests.sender();
        receiver = answers.receiver();
        sent = arena.allocate(length, 8);
        received = arena.allocate(length, 8);
        checksumOffset = length - Long.BYTES;
    }

    @Override
    public void destroy() {
        sender.close();
        receiver.close();
        requests.close();
        answers.close();
        arena.close();
    }

    @Override
    public int send(int numberOfMessages, int messageLength, long timestamp, long checksum) {
        sent.set(JAVA_LONG_UNALIGNED, 0, timestamp);
        sent.set(JAVA_LONG_UNALIGNED, checksumOffset, checksum);
        int count = 0;
        while (count < numberOfMessages && sender.push(sent)) count++;
        return count;
    }

    @Override
    public void receive() {
        for (int count = 0; count < Names.LIMIT && receiver.pop(received); count++) {
            onMessageReceived(received.get(JAVA_LONG_UNALIGNED, 0), received.get(JAVA_LONG_UNALIGNED, checksumOffset));
        }
    }
}
