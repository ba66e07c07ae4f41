package bulkhead.queue;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.nio.file.Path;

/** The functions of bulkhead_queue.h, through the Foreign Function and Memory API (Java 22). */
final class Native {
    /** The version of bulkhead_queue.h that this package was written for. */
    static final int VERSION = 0x0001_0002;

    private static final Linker LINKER = Linker.nativeLinker();
    private static final SymbolLookup LIBRARY = library();

    static final MethodHandle CREATE = code("bhq_create", ADDRESS, JAVA_INT, JAVA_INT, JAVA_LONG, ADDRESS);
    static final MethodHandle CREATE_SEALED = code("bhq_create_sealed", JAVA_INT, JAVA_INT, JAVA_LONG, ADDRESS);
    static final MethodHandle OPEN = code("bhq_open", ADDRESS, JAVA_LONG, ADDRESS);
    static final MethodHandle OPEN_FDS = code("bhq_open_fds", JAVA_INT, JAVA_INT, JAVA_LONG, ADDRESS);
    static final MethodHandle FDS = code("bhq_fds", ADDRESS, ADDRESS, ADDRESS);
    static final MethodHandle PRODUCERS = code("bhq_producers", ADDRESS);
    static final MethodHandle PRODUCER_STATE = code("bhq_producer_state", ADDRESS, JAVA_INT, ADDRESS);
    static final MethodHandle HAS_RECEIVER = code("bhq_has_receiver", ADDRESS);
    static final MethodHandle ATTACH_SENDER = code("bhq_attach_sender", ADDRESS, ADDRESS);
    static final MethodHandle RESUME_SENDER = code("bhq_resume_sender", ADDRESS, JAVA_INT, ADDRESS);
    static final MethodHandle ATTACH_RECEIVER = code("bhq_attach_receiver", ADDRESS, ADDRESS);
    static final MethodHandle RESUME_RECEIVER = code("bhq_resume_receiver", ADDRESS, ADDRESS);
    static final MethodHandle REMOVE = code("bhq_remove", ADDRESS);
    static final MethodHandle SENDER_INDEX = code("bhq_sender_index", ADDRESS);
    static final MethodHandle POP_TIMEOUT = code("bhq_pop_timeout", ADDRESS, ADDRESS, JAVA_LONG, JAVA_LONG);
    static final MethodHandle DRAIN = code("bhq_drain", ADDRESS, JAVA_INT, ADDRESS, ADDRESS);
    static final MethodHandle TAKE = code("bhq_take", ADDRESS, ADDRESS, JAVA_LONG);
    static final MethodHandle RELEASE = code("bhq_release", ADDRESS);
    static final MethodHandle PUT_BACK = code("bhq_put_back", ADDRESS);
    static final MethodHandle LAST_PRODUCER = code("bhq_last_producer", ADDRESS);
    static final MethodHandle FAULTY_PRODUCER = code("bhq_faulty_producer", ADDRESS);
    static final MethodHandle WAIT_FD = code("bhq_wait_fd", ADDRESS);
    static final MethodHandle PREPARE_WAIT = code("bhq_prepare_wait", ADDRESS);
    static final MethodHandle RETIRE = code("bhq_retire", ADDRESS, JAVA_INT);
    static final MethodHandle RENEW = code("bhq_renew", ADDRESS, JAVA_INT);
    static final MethodHandle CLOSE_QUEUE = close("bhq_close_queue");
    static final MethodHandle CLOSE_SENDER = close("bhq_close_sender");
    static final MethodHandle CLOSE_RECEIVER = close("bhq_close_receiver");

    /** These never block, so they may use memory on Java's heap without a copy. */
    static final MethodHandle PUSH = critical("bhq_push");
    static final MethodHandle POP = critical("bhq_pop");
    static final MethodHandle PUSH_MANY = criticalMany("bhq_push_many");
    static final MethodHandle POP_MANY = criticalMany("bhq_pop_many");

    private static final MethodHandle MESSAGE_BYTES =
            LINKER.downcallHandle(found("bhq_message_bytes"), FunctionDescriptor.of(JAVA_LONG, ADDRESS));
    private static final MethodHandle ERROR_TEXT =
            LINKER.downcallHandle(found("bhq_error_text"), FunctionDescriptor.of(ADDRESS, JAVA_INT));

    static {
        int version = call(code("bhq_version"));
        if (version >>> 16 != VERSION >>> 16 || version < VERSION) {
            throw new IllegalStateException("the library has version " + Integer.toHexString(version)
                    + " of the interface, and this package needs " + Integer.toHexString(VERSION));
        }
    }

    private Native() {}

    /** A call whose arguments differ: not for the fast path. */
    static int call(MethodHandle function, Object... arguments) {
        try {
            return (int) function.invokeWithArguments(arguments);
        } catch (Throwable thrown) {
            throw rethrown(thrown);
        }
    }

    /** Calls a function that writes a handle to its last argument. */
    static MemorySegment handle(MethodHandle function, Object... arguments) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment place = arena.allocate(ADDRESS);
            Object[] all = java.util.Arrays.copyOf(arguments, arguments.length + 1);
            all[arguments.length] = place;
            checked(call(function, all));
            return place.get(ADDRESS, 0);
        }
    }

    static void close(MethodHandle function, MemorySegment handle) {
        try {
            function.invokeExact(handle);
        } catch (Throwable thrown) {
            throw rethrown(thrown);
        }
    }

    static long messageBytes(MemorySegment queue) {
        try {
            return (long) MESSAGE_BYTES.invokeExact(queue);
        } catch (Throwable thrown) {
            throw rethrown(thrown);
        }
    }

    /** Returns the number of whole messages of a segment. */
    static int count(MemorySegment messages, long messageBytes) {
        if (messages.byteSize() % messageBytes != 0) throw new IllegalArgumentException("not of whole messages");
        return (int) Math.min(messages.byteSize() / messageBytes, Integer.MAX_VALUE);
    }

    static int checked(int code) {
        if (code < 0) throw new QueueException(code, text(code));
        return code;
    }

    static String text(int code) {
        try {
            MemorySegment text = (MemorySegment) ERROR_TEXT.invokeExact(code);
            return text.reinterpret(Long.MAX_VALUE).getString(0);
        } catch (Throwable thrown) {
            throw rethrown(thrown);
        }
    }

    static RuntimeException rethrown(Throwable thrown) {
        if (thrown instanceof RuntimeException known) return known;
        if (thrown instanceof Error error) throw error;
        return new IllegalStateException(thrown);
    }

    private static SymbolLookup library() {
        String path = System.getProperty("bulkhead.queue.library");
        return path == null
                ? SymbolLookup.libraryLookup("libbulkhead_queue.so.1", Arena.global())
                : SymbolLookup.libraryLookup(Path.of(path), Arena.global());
    }

    private static MemorySegment found(String name) {
        return LIBRARY.find(name).orElseThrow(() -> new IllegalStateException("the library has no " + name));
    }

    private static MethodHandle code(String name, MemoryLayout... arguments) {
        return LINKER.downcallHandle(found(name), FunctionDescriptor.of(JAVA_INT, arguments));
    }

    private static MethodHandle critical(String name) {
        FunctionDescriptor function = FunctionDescriptor.of(JAVA_INT, ADDRESS, ADDRESS, JAVA_LONG);
        return LINKER.downcallHandle(found(name), function, Linker.Option.critical(true));
    }

    private static MethodHandle criticalMany(String name) {
        FunctionDescriptor function = FunctionDescriptor.of(JAVA_INT, ADDRESS, ADDRESS, JAVA_LONG, JAVA_INT);
        return LINKER.downcallHandle(found(name), function, Linker.Option.critical(true));
    }

    /** Returns a pointer to a function of bhq_drain, which calls {@code each}. */
    static MemorySegment callback(MethodHandle each, Arena arena) {
        return LINKER.upcallStub(each, FunctionDescriptor.of(JAVA_INT, ADDRESS, ADDRESS), arena);
    }

    private static MethodHandle close(String name) {
        return LINKER.downcallHandle(found(name), FunctionDescriptor.ofVoid(ADDRESS));
    }
}
