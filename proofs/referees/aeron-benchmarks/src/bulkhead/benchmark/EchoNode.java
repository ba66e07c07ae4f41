package bulkhead.benchmark;

import bulkhead.queue.Queue;
import bulkhead.queue.Receiver;
import bulkhead.queue.Sender;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/** Creates the two queues and sends every message back, spinning, until it is killed or its input is closed. */
public final class EchoNode {
    public static void main(String[] arguments) throws Exception {
        int length = Names.messageLength();
        Queue.remove(Names.REQUESTS);
        Queue.remove(Names.ANSWERS);
        try (Arena arena = Arena.ofConfined();
                Queue requests = Queue.create(Names.REQUESTS, length, Names.CAPACITY, 1);
                Queue answers = Queue.create(Names.ANSWERS, length, Names.CAPACITY, 1);
                Receiver receiver = requests.receiver();
                Sender sender = answers.sender()) {
            System.out.println("ready");
            MemorySegment message = arena.allocate(length, 8);
            Thread input = Thread.ofPlatform().daemon().start(EchoNode::awaitEnd);
            while (input.isAlive()) {
                for (int round = 0; round < 100_000; round++) {
                    if (!receiver.pop(message)) {
                        Thread.onSpinWait();
                        continue;
                    }
                    while (!sender.push(message)) Thread.onSpinWait();
                }
            }
        }
    }

    /** Returns when the process that started this one has closed its input. */
    private static void awaitEnd() {
        try {
            while (System.in.read() >= 0) {}
        } catch (java.io.IOException closed) {
            // The end as well.
        }
    }
}
