package dev.pgworker.chaos;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Predicate;
import java.util.stream.Stream;

import dev.pgworker.testing.WorkerProcess;
import dev.pgworker.testsupport.PgBouncer;

/**
 * The worker processes. Every second one reaches its server through a {@link FlakyProxy}. Of the others one half is behind
 * {@link PgBouncer}, and the other half has a clock that is hours ahead or behind, as far as PgBouncer and libfaketime are
 * installed. If a folder with Node.js's Graphile Worker is given, one more process is of that kind.
 */
final class Fleet implements AutoCloseable {

    /** A process; {@link Faults} owns whether it is busy. */
    static final class Member {
        final int number;
        final WorkerProcess process;
        final boolean node;
        boolean busy;
        private final Post post;

        private Member(int number, WorkerProcess process, Post post) {
            this.number = number;
            this.process = process;
            this.node = post.node;
            this.post = post;
        }

        /** Returns the proxy before the process's server, or null. */
        FlakyProxy proxy() {
            return post.proxy;
        }

        static boolean isProxied(Member member) {
            return member.proxy() != null;
        }

        static boolean isJava(Member member) {
            return !member.node;
        }
    }

    /** What stays when a process is replaced: its way to the server and its clock. */
    private record Post(FlakyProxy proxy, boolean bouncer, String clock, boolean node) {}

    private final ChaosDatabase database;
    private final String logs;
    private final String nodeFolder;
    private final PgBouncer bouncer;
    private final Path fakeTime;
    private final List<Member> members = new ArrayList<>();
    private final Set<Integer> nodes = ConcurrentHashMap.newKeySet();
    private Path nodeScript;
    private int started;

    /**
     * Starts the processes.
     *
     * @param logs what the names of their log files begin with
     * @param nodeFolder a folder in which Node.js finds {@code graphile-worker}; null for no such process
     */
    Fleet(ChaosDatabase database, String logs, int workers, String nodeFolder) throws IOException {
        this.database = database;
        this.logs = logs;
        this.nodeFolder = nodeFolder;
        bouncer = PgBouncer.start(database.port(), logs);
        fakeTime = findFakeTime();
        tellWhatIsMissing();
        for (int i = 0; i < workers; i++) {
            start(post(i));
        }
        if (nodeFolder != null) {
            start(new Post(null, false, null, true));
        }
    }

    private void tellWhatIsMissing() {
        if (bouncer == null) {
            System.out.println("Chaos without PgBouncer: it is not installed");
        }
        if (fakeTime == null) {
            System.out.println("Chaos without wrong clocks: libfaketime is not installed");
        }
        if (nodeFolder == null) {
            System.out.println("Chaos without Node.js: chaos.node-dir is not set");
        }
    }

    private Post post(int index) throws IOException {
        if (index % 2 == 1) {
            return new Post(new FlakyProxy(database.port()), false, null, false);
        }
        String clock = index % 8 == 0 ? "+3h" : "-2h";
        return index % 4 == 2
                ? new Post(null, bouncer != null, null, false)
                : new Post(null, false, fakeTime == null ? null : clock, false);
    }

    private static Path findFakeTime() throws IOException {
        for (Path folder : List.of(Path.of("/usr/lib"), Path.of("/usr/local/lib"), Path.of("/usr/lib64"))) {
            if (Files.isDirectory(folder)) {
                try (Stream<Path> found =
                        Files.find(folder, 3, (path, attributes) -> path.endsWith("faketime/libfaketimeMT.so.1"))) {
                    Path library = found.findFirst().orElse(null);
                    if (library != null) {
                        return library;
                    }
                }
            }
        }
        return null;
    }

    static String url(int port) {
        return "jdbc:postgresql://localhost:" + port
                + "/postgres?user=postgres&password=postgres&socketTimeout=5&connectTimeout=3";
    }

    private synchronized void start(Post post) throws IOException {
        int number = ++started;
        WorkerProcess process = post.node ? startNode(number) : startJava(number, post);
        members.add(new Member(number, process, post));
    }

    private WorkerProcess startJava(int number, Post post) throws IOException {
        String direct = url(database.port());
        String url = post.proxy != null
                ? url(post.proxy.port())
                // Prepared statements do not outlive a transaction there.
                : post.bouncer ? url(bouncer.port()) + "&prepareThreshold=0" : direct;
        // The system's monotonic clock is the same in all processes, whatever they take for the time of day.
        Instant now = Instant.now();
        long origin = now.getEpochSecond() * 1_000_000_000 + now.getNano() - System.nanoTime();
        return WorkerProcess.start(
                ChaosWorker.class,
                logs + number,
                clock(post.clock),
                url,
                post.bouncer ? direct : url,
                direct,
                Integer.toString(number),
                Long.toString(origin));
    }

    private Map<String, String> clock(String offset) {
        return offset == null
                ? Map.of()
                : Map.of(
                        "LD_PRELOAD",
                        fakeTime.toString(),
                        "FAKETIME",
                        offset,
                        "FAKETIME_DONT_FAKE_MONOTONIC",
                        "1",
                        // Otherwise no thread waits for any time.
                        "FAKETIME_FORCE_MONOTONIC_FIX",
                        "0");
    }

    private WorkerProcess startNode(int number) throws IOException {
        if (nodeScript == null) {
            nodeScript = Files.createTempFile("node-worker", ".js");
            try (InputStream script = Fleet.class.getResourceAsStream("node-worker.js")) {
                Files.copy(Objects.requireNonNull(script), nodeScript, StandardCopyOption.REPLACE_EXISTING);
            }
        }
        nodes.add(number);
        return WorkerProcess.start(
                List.of(
                        "node",
                        nodeScript.toString(),
                        Path.of(nodeFolder).toAbsolutePath().toString(),
                        "postgres://postgres:postgres@localhost:" + database.port() + "/postgres",
                        Integer.toString(number)),
                logs + "node-" + number);
    }

    /** Starts a process in the place of one that is gone. */
    synchronized void replace(Member gone) throws IOException {
        members.remove(gone);
        start(gone.post);
    }

    /** Returns one of the live members that are not busy, a preferred one if possible; null if there is none. */
    synchronized Member free(Predicate<Member> suitable, List<Integer> preferred, Random random) {
        List<Member> free = members.stream()
                .filter(m -> !m.busy && m.process.isAlive())
                .filter(suitable)
                .toList();
        return free.stream()
                .filter(m -> preferred.contains(m.number))
                .findFirst()
                .orElse(free.isEmpty() ? null : free.get(random.nextInt(free.size())));
    }

    /** Returns how many workers in Java there are. */
    synchronized int workers() {
        return (int) members.stream().filter(Member::isJava).count();
    }

    /** Returns the process of Node.js, or null. */
    synchronized Member node() {
        return members.stream().filter(m -> m.node).findFirst().orElse(null);
    }

    /** Returns the numbers of all processes of Node.js that there have been. */
    Set<Integer> nodes() {
        return Set.copyOf(nodes);
    }

    synchronized void remove(Member gone) {
        members.remove(gone);
    }

    /** Lets all workers stop as an application does; returns the numbers of those that do not. */
    synchronized List<Integer> stop() throws Exception {
        List<Integer> stuck = new ArrayList<>();
        for (Member member : members) {
            if (!member.process.awaitExit(Duration.ofMinutes(2))) {
                stuck.add(member.number);
            }
        }
        return stuck;
    }

    @Override
    public synchronized void close() throws IOException {
        for (Member member : members) {
            member.process.close();
            if (member.proxy() != null) {
                member.proxy().close();
            }
        }
        if (bouncer != null) {
            bouncer.close();
        }
        if (nodeScript != null) {
            Files.delete(nodeScript);
        }
    }
}
