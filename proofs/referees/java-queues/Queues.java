import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/**
 * One cell of the seed document 003: a producer and a consumer with a queue of 1,000 places between
 * them. Prints a line a run with its nanoseconds, from the first event made to the last one taken.
 *
 * <p>{@code java Queues.java array|linked fast|slow fast|slow busy|poll EVENTS RUNS WARM_UP}. A slow
 * end sleeps for 1 ms an event. {@code busy} looks again at once, {@code poll} waits in the queue,
 * for 1 ms at most.
 */
public final class Queues {
    private static final int CAPACITY = 1_000;

    private Queues() {}

    public static void main(String[] words) throws InterruptedException {
        boolean isBusy = words[3].equals("busy");
        int events = Integer.parseInt(words[4]);
        int runs = Integer.parseInt(words[5]);
        int warmUp = Integer.parseInt(words[6]);
        for (int run = -warmUp; run < runs; run++) {
            long took = run(words[0], words[1].equals("slow"), words[2].equals("slow"), isBusy, events);
            if (run >= 0) {
                System.out.println(took);
            }
        }
    }

    private static long run(String kind, boolean slowProducer, boolean slowConsumer, boolean isBusy, int events)
            throws InterruptedException {
        BlockingQueue<Integer> queue =
                kind.equals("array") ? new ArrayBlockingQueue<>(CAPACITY) : new LinkedBlockingQueue<>(CAPACITY);
        long[] start = new long[1];
        Thread producer = new Thread(() -> {
            start[0] = System.nanoTime();
            for (int event = 0; event < events; event++) {
                pause(slowProducer);
                push(queue, event, isBusy);
            }
        });
        long[] end = new long[1];
        Thread consumer = new Thread(() -> {
            for (int event = 0; event < events; event++) {
                int got = pop(queue, isBusy);
                if (got != event) {
                    throw new IllegalStateException("event " + got + " instead of " + event);
                }
                pause(slowConsumer);
            }
            end[0] = System.nanoTime();
        });
        consumer.start();
        producer.start();
        producer.join();
        consumer.join();
        return end[0] - start[0];
    }

    private static void push(BlockingQueue<Integer> queue, Integer event, boolean isBusy) {
        try {
            if (isBusy) {
                while (!queue.offer(event)) {
                    Thread.onSpinWait();
                }
            } else {
                queue.put(event);
            }
        } catch (InterruptedException interrupted) {
            throw new IllegalStateException(interrupted);
        }
    }

    private static Integer pop(BlockingQueue<Integer> queue, boolean isBusy) {
        try {
            while (true) {
                Integer event = isBusy ? queue.poll() : queue.poll(1, TimeUnit.MILLISECONDS);
                if (event != null) {
                    return event;
                }
                if (isBusy) {
                    Thread.onSpinWait();
                }
            }
        } catch (InterruptedException interrupted) {
            throw new IllegalStateException(interrupted);
        }
    }

    private static void pause(boolean isSlow) {
        if (isSlow) {
            try {
                Thread.sleep(1);
            } catch (InterruptedException interrupted) {
                throw new IllegalStateException(interrupted);
            }
        }
    }
}
