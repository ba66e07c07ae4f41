import io.aeron.Aeron;
import io.aeron.ExclusivePublication;
import io.aeron.Publication;
import io.aeron.Subscription;
import io.aeron.driver.MediaDriver;
import io.aeron.driver.ThreadingMode;
import io.aeron.logbuffer.FragmentHandler;
import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.locks.LockSupport;
import org.agrona.IoUtil;
import org.agrona.concurrent.IdleStrategy;
import org.agrona.concurrent.UnsafeBuffer;

/**
 * Aeron IPC through a media driver that is a process of its own, which no trial kills. Each sender has an exclusive
 * publication. The publication window has room for 64 messages, in the smallest term buffers; timeouts are Aeron's
 * defaults, since a successor that attaches before the liveness timeout of a killed subscriber (10 s) continues at its
 * position. README.md has the details.
 */
final class AeronIpc implements Role.End {
    /** A frame has a header of 32 bytes and the 56 bytes of a message, at a multiple of 32 bytes. */
    private static final int WINDOW = Role.CAPACITY * 96;
    private static final int STREAM = 1, WARM_UP_STREAM = 2;
    /** Nanoseconds for which a sender offers a message: a new publication has no room until the driver has linked it. */
    private static final long OFFER_TIME = 100_000_000;

    /** Lets the client's conductor sleep for a millisecond, and counts its duty cycles. */
    private static final class Cycles implements IdleStrategy {
        volatile long count;

        @Override
        public void idle(int workCount) {
            count++;
            if (workCount == 0) LockSupport.parkNanos(1_000_000);
        }

        @Override
        public void idle() {
            idle(0);
        }

        @Override
        public void reset() {}
    }

    private final Cycles cycles = new Cycles();
    private final Aeron aeron;
    private ExclusivePublication publication;
    private Subscription subscription;
    private final UnsafeBuffer packed = new UnsafeBuffer(new byte[8 * Role.WORDS]);
    private long[] message;
    private final FragmentHandler handler = (buffer, offset, length, header) -> {
        java.util.Arrays.fill(message, -1);
        for (int word = 0; 8 * word + 8 <= length && word < message.length; word++) {
            message[word] = buffer.getLong(offset + 8 * word);
        }
    };

    AeronIpc(String place, boolean isSender, int stream) {
        if (!Files.exists(driver(place))) throw new IllegalStateException("no driver");
        aeron = Aeron.connect(new Aeron.Context()
            .aeronDirectoryName(directory(place))
            .idleStrategy(cycles)
            .threadFactory(work -> {
                // A process ends although its end was refused.
                var thread = new Thread(work);
                thread.setDaemon(true);
                return thread;
            }));
        if (isSender) {
            publication = aeron.addExclusivePublication("aeron:ipc?term-length=64k|pub-wnd=" + WINDOW, stream);
        } else {
            subscription = aeron.addSubscription("aeron:ipc", stream);
        }
    }

    @Override
    public boolean push(long[] message) {
        for (int word = 0; word < message.length; word++) packed.putLong(8 * word, message[word]);
        long until = 0;
        for (long result; (result = publication.offer(packed, 0, 8 * message.length)) < 0;) {
            if (result == Publication.CLOSED) throw new IllegalStateException("closed");
            long now = System.nanoTime();
            if (until == 0) until = now + OFFER_TIME;
            if (now >= until) return false;
            LockSupport.parkNanos(100_000);
        }
        return true;
    }

    @Override
    public boolean pop(long[] message) {
        this.message = message;
        if (subscription.poll(handler, 1) > 0) return true;
        // An image that the driver has announced is there once the conductor has read that.
        long seen = cycles.count;
        for (int waits = 0; cycles.count < seen + 2 && waits < 100; waits++) LockSupport.parkNanos(200_000);
        return subscription.poll(handler, 1) > 0;
    }

    @Override
    public void close() {
        aeron.close();
    }

    private static String directory(String place) {
        return place + "/aeron";
    }

    /** Returns the path of a file with the driver's process identifier. The driver ends once it is removed. */
    private static Path driver(String place) {
        return Path.of(place, "driver");
    }

    private static boolean isAlive(long process) {
        return ProcessHandle.of(process).map(ProcessHandle::isAlive).orElse(false);
    }

    /** Runs the media driver until its file is removed or the process of the trials has ended. */
    private static void drive(String place, long trials) throws Exception {
        var driver = MediaDriver.launch(new MediaDriver.Context()
            .aeronDirectoryName(directory(place))
            .threadingMode(ThreadingMode.SHARED)
            .dirDeleteOnShutdown(true));
        var file = driver(place);
        Files.writeString(Path.of(place, "driver.new"), "" + ProcessHandle.current().pid());
        Files.move(Path.of(place, "driver.new"), file);
        while (Files.exists(file) && isAlive(trials)) Thread.sleep(20);
        // Before its directory goes, after which another driver may begin.
        Files.deleteIfExists(file);
        // A hostile word may have damaged what the driver reads: it may not end in order.
        var close = new Thread(driver::close);
        close.setDaemon(true);
        close.start();
        close.join(3000);
        Runtime.getRuntime().halt(0);
    }

    /** Starts a driver, for the process that started this one, and waits until it is there. */
    private static void startDriver(String place) throws Exception {
        long trials = ProcessHandle.current().parent().orElseThrow().pid();
        new ProcessBuilder(System.getProperty("aeron.program"), "driver", place, "" + trials)
            .redirectInput(ProcessBuilder.Redirect.from(new File("/dev/null")))
            .redirectOutput(ProcessBuilder.Redirect.DISCARD)
            .redirectError(ProcessBuilder.Redirect.DISCARD)
            .start();
        while (!Files.exists(driver(place))) Thread.sleep(5);
    }

    /** Ends the driver, which removes its directory, and removes that of a driver that has failed. */
    private static void clean(String place) throws Exception {
        var file = driver(place);
        var directory = new File(directory(place));
        if (Files.exists(file)) {
            long process = Long.parseLong(Files.readString(file));
            Files.delete(file);
            for (int waits = 0; directory.exists() && isAlive(process); waits++) {
                if (waits == 1000) throw new IllegalStateException("the driver does not end");
                Thread.sleep(10);
            }
        }
        IoUtil.delete(directory, true);
    }

    public static void main(String[] words) throws Exception {
        if (words.length == 1) {
            System.out.println(System.getProperty("aeron.version"));
        } else if (words[0].equals("driver")) {
            drive(words[1], Long.parseLong(words[2]));
        } else if (words.length == 3) {
            clean(words[2]);
        } else {
            String place = words[2];
            if (words[3].equals("create") && !Files.exists(driver(place))) startDriver(place);
            if (Files.exists(driver(place))) {
                // The classes are loaded, and the calls linked, before the tracer counts instructions.
                var receiver = new AeronIpc(place, false, WARM_UP_STREAM);
                var sender = new AeronIpc(place, true, WARM_UP_STREAM);
                for (int round = 0; round < 20; round++) {
                    sender.push(Role.message(0, round));
                    receiver.pop(new long[Role.WORDS]);
                }
                sender.close();
                receiver.close();
            }
            boolean isSender = words[1].equals("sender");
            Role.run(words, (at, attach) -> new AeronIpc(at, isSender, STREAM));
        }
    }
}
