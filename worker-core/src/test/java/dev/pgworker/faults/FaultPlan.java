package dev.pgworker.faults;

import java.io.IOException;
import java.sql.SQLException;
import java.sql.SQLTransientConnectionException;
import java.util.EnumMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Queue;
import java.util.SplittableRandom;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;

/**
 * Decides by a seed which calls go wrong, and how. The n-th call at one place always meets with the same fate; which thread
 * makes it, and when, is left to chance. Each seed leaves out some areas and some kinds of fault, so that rare ones are not
 * always hidden behind frequent ones. Remembers what it did. Safe for use by many threads.
 */
final class FaultPlan {

    /** Where faults happen. */
    enum Area {
        /** Asking the pool for a connection. */
        POOL(1),
        /** Calls of connections, statements and the driver. */
        STATEMENT(0.3),
        /** Reading rows: there are many such calls for each statement. */
        ROWS(0.03),
        /** Handing work to the handler executor. */
        EXECUTOR(1),
        /** Handlers, interceptors and retry delays. */
        HANDLER(1.5),
        /** Listeners and the supplier of forbidden flags. */
        CALLBACK(0.5),
        /** Decoding payloads. */
        CODEC(0.5);

        private final double weight;

        Area(double weight) {
            this.weight = weight;
        }
    }

    /** What happens. Not every kind is possible everywhere. */
    enum Kind {
        /** An exception instead of the call. */
        FAILURE,
        /** An exception after the call has taken effect. */
        LOST_ANSWER,
        /** An {@link Error} instead of the call. */
        ERROR,
        /** An {@link Error} after the call has taken effect. */
        LATE_ERROR,
        /** The connection breaks, before or after the call. */
        CUT,
        /** The call takes longer. */
        DELAY,
        /** The call is made twice. */
        TWICE,
        /** The call is made some time after it seemed to be. */
        LATER,
        /** The work is done by whoever hands it over. */
        INLINE,
        /** The thread is left interrupted. */
        INTERRUPT,
        /** What is thrown or returned is hostile itself. */
        HOSTILE
    }

    private static final List<String> STATES = List.of(
            "08006", "08003", "57P01", "53300", "40001", "40P01", "57014", "55P03", "XX000", "25006", "22021", "42501");

    private final long seed;
    private final Map<Area, Double> rates = new EnumMap<>(Area.class);
    private final Map<Kind, Boolean> kinds = new EnumMap<>(Kind.class);
    private final ConcurrentMap<String, AtomicInteger> calls = new ConcurrentHashMap<>();
    private final Queue<String> done = new ConcurrentLinkedQueue<>();
    private final long created = System.nanoTime();

    private volatile boolean active;

    FaultPlan(long seed) {
        this.seed = seed;
        SplittableRandom random = new SplittableRandom(seed);
        double rate = Math.pow(10, -random.nextDouble(0.4, 2));
        for (Area area : Area.values()) {
            rates.put(area, random.nextInt(3) > 0 ? rate * area.weight : 0);
        }
        for (Kind kind : Kind.values()) {
            kinds.put(kind, random.nextInt(3) > 0);
        }
    }

    /** Returns whether a statement that claims jobs was sent twice, the first answer of which nobody saw. */
    boolean hasRepeatedClaims() {
        return done.stream()
                .anyMatch(fault -> fault.contains("pgworker_claim")
                        && fault.contains(".execute")
                        && fault.endsWith(Kind.TWICE.name()));
    }

    /** A fault that is to be done now, with the randomness for its details. */
    record Fault(Kind kind, SplittableRandom random, String site) {

        boolean is(Kind other) {
            return kind == other;
        }

        /** Returns what a driver or a pool throws. */
        Exception ofDatabase() {
            int form = random.nextInt(8);
            if (form == 0) {
                return new IllegalStateException(message());
            }
            if (form == 1) {
                return new SQLTransientConnectionException(message());
            }
            if (form == 2) {
                return new SQLException(message());
            }
            return new SQLException(message(), STATES.get(random.nextInt(STATES.size())));
        }

        /** Returns what code of the application throws, declared or not. */
        Throwable ofApplication() {
            if (kind == Kind.HOSTILE) {
                return HostileException.create(random);
            }
            return switch (random.nextInt(3)) {
                case 0 -> new IOException(message());
                case 1 -> new IllegalStateException(message());
                default -> new NullPointerException(message());
            };
        }

        Error error() {
            return switch (random.nextInt(5)) {
                case 0 -> new StackOverflowError(message());
                case 1 -> new NoClassDefFoundError(message());
                case 2 -> new AssertionError(message());
                default -> new OutOfMemoryError(message());
            };
        }

        void delay() {
            LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(1 + random.nextInt(random.nextInt(4) == 0 ? 120 : 15)));
        }

        private String message() {
            return "On purpose: " + kind + " at " + site;
        }
    }

    /** Throws what the signature does not declare, as languages do that know no checked exceptions. */
    @SuppressWarnings({"unchecked", "TypeParameterUnusedInFormals"})
    static <T extends Throwable> RuntimeException sneaky(Throwable throwable) throws T {
        throw (T) throwable;
    }

    /** Returns the fault that one call meets with, of the kinds that are possible there, or null for most calls. */
    Fault next(Area area, String site, Kind... possible) {
        if (!active) {
            return null;
        }
        int call = calls.computeIfAbsent(site, s -> new AtomicInteger()).getAndIncrement();
        SplittableRandom random = new SplittableRandom(seed * 31 + 17L * site.hashCode() + 0x9E3779B97F4A7C15L * call);
        random = random.split();
        if (random.nextDouble() >= rates.get(area)) {
            return null;
        }
        List<Kind> allowed = List.of(possible).stream().filter(kinds::get).toList();
        if (allowed.isEmpty()) {
            return null;
        }
        Kind kind = allowed.get(random.nextInt(allowed.size()));
        done.add(String.format(
                Locale.ROOT,
                "+%d ms [%s] %s, call %d: %s",
                millis(),
                Thread.currentThread().getName(),
                site,
                call + 1,
                kind));
        return new Fault(kind, random, site);
    }

    long millis() {
        return TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - created);
    }

    void begin() {
        active = true;
    }

    void end() {
        active = false;
    }

    List<String> done() {
        return List.copyOf(done);
    }

    @Override
    public String toString() {
        StringBuilder text = new StringBuilder("rates");
        rates.forEach((area, rate) -> {
            if (rate > 0) {
                text.append(String.format(Locale.ROOT, " %s %.3f", area, rate));
            }
        });
        text.append("; kinds");
        kinds.forEach((kind, allowed) -> {
            if (allowed) {
                text.append(' ').append(kind);
            }
        });
        return text.toString();
    }
}
