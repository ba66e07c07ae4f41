import java.io.File;
import java.io.RandomAccessFile;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import org.agrona.IoUtil;
import org.agrona.concurrent.UnsafeBuffer;
import org.agrona.concurrent.ringbuffer.OneToOneRingBuffer;
import org.agrona.concurrent.ringbuffer.RingBufferDescriptor;

/** Agrona's OneToOneRingBuffer in a mapped file, which the receiver creates. The file is the caller's part. */
final class AgronaRing implements Role.End {
    /** A record has a header of 8 bytes and the 56 bytes of a message. */
    private static final int BYTES = Role.CAPACITY * 64 + RingBufferDescriptor.TRAILER_LENGTH;
    private static final int TYPE = 1;

    private final MappedByteBuffer mapped;
    private final OneToOneRingBuffer ring;
    private final UnsafeBuffer packed = new UnsafeBuffer(new byte[8 * Role.WORDS]);
    private final File file;
    private final boolean isCreator;

    AgronaRing(String place, String attach, boolean isSender) throws Exception {
        file = new File(place, "ring");
        isCreator = attach.equals("create");
        if (isCreator) {
            // A new file of the whole length appears at once.
            var fresh = new File(place, "ring.new");
            fresh.delete();
            mapped = map(fresh, true);
            fresh.renameTo(file);
        } else {
            if (file.length() != BYTES) throw new IllegalStateException("no ring");
            mapped = map(file, false);
        }
        ring = new OneToOneRingBuffer(new UnsafeBuffer(mapped));
        // Agrona's own repair, for a record that a killed sender claimed: this is the only sender now.
        if (isSender) ring.unblock();
    }

    private static MappedByteBuffer map(File file, boolean isNew) throws Exception {
        try (var access = new RandomAccessFile(file, "rw")) {
            if (isNew) access.setLength(BYTES);
            return access.getChannel().map(FileChannel.MapMode.READ_WRITE, 0, BYTES);
        }
    }

    @Override
    public boolean push(long[] message) {
        for (int word = 0; word < message.length; word++) packed.putLong(8 * word, message[word]);
        return ring.write(TYPE, packed, 0, 8 * message.length);
    }

    @Override
    public boolean pop(long[] message) {
        return ring.read((type, buffer, index, length) -> {
            java.util.Arrays.fill(message, -1);
            for (int word = 0; 8 * word + 8 <= length && word < message.length; word++) {
                message[word] = buffer.getLong(index + 8 * word);
            }
        }, 1) > 0;
    }

    @Override
    public void close() {
        IoUtil.unmap(mapped);
        if (isCreator) file.delete();
    }

    public static void main(String[] words) throws Exception {
        if (words.length == 1) {
            System.out.println(System.getProperty("agrona.version"));
        } else if (words.length == 3) {
            new File(words[2], "ring").delete();
            new File(words[2], "ring.new").delete();
        } else {
            // The classes are loaded, and the calls linked, before the tracer counts instructions.
            var folder = java.nio.file.Files.createTempDirectory(java.nio.file.Path.of("/dev/shm"), "warm");
            var warm = new AgronaRing(folder.toString(), "create", true);
            for (int round = 0; round < 20; round++) {
                warm.push(Role.message(0, round));
                warm.pop(new long[Role.WORDS]);
            }
            warm.close();
            java.nio.file.Files.delete(folder);
            Role.run(words, (place, attach) -> new AgronaRing(place, attach, words[1].equals("sender")));
        }
    }
}
