package dev.pgworker.dashboard;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.zip.GZIPOutputStream;

import org.springframework.web.util.HtmlUtils;

/** The files of the pages, which stand beside this class. Thread-safe. */
final class StaticFiles {

    private static final Pattern ASSET = Pattern.compile("assets(/[A-Za-z0-9_-][A-Za-z0-9._-]*)++");
    private static final Pattern BASE = Pattern.compile("<base href=\"[^\"]*\">");

    private static final Map<String, String> TYPES = Map.of(
            "html", "text/html;charset=UTF-8",
            "js", "text/javascript;charset=UTF-8",
            "css", "text/css;charset=UTF-8",
            "svg", "image/svg+xml",
            "png", "image/png",
            "woff2", "font/woff2",
            "json", "application/json");

    private static final String VERSION = read("version.txt")
            .map(content -> new String(content, StandardCharsets.UTF_8).strip())
            .orElse("");

    /** Bounded by the number of files. */
    private final Map<String, Optional<StaticFile>> assets = new ConcurrentHashMap<>();

    private final Map<String, StaticFile> indexes = new ConcurrentHashMap<>();

    /** A file as it is sent. */
    static final class StaticFile {

        private final String type;
        private final byte[] content;
        private final byte[] gzip;
        private final String tag;

        private StaticFile(String type, byte[] content, byte[] gzip, String tag) {
            this.type = type;
            this.content = content;
            this.gzip = gzip;
            this.tag = tag;
        }

        String type() {
            return type;
        }

        byte[] content(boolean compressed) {
            return compressed ? gzip : content;
        }

        /** Returns what changes with the content. */
        String tag() {
            return tag;
        }
    }

    /** Returns the version of the dashboard. */
    static String version() {
        return VERSION;
    }

    /** Returns a file below the directory of assets; empty if there is none. */
    Optional<StaticFile> asset(String path) {
        Optional<StaticFile> known = assets.get(path);
        if (known != null) {
            return known;
        }
        Optional<StaticFile> file = ASSET.matcher(path).matches() ? load(path) : Optional.empty();
        if (file.isPresent()) {
            assets.put(path, file);
        }
        return file;
    }

    private static Optional<StaticFile> load(String path) {
        String type = TYPES.get(path.substring(path.lastIndexOf('.') + 1));
        return type == null ? Optional.empty() : read(path).map(content -> file(type, content));
    }

    private static Optional<byte[]> read(String path) {
        try (InputStream stream = StaticFiles.class.getResourceAsStream("ui/" + path)) {
            return stream == null ? Optional.empty() : Optional.of(stream.readAllBytes());
        } catch (IOException e) {
            throw new UncheckedIOException("The file " + path + " of the dashboard cannot be read", e);
        }
    }

    /**
     * Returns the page from which all others are made.
     *
     * @param base where the dashboard is, which is the same for all requests unless a proxy says otherwise
     */
    StaticFile index(String base) {
        StaticFile known = indexes.get(base);
        if (known != null) {
            return known;
        }
        String page = read("index.html")
                .map(content -> new String(content, StandardCharsets.UTF_8))
                .orElseThrow(() -> new IllegalStateException("The jar of the dashboard lacks its index.html"));
        String placed = BASE.matcher(page)
                .replaceFirst(Matcher.quoteReplacement("<base href=\"" + HtmlUtils.htmlEscape(base) + "\">"));
        StaticFile index = file(Objects.requireNonNull(TYPES.get("html")), placed.getBytes(StandardCharsets.UTF_8));
        if (indexes.size() < 10) {
            indexes.put(base, index);
        }
        return index;
    }

    private static StaticFile file(String type, byte[] content) {
        ByteArrayOutputStream compressed = new ByteArrayOutputStream();
        try (GZIPOutputStream gzip = new GZIPOutputStream(compressed)) {
            gzip.write(content);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        try {
            byte[] digest = MessageDigest.getInstance("SHA-256").digest(content);
            String tag = "\"" + HexFormat.of().formatHex(digest, 0, 12) + "\"";
            return new StaticFile(type, content, compressed.toByteArray(), tag);
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException("Every JVM has SHA-256", e);
        }
    }
}
