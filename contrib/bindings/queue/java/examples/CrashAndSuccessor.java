import static java.lang.foreign.ValueLayout.JAVA_LONG;

import bulkhead.queue.Producer;
import bulkhead.queue.Queue;
import bulkhead.queue.QueueException;
import bulkhead.queue.Receiver;
import bulkhead.queue.Sender;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;

/**
 * A sender that is killed at a random moment, and its successor: {@code java … CrashAndSuccessor 3}.
 *
 * <p>The receiver checks that no message is lost, doubled or torn. A sender stores the number of its pushes that have returned in a file:
 * all of these must arrive. A second word plants an error that the receiver must find: lost, doubled or torn.
 */
public final class CrashAndSuccessor {
    private static final int WORDS = 20;
    private static final long MILLISECOND = 1_000_000;

    private CrashAndSuccessor() {}

    private static void fill(long[] message, long number) {
        for (int word = 0; word < WORDS; word++) message[word] = number * (2 * word + 1);
    }

    private static MemorySegment mapped(Path file) throws IOException {
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
            return channel.map(FileChannel.MapMode.READ_WRITE, 0, 8, Arena.global());
        }
    }

    private static void send(String name, long number, Path file, String planted) throws IOException {
        MemorySegment returned = mapped(file);
        ProcessHandle parent = ProcessHandle.current().parent().orElseThrow();
        Queue queue = Queue.open(name, 8 * WORDS);
        boolean isSuccessor = queue.producer(0).state() == Producer.State.DEAD;
        Sender sender = isSuccessor ? queue.resumeSender(0) : queue.sender();
        if (isSuccessor && planted.equals("lost")) number++;
        if (isSuccessor && planted.equals("doubled")) number--;
        long[] message = new long[WORDS];
        MemorySegment bytes = MemorySegment.ofArray(message);
        for (; number % 1000 != 0 || parent.isAlive(); number++) {
            fill(message, number);
            if (number % 100 == 99 && planted.equals("torn")) message[WORDS - 1]++;
            while (!sender.push(bytes)) {
                if (!parent.isAlive()) return;
                Thread.onSpinWait();
            }
            returned.set(JAVA_LONG, 0, number + 1);
        }
    }

    private static void check(MemorySegment found, long expected) {
        long[] whole = new long[WORDS];
        fill(whole, expected);
        if (found.mismatch(MemorySegment.ofArray(whole)) == -1) return;
        long number = found.get(JAVA_LONG, 0);
        fill(whole, number);
        boolean isTorn = found.mismatch(MemorySegment.ofArray(whole)) != -1;
        String what = isTorn ? "torn" : number < expected ? "doubled" : "lost";
        throw new IllegalStateException(what + ": message " + number + " instead of " + expected);
    }

    /** Takes at most {@code max} messages. Returns the number of the next one. */
    private static long receive(Receiver receiver, MemorySegment own, long next, long max) {
        for (long count = 0; count < max; count++, next++) {
            if (next % 2 == 0) {
                if (!receiver.pop(own, MILLISECOND)) break;
                check(own, next);
            } else {
                MemorySegment message = receiver.take(MILLISECOND);
                if (message == null) break;
                check(message, next);
                receiver.release();
            }
        }
        return next;
    }

    private static Process start(String... words) throws IOException {
        String java = Path.of(System.getProperty("java.home"), "bin", "java").toString();
        ProcessBuilder builder = new ProcessBuilder(java, "--enable-native-access=ALL-UNNAMED", "-cp",
                System.getProperty("java.class.path"));
        String library = System.getProperty("bulkhead.queue.library");
        if (library != null) builder.command().add("-Dbulkhead.queue.library=" + library);
        builder.command().add("CrashAndSuccessor");
        builder.command().addAll(List.of(words));
        return builder.inheritIO().start();
    }

    private static void run(int rounds, String planted) throws IOException, InterruptedException {
        String name = "java-crash-" + ProcessHandle.current().pid();
        Path file = Files.write(Files.createTempFile("returned", ""), new byte[8]);
        Random random = new Random();
        long next = 0;
        try (Arena arena = Arena.ofConfined();
                Queue queue = Queue.create(name, 8 * WORDS, 256, 1);
                Receiver receiver = queue.receiver()) {
            MemorySegment returned = mapped(file);
            MemorySegment own = arena.allocate(JAVA_LONG, WORDS);
            for (int round = 0; round < rounds; round++) {
                Process child = start(name, Long.toString(next), file.toString(), planted);
                try {
                    long deadline = System.nanoTime() + TimeUnit.MINUTES.toNanos(1);
                    for (long enough = next + 200; next < enough; ) {
                        next = receive(receiver, own, next, 100);
                        if (System.nanoTime() > deadline) throw new IllegalStateException("no messages for a minute");
                    }
                    long end = System.nanoTime() + random.nextLong(20 * MILLISECOND);
                    while (System.nanoTime() < end) next = receive(receiver, own, next, 100);
                } finally {
                    child.destroyForcibly().waitFor();
                }
                if (queue.producer(0).state() != Producer.State.DEAD) {
                    throw new IllegalStateException("the killed sender is not seen to be dead");
                }
                next = receive(receiver, own, next, Long.MAX_VALUE);
                long pushed = returned.get(JAVA_LONG, 0);
                // One more: its push was complete, and had not returned.
                if (next != pushed && next != pushed + 1) {
                    throw new IllegalStateException("lost: " + pushed + " pushes returned, " + next + " messages arrived");
                }
            }
        } finally {
            Files.delete(file);
        }
        System.out.println(rounds + " senders killed, " + next + " messages: none lost, doubled or torn");
    }

    public static void main(String[] words) throws IOException, InterruptedException {
        try {
            if (words.length == 4) {
                send(words[0], Long.parseLong(words[1]), Path.of(words[2]), words[3]);
            } else {
                run(words.length > 0 ? Integer.parseInt(words[0]) : 3, words.length > 1 ? words[1] : "nothing");
            }
        } catch (IllegalStateException | QueueException wrong) {
            System.err.println(wrong.getMessage());
            System.exit(1);
        }
    }
}
