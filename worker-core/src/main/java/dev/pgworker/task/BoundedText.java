package dev.pgworker.task;

import java.io.IOException;
import java.io.Writer;

/** Takes a text up to a number of bytes, as UTF-8, and then refuses it, however much there would be. */
final class BoundedText extends Writer {

    private final StringBuilder text = new StringBuilder();
    private final int most;
    private long bytes;

    BoundedText(int most) {
        this.most = most;
    }

    /** Returns whether there was more than the limit. */
    boolean isFull() {
        return bytes > most;
    }

    @Override
    public void write(char[] characters, int offset, int length) throws IOException {
        for (int i = offset; i < offset + length; i++) {
            char c = characters[i];
            bytes += c < 0x80 ? 1 : c < 0x800 || Character.isSurrogate(c) ? 2 : 3;
            if (isFull()) {
                throw new IOException("More than " + most + " bytes");
            }
            text.append(c);
        }
    }

    @Override
    public void flush() {}

    @Override
    public void close() {}

    @Override
    public String toString() {
        return text.toString();
    }
}
