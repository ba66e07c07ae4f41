package bulkhead;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static java.lang.foreign.ValueLayout.JAVA_SHORT;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.nio.file.Path;

/**
 * A thread's line to its run, from the open barrier on: bulkhead's C library through the Foreign Function and Memory API (Java 22).
 *
 * <p>{@link #attach} attaches the calling thread and waits until the run begins. Prepare everything before, and run what is to be fast
 * often enough that it is compiled: from then on the thread is pinned, the process's memory is limited, and the launcher expects a poll
 * within {@code --liveness}. Every other method is for that thread alone. Reports, ticks and orders are views of memory that is
 * there before the run begins: no call allocates.
 *
 * <p>The library is what the system property {@code bulkhead.library} names, else {@code libbulkhead.so} where the loader finds it. Prices are in
 * cents, quantities in 1e-8 units, times in nanoseconds since the start of the run. Codes from -1 to -15 are answers and returned; those
 * from -16 down are mistakes and thrown ({@link BulkheadException}).
 */
public final class Line implements AutoCloseable {
    /** A poll takes at most so many reports. */
    public static final int BATCH = 16;

    private static final Linker LINKER = Linker.nativeLinker();
    private static final SymbolLookup LIBRARY = library();
    private static final MethodHandle ATTACH = handle("bh_attach", JAVA_INT);
    private static final MethodHandle CONTEXT = handle("bh_get_context", ADDRESS);
    private static final MethodHandle POSITION = handle("bh_position", JAVA_SHORT, ADDRESS, ADDRESS);
    private static final MethodHandle POLL = handle("bh_poll", ADDRESS, JAVA_INT, JAVA_LONG);
    private static final MethodHandle SEND = handle("bh_send", ADDRESS, ADDRESS);
    private static final MethodHandle SEND_DUE = handle("bh_send_due", ADDRESS, JAVA_LONG, ADDRESS);
    private static final MethodHandle BOARD_READ = handle("bh_board_read", ADDRESS);
    private static final MethodHandle NOW = handle("bh_now", ADDRESS);
    private static final MethodHandle HEARTBEAT = handle("bh_heartbeat");
    private static final MethodHandle FINISH = handle("bh_finish");
    private static final MethodHandle ERROR_TEXT =
            LINKER.downcallHandle(found("bh_error_text"), FunctionDescriptor.of(ADDRESS, JAVA_INT));

    private final Arena arena = Arena.ofConfined();
    private final MemorySegment reportMemory = arena.allocate(Layout.Report.BYTES * BATCH, 8);
    private final MemorySegment tickMemory = arena.allocate(Layout.Tick.BYTES, 8);
    private final MemorySegment orderMemory = arena.allocate(Layout.Order.BYTES, 8);
    private final MemorySegment contextMemory = arena.allocate(Layout.Context.BYTES, 8);
    private final MemorySegment number = arena.allocate(JAVA_LONG);
    private final MemorySegment price = arena.allocate(JAVA_LONG);
    private final Layout.Report report = new Layout.Report(reportMemory);
    private final Layout.Tick tick = new Layout.Tick(tickMemory);
    private final Layout.Order order = new Layout.Order(orderMemory);
    private final Layout.Context context = new Layout.Context(contextMemory);
    private boolean over;
    private boolean attached;

    private Line() {
        int code = call(ATTACH, Layout.VERSION);
        over = code == Layout.OVER;
        attached = !over;
        checked(code, "bh_attach");
        if (attached) checked(call(CONTEXT, contextMemory), "bh_get_context");
    }

    /** Attaches the calling thread to the run that the environment names, and waits until it begins. */
    public static Line attach() {
        return new Line();
    }

    /** What the strategy knows of its run; zeros where the run was stopped before it began. */
    public Layout.Context context() {
        return context;
    }

    /** A position: bought minus sold in 1e-8 units, and its average price in cents. */
    public record Position(long net, long averagePrice) {}

    /** The position in an instrument that the strategy inherits from its predecessors; zeros in epoch 0. */
    public Position position(int instrument) {
        checked(call(POSITION, (short) instrument, number, price), "bh_position");
        return new Position(number.get(JAVA_LONG, 0), price.get(JAVA_LONG, 0));
    }

    /**
     * One duty cycle: takes the next reports, and says that the strategy lives. Without any it idles as the run's plan says, for at most so
     * long, often far less; 0: not at all.
     *
     * @return how many reports there are; {@link Layout#OVER}: none will come any more
     */
    public int poll(long waitNanos) {
        if (over) return Layout.OVER;
        int taken;
        try {
            taken = (int) POLL.invokeExact(reportMemory, BATCH, waitNanos);
        } catch (Throwable thrown) {
            throw rethrown(thrown);
        }
        over = taken == Layout.OVER;
        return checked(taken, "bh_poll");
    }

    /** The report at that place of what the last poll took, from 0. There is one view: it moves. */
    public Layout.Report report(int place) {
        return report.at(place);
    }

    /** An order of zeros, to be filled in and sent. There is one: it is the same each time. */
    public Layout.Order order() {
        orderMemory.fill((byte) 0);
        return order;
    }

    /**
     * Sends {@link #order}: numbers, stamps and pushes it. Its reports follow, exactly one of which is the last.
     *
     * @return its sequence: 0 for the first of an incarnation, then one more each; below 0 nothing was sent: BUSY, TOO_MANY_OPEN, ENDING, SPENT
     */
    public long send() {
        try {
            return sent((int) SEND.invokeExact(orderMemory, number));
        } catch (Throwable thrown) {
            throw rethrown(thrown);
        }
    }

    /** The same of an order that was due at a time, in nanoseconds since the start of the run. */
    public long sendDue(long dueNanos) {
        try {
            return sent((int) SEND_DUE.invokeExact(orderMemory, dueNanos, number));
        } catch (Throwable thrown) {
            throw rethrown(thrown);
        }
    }

    private long sent(int code) {
        return checked(code, "bh_send") == Layout.OK ? number.get(JAVA_LONG, 0) : code;
    }

    /** The next touch that is newer than what was read of its instrument; null: none now. There is one view: it is written again. */
    public Layout.Tick read() {
        try {
            return checked((int) BOARD_READ.invokeExact(tickMemory), "bh_board_read") > 0 ? tick : null;
        } catch (Throwable thrown) {
            throw rethrown(thrown);
        }
    }

    /** Nanoseconds since the start of the run, by the run's clock. */
    public long now() {
        try {
            checked((int) NOW.invokeExact(number), "bh_now");
        } catch (Throwable thrown) {
            throw rethrown(thrown);
        }
        return number.get(JAVA_LONG, 0);
    }

    /** Says that the strategy lives, for one that computes for longer than {@code --liveness} between two polls. */
    public void heartbeat() {
        checked(call(HEARTBEAT), "bh_heartbeat");
    }

    /** Sends no more, waits for what is open and says that the strategy is done. The process then has some seconds to end, with exit code 0. */
    public void finish() {
        if (!attached) return;
        attached = false;
        over = true;
        checked(call(FINISH), "bh_finish");
    }

    /** Frees the memory. It does not finish: a strategy that leaves by an exception counts as dead. */
    @Override
    public void close() {
        arena.close();
    }

    private static int checked(int code, String what) {
        if (code <= Layout.NOT_ATTACHED) throw new BulkheadException(code, what + ": " + text(code));
        return code;
    }

    private static String text(int code) {
        try {
            MemorySegment text = (MemorySegment) ERROR_TEXT.invokeExact(code);
            return text.reinterpret(Long.MAX_VALUE).getString(0);
        } catch (Throwable thrown) {
            throw rethrown(thrown);
        }
    }

    /** For calls that are not made in the loop. */
    private static int call(MethodHandle function, Object... arguments) {
        try {
            return (int) function.invokeWithArguments(arguments);
        } catch (Throwable thrown) {
            throw rethrown(thrown);
        }
    }

    private static RuntimeException rethrown(Throwable thrown) {
        if (thrown instanceof RuntimeException exception) return exception;
        if (thrown instanceof Error error) throw error;
        return new IllegalStateException(thrown);
    }

    private static SymbolLookup library() {
        String named = System.getProperty("bulkhead.library");
        if (named != null) return SymbolLookup.libraryLookup(Path.of(named), Arena.global());
        return SymbolLookup.libraryLookup("libbulkhead.so", Arena.global());
    }

    private static MemorySegment found(String name) {
        return LIBRARY.find(name).orElseThrow(() -> new UnsatisfiedLinkError("the library has no " + name + ": it is older than this"));
    }

    private static MethodHandle handle(String name, MemoryLayout... arguments) {
        return LINKER.downcallHandle(found(name), FunctionDescriptor.of(JAVA_INT, arguments));
    }
}
