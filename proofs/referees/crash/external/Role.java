import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.util.concurrent.Callable;

/** A process with one end of a transport, as src/role.rs: README.md has the protocol. */
final class Role {
    static final int CAPACITY = 64, WORDS = 7;
    private static final Linker LINKER = Linker.nativeLinker();
    private static final MethodHandle TRAP = trap();

    /** An end of a transport. It is refused if its constructor throws. */
    interface End {
        boolean push(long[] message) throws Exception;

        /** Returns `true` if there was a message. */
        boolean pop(long[] message) throws Exception;

        void close() throws Exception;
    }

    interface Factory {
        End attach(String place, String attach) throws Exception;
    }

    private Role() {}

    private static MethodHandle find(String name, FunctionDescriptor type) {
        return LINKER.downcallHandle(LINKER.defaultLookup().find(name).orElseThrow(), type);
    }

    /** Returns a function of two instructions, int3 and ret, at which the tracer stops this thread. */
    private static MethodHandle trap() {
        try {
            var type = FunctionDescriptor.of(ValueLayout.ADDRESS, ValueLayout.ADDRESS, ValueLayout.JAVA_LONG,
                ValueLayout.JAVA_INT, ValueLayout.JAVA_INT, ValueLayout.JAVA_INT, ValueLayout.JAVA_LONG);
            // PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS
            var page = (MemorySegment) find("mmap", type).invokeExact(MemorySegment.NULL, 4096L, 7, 0x22, -1, 0L);
            page = page.reinterpret(4096);
            page.set(ValueLayout.JAVA_BYTE, 0, (byte) 0xcc);
            page.set(ValueLayout.JAVA_BYTE, 1, (byte) 0xc3);
            return LINKER.downcallHandle(page, FunctionDescriptor.ofVoid());
        } catch (Throwable error) {
            throw new IllegalStateException(error);
        }
    }

    /** Returns the number of this thread, which is not the first one of a Java process. */
    private static int thread() throws Exception {
        try {
            return (int) find("gettid", FunctionDescriptor.of(ValueLayout.JAVA_INT)).invokeExact();
        } catch (Throwable error) {
            throw new Exception(error);
        }
    }

    private static <T> T marked(boolean isMarked, Callable<T> action) throws Exception {
        if (!isMarked) return action.call();
        try {
            TRAP.invokeExact();
            try {
                return action.call();
            } finally {
                TRAP.invokeExact();
            }
        } catch (Exception error) {
            throw error;
        } catch (Throwable error) {
            throw new Exception(error);
        }
    }

    static long[] message(long sender, long number) {
        long[] words = new long[WORDS];
        words[0] = sender;
        words[1] = number;
        for (int word = 2; word < WORDS; word++) {
            words[word] = Long.rotateLeft((number + 1) * 0x9e3779b97f4a7c15L, word) ^ sender;
        }
        return words;
    }

    private static String decode(long[] found) {
        boolean isKnown = found[0] >= 0 && found[0] < 16 && java.util.Arrays.equals(found, message(found[0], found[1]));
        return isKnown ? found[0] + ":" + found[1] : "?";
    }

    private static void print(String line) {
        System.out.println(line.replace('\n', ' '));
        System.out.flush();
    }

    private static long next;

    private static String send(End end, String word, long number, long id) throws Exception {
        if (word.equals("step")) {
            long[] message = message(id, next);
            marked(true, () -> end.push(message));
            return "stepped";
        }
        long first = next, count = word.equals("fill") ? 4 * CAPACITY : number;
        try {
            while (next < first + count && end.push(message(id, next))) next++;
        } catch (Exception error) {
            return "pushed " + (next - first) + " " + error;
        }
        return "pushed " + (next - first);
    }

    private static String receive(End end, String word, long number) throws Exception {
        long[] message = new long[WORDS];
        if (word.equals("step")) {
            marked(true, () -> end.pop(message));
            return "stepped";
        }
        long until = System.nanoTime() + (word.equals("poll") ? number * 1_000_000 : 0);
        long limit = word.equals("take") ? number : 16 * CAPACITY;
        StringBuilder line = new StringBuilder("popped");
        try {
            for (int taken = 0, looks = 0; taken < limit && (looks < 3 || word.equals("poll") && System.nanoTime() < until);) {
                if (end.pop(message)) {
                    taken++;
                    line.append(' ').append(decode(message));
                } else {
                    looks++;
                    Thread.sleep(0, 50_000);
                }
            }
        } catch (Exception error) {
            return line + " " + error;
        }
        return line.toString();
    }

    /** Runs as NAME END PLACE ATTACH ID. */
    static void run(String[] words, Factory factory) throws Exception {
        boolean isSender = words[1].equals("sender");
        long id = Long.parseLong(words[4]);
        print("gate " + thread());
        var input = new BufferedReader(new InputStreamReader(System.in));
        End[] end = new End[1];
        for (String line; (line = input.readLine()) != null;) {
            boolean isMarked = line.startsWith("marked ");
            String[] command = line.substring(isMarked ? 7 : 0).split(" ");
            long number = command.length > 1 ? Long.parseLong(command[1]) : 0;
            switch (command[0]) {
                case "go" -> {
                    try {
                        end[0] = marked(isMarked, () -> factory.attach(words[2], words[3]));
                    } catch (Exception error) {
                        print("refused " + error);
                        return;
                    }
                    print("ready");
                }
                case "drop" -> {
                    marked(isMarked, () -> {
                        end[0].close();
                        return null;
                    });
                    end[0] = null;
                    print("dropped");
                }
                case "exit" -> {
                    if (end[0] != null) end[0].close();
                    print("bye");
                    return;
                }
                default -> print(end[0] == null ? "not attached"
                    : isSender ? send(end[0], command[0], number, id) : receive(end[0], command[0], number));
            }
        }
    }
}
