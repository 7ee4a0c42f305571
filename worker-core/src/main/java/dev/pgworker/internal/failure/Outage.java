package dev.pgworker.internal.failure;

import java.sql.SQLException;
import java.sql.SQLTransientConnectionException;
import java.time.Duration;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.Set;
import java.util.function.Consumer;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;

/**
 * Which of a worker's services cannot use the database, so that an outage is logged once for each of its causes however many
 * services notice it and however often they retry. Thread-safe.
 *
 * <p>An outage is over when each service that failed has used the database again, or has nothing to do with it any
 * more, at least one of them has used it, and for a while no service has failed: connections break one after the other,
 * and a service that finds a working one shows little about the others.
 */
public final class Outage {

    private static final Logger log = WorkerLog.of(Outage.class);

    private static final Duration CALM = Duration.ofSeconds(2);

    /** How long a success shows that the database is not away for all. */
    private static final Duration PROOF = Duration.ofMinutes(1);

    private final long calmNanos;

    private final Consumer<Throwable> whenTold;

    @GuardedBy("this") private final Set<String> failing = new LinkedHashSet<>();

    @GuardedBy("this") private final Set<String> toldCauses = new HashSet<>();

    @GuardedBy("this") private long since;

    @GuardedBy("this") private long lastFailure;

    /** Whether a statement has succeeded since the last failure. */
    @GuardedBy("this") private boolean proven;

    /** Whether all that ends an outage has come but the calm, and since when. */
    @GuardedBy("this") private boolean usable;

    /** When a statement last succeeded in spite of the outage; 0 if none has. */
    @GuardedBy("this") private long provenAt;

    @GuardedBy("this") private long usableSince;

    /** The services that have found no schema. */
    @GuardedBy("this") private final Set<String> withoutSchema = new HashSet<>();

    /** As {@link #present}. */
    private volatile @Nullable String missingSchema;

    /** Written under the lock, read without it to keep the successful path free of locks. */
    private volatile boolean present;

    /** Creates the record of a worker without any outage. */
    public Outage() {
        this(CALM, error -> {});
    }

    /**
     * Creates the record of a worker without any outage.
     *
     * @param whenTold called when an outage begins or has another cause, and when there is no schema, with the failure that shows
     *     it, on the thread of the service that failed
     */
    public Outage(Consumer<Throwable> whenTold) {
        this(CALM, whenTold);
    }

    /** Creates the record of a worker without any outage, of which one ends after so much time without a failure. */
    public Outage(Duration calm) {
        this(calm, error -> {});
    }

    Outage(Duration calm, Consumer<Throwable> whenTold) {
        calmNanos = calm.toNanos();
        this.whenTold = whenTold;
    }

    /** Notes that a service could not use the database. A failure of any other kind ({@link DatabaseFailure}) is ignored. */
    public void failed(String service, Throwable error) {
        log.debug("Failure in {}", service, error);
        if (DatabaseFailure.of(error) == DatabaseFailure.OUTAGE && note(service, error)) {
            whenTold.accept(error);
        }
    }

    private synchronized boolean note(String service, Throwable error) {
        lastFailure = System.nanoTime();
        proven = false;
        usable = false;
        failing.add(service);
        if (!present) {
            present = true;
            since = lastFailure;
            provenAt = 0;
            toldCauses.clear();
        }
        Cause cause = Cause.of(error);
        boolean another = !toldCauses.isEmpty();
        if (!toldCauses.add(cause.key)) {
            return false;
        }
        log.warn(
                another
                        ? "The database still cannot be used ({}), for another reason: {}{}"
                        : "The database cannot be used ({}); trying again until it can: {}{}",
                service,
                describe(error),
                cause.remedy);
        return true;
    }

    /** Notes that a service has found no schema, or an old one, to work on. Logged once for all services. */
    public void schemaMissing(String service, Throwable error) {
        if (noteMissing(service, error)) {
            whenTold.accept(error);
        }
    }

    private synchronized boolean noteMissing(String service, Throwable error) {
        withoutSchema.add(service);
        boolean first = missingSchema == null;
        if (first) {
            missingSchema = "the schema is not installed, or not up to date (" + messageOf(error)
                    + "). Start an application once with pgworker.schema.mode=migrate and a user that may create the schema";
            log.error("No job can run: {}. Retrying until then", missingSchema);
        }
        return first;
    }

    /** Returns why there is no schema to work on, with the remedy; null if there is one. */
    public @Nullable String missingSchema() {
        return missingSchema;
    }

    private synchronized void schemaFound(String service, boolean proof) {
        if (withoutSchema.remove(service) && withoutSchema.isEmpty()) {
            missingSchema = null;
            if (proof) {
                log.info("The schema can be used");
            }
        }
    }

    private static String messageOf(Throwable error) {
        return ErrorText.headline(error)
                .replaceFirst("^[\\w.]+: (ERROR: )?", "")
                .replaceFirst(" +(Hint|Position): .*", "");
    }

    /** Notes that a service has used the database. */
    public void succeeded(String service) {
        if (missingSchema != null) {
            schemaFound(service, true);
        }
        if (present) {
            leave(service, true);
        }
    }

    /**
     * Notes that a service continues, or ends, without having used the database: it no longer shows how the database
     * is.
     */
    public void left(String service) {
        if (missingSchema != null) {
            schemaFound(service, false);
        }
        if (present) {
            leave(service, false);
        }
    }

    /** Returns true from the first failure until the outage is over. */
    public boolean isPresent() {
        return present;
    }

    /** Returns true while some services can use the database and others cannot. */
    public synchronized boolean isPartial() {
        return present && provenAt != 0 && System.nanoTime() - provenAt < PROOF.toNanos();
    }

    private synchronized void leave(String service, boolean proof) {
        if (!present) {
            return;
        }
        long now = System.nanoTime();
        failing.remove(service);
        proven |= proof;
        provenAt = proof ? now : provenAt;
        if (!usable && proven && failing.isEmpty()) {
            usable = true;
            usableSince = now;
        }
        if (usable && now - lastFailure >= calmNanos) {
            present = false;
            log.info(
                    "The database can be used again; it failed for {} s",
                    Duration.ofNanos(usableSince - since).toMillis() / 1000.0);
        }
    }

    /** Puts the messages of an exception and its causes into one line. */
    static String describe(Throwable error) {
        try {
            StringBuilder text = new StringBuilder(error.toString());
            Throwable cause = error.getCause();
            for (int depth = 0; cause != null && depth < 3; depth++) {
                if (cause.getMessage() != null && text.indexOf(cause.getMessage()) < 0) {
                    text.append("; ").append(cause);
                }
                cause = cause.getCause();
            }
            return text.toString().replace('\n', ' ');
        } catch (RuntimeException e) {
            return error.getClass().getName();
        }
    }

    /**
     * What makes one outage differ from another.
     *
     * @param key the same for failures that need not be logged twice
     * @param remedy what to do, with the punctuation before it; empty if nothing but waiting
     */
    private record Cause(String key, String remedy) {

        static Cause of(Throwable error) {
            String state = state(error);
            if (describe(error).contains("statement pooling")) {
                return new Cause(
                        "pooling",
                        ". The connection pooler allows no transactions: use pool_mode=transaction or pool_mode=session, or"
                                + " an address of PostgreSQL itself");
            }
            if (state == null && describe(error).contains("total=0,")) {
                return new Cause(
                        "silent",
                        ". The pool has no connection and gets none: if the server has been stopped or cut off, the JDBC"
                                + " URL needs a connectTimeout and a socketTimeout, so that the next one is tried");
            }
            if (state == null) {
                return new Cause(
                        "pool",
                        ". If all its connections are in use, give the pool more of them"
                                + " (spring.datasource.hikari.maximum-pool-size), or hold them for a shorter time");
            }
            if (state.equals("25006")) {
                return new Cause(
                        state,
                        ". Add targetServerType=primary to the JDBC URL and list the addresses of all servers in it, or"
                                + " change it to the address of the primary");
            }
            if (state.equals("53100")) {
                return new Cause(state, ". Free disk space on the server, or add more");
            }
            if (state.equals("53300")) {
                return new Cause(state, ". Raise the server's max_connections, or make the pools smaller");
            }
            // A server that goes down ends connections with one of these, and which one is a matter of chance.
            boolean broken = state.startsWith("08") || state.equals("57P01") || state.equals("57P02");
            return new Cause(broken ? "broken" : state, "");
        }

        /** Returns the SQLSTATE of what came first, which a pool's own exception may not carry. */
        private static @Nullable String state(Throwable error) {
            String found = null;
            Throwable current = error;
            for (int depth = 0; current != null && depth < 20; depth++) {
                if (current instanceof SQLException e && e.getSQLState() != null) {
                    found = e.getSQLState();
                    if (!(e instanceof SQLTransientConnectionException)) {
                        return found;
                    }
                }
                current = current.getCause();
            }
            return found;
        }
    }
}
