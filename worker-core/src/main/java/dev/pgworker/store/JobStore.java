package dev.pgworker.store;

import java.sql.Array;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.sql.Types;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.SortedMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Function;
import java.util.function.ToIntFunction;
import java.util.stream.Stream;
import javax.sql.DataSource;

import org.jspecify.annotations.Nullable;
import org.postgresql.PGConnection;

import dev.pgworker.job.Arguments;
import dev.pgworker.job.Job;
import dev.pgworker.schema.WorkerSchema;

/**
 * The statements of one worker: claim, complete, release, and when to look again.
 *
 * <p>Each method takes a connection of its own from the pool and commits before it returns. Called by the fetch and the
 * completion thread at the same time; the only state they share is the immutable {@link Tasks} given to each call.
 */
public final class JobStore {

    /** Far more than any of these statements usually takes, and little for whoever waits after a failover. */
    private static final Duration USUAL_LIMIT = Duration.ofSeconds(10);

    /** For a statement that needs more: less than an operator waits. */
    private static final Duration LONGEST_LIMIT = Duration.ofSeconds(60);

    private final DataSource dataSource;
    private final WorkerSchema schema;
    private final String workerId;
    private final AnswerLimit answerLimit;
    private final RowAddresses addresses = new RowAddresses();

    /** The claims that are under way. */
    private final Set<Statement> claiming = ConcurrentHashMap.newKeySet();

    /** The claims that were to be cancelled. */
    private final Set<Statement> cancelled = ConcurrentHashMap.newKeySet();

    /** Creates the store of the worker with this id. */
    public JobStore(DataSource dataSource, WorkerSchema schema, String workerId) {
        this(dataSource, schema, workerId, new AnswerLimit(USUAL_LIMIT, LONGEST_LIMIT));
    }

    JobStore(DataSource dataSource, WorkerSchema schema, String workerId, AnswerLimit answerLimit) {
        this.dataSource = dataSource;
        this.schema = schema;
        this.workerId = workerId;
        this.answerLimit = answerLimit;
    }

    /**
     * One run of a job, which every write about it names. A job that is tried again is claimed again, at another time.
     *
     * @param lockedAt when the job was claimed, by the database's clock
     */
    public record Claim(long jobId, Instant lockedAt) {

        /** Returns the claim by which a job is held that a claim or a completion returned. */
        public static Claim of(Job job) {
            return new Claim(job.id(), Objects.requireNonNull(job.lockedAt()));
        }

        /** Few jobs are claimed twice within the time in which their claims are looked up. */
        @Override
        public int hashCode() {
            return Long.hashCode(jobId);
        }

        @Override
        public boolean equals(@Nullable Object other) {
            return other instanceof Claim claim && jobId == claim.jobId && lockedAt.equals(claim.lockedAt);
        }
    }

    /**
     * The time that the lock of a claim has since it was renewed.
     *
     * @param pending the time that it may have instead, because it is being renewed or an answer was lost
     */
    public record Lock(Instant current, @Nullable Instant pending) {

        /** Returns true if the lock has this time, or may have it. */
        public boolean has(Instant lockedAt) {
            return lockedAt.equals(current) || lockedAt.equals(pending);
        }
    }

    /** Knows which locks have been renewed. */
    @FunctionalInterface
    public interface Locks {

        /** No lock was renewed. */
        Locks UNCHANGED = claim -> null;

        /** Returns the lock of a claim; null if it has never been renewed. */
        @Nullable Lock of(Claim claim);

        private Lock get(Claim claim) {
            Lock lock = of(claim);
            return lock == null ? new Lock(claim.lockedAt, null) : lock;
        }

        private Instant current(Claim claim) {
            Lock lock = of(claim);
            return lock == null ? claim.lockedAt : lock.current;
        }

        private @Nullable Instant pending(Claim claim) {
            Lock lock = of(claim);
            return lock == null ? null : lock.pending;
        }
    }

    /**
     * The tasks that a worker serves, with the ids they have in the database.
     *
     * @param identifiers the identifier of each id
     * @param onlyQueued those of which claims take jobs of queues only, and those that are asked for by their ids
     */
    public record Tasks(Map<Integer, String> identifiers, Set<String> onlyQueued) {

        /** No tasks. */
        public static final Tasks NONE = new Tasks(Map.of());

        /** Copies both. */
        public Tasks {
            identifiers = Map.copyOf(identifiers);
            onlyQueued = Set.copyOf(onlyQueued);
        }

        /** Tasks of which claims take all jobs. */
        public Tasks(Map<Integer, String> identifiers) {
            this(identifiers, Set.of());
        }

        private Integer[] unqueuedIds() {
            return identifiers.entrySet().stream()
                    .filter(task -> !onlyQueued.contains(task.getValue()))
                    .map(Map.Entry::getKey)
                    .toArray(Integer[]::new);
        }

        Integer[] ids() {
            return identifiers.keySet().toArray(Integer[]::new);
        }

        private Integer[] ids(Set<String> named) {
            return identifiers.entrySet().stream()
                    .filter(task -> named.contains(task.getValue()))
                    .map(Map.Entry::getKey)
                    .toArray(Integer[]::new);
        }

        private String nameOf(int id) {
            return identifiers.getOrDefault(id, "task " + id);
        }
    }

    private static final String TASK_IDS = """
            select identifier, id from {schema}.pgworker_task_ids(?)
            """;

    /** Looks up the ids of the given tasks and creates those that do not exist. */
    public Tasks tasks(Collection<String> identifiers) throws SQLException {
        return call(TASK_IDS, (connection, statement) -> {
            statement.setArray(1, connection.createArrayOf("text", identifiers.toArray()));
            Map<Integer, String> tasks = new HashMap<>();
            try (ResultSet rows = statement.executeQuery()) {
                while (rows.next()) {
                    tasks.put(rows.getInt(2), rows.getString(1));
                }
            }
            return new Tasks(tasks);
        });
    }

    /** Times that are those before are left out: a driver that makes dates of all would have a third of a claim's work with them. */
    private static final String JOB_COLUMNS = """
            id, queue_name, task_id, payload, priority, run_at, attempts, max_attempts, last_error,
            case when created_at operator(pg_catalog.<>) run_at then created_at end,
            case when updated_at operator(pg_catalog.<>) created_at then updated_at end,
            key, revision, flags, address, locked_at""";

    private static final String QUEUE_START = "lane_queues => ?, lane_levels => ?, lane_run_ats => ?, lane_ids => ?";

    private static final String CLAIM = "select " + JOB_COLUMNS
            + " from {schema}.pgworker_claim(worker_id => ?, task_ids => ?, wanted => ?, forbidden => ?, runs => ?,"
            + " levels => ?, floor_run_ats => ?, floor_ids => ?, strays => ?, wide => ?, most_bytes => ?, parity => ?,"
            + " unqueued_task_ids => ?, " + QUEUE_START + ")";

    private static final String CLAIM_CAREFULLY = "select " + JOB_COLUMNS + ", refusal, refusal_state, queue_id"
            + " from {schema}.pgworker_claim_carefully(worker_id => ?, task_ids => ?, wanted => ?, forbidden => ?,"
            + " passed_jobs => ?, passed_queues => ?, most_bytes => ?, passed_tasks => ?, " + QUEUE_START + ")";

    /** For a job whose payload cannot be read. */
    private static final String CLAIM_WITHOUT_PAYLOAD = CLAIM_CAREFULLY.replace(" payload,", " null as payload,");

    /**
     * A place among the jobs without a queue that have the same priority.
     *
     * @param runAt when the job there is due
     * @param jobId its id, or one that decides between jobs that are due at the same time
     */
    public record Place(Instant runAt, long jobId) implements Comparable<Place> {

        /** The place before all jobs. */
        public static final Place FIRST = new Place(Instant.MIN, Long.MIN_VALUE);

        private static Array runAts(Connection connection, Stream<Place> places) throws SQLException {
            return connection.createArrayOf(
                    "timestamptz",
                    places.map(place -> Timestamps.storable(place.runAt) ? Timestamps.text(place.runAt) : "-infinity")
                            .toArray(String[]::new));
        }

        @Override
        public int compareTo(Place other) {
            int order = runAt.compareTo(other.runAt);
            return order == 0 ? Long.compare(jobId, other.jobId) : order;
        }
    }

    /**
     * Where a claim looks for jobs without a queue.
     *
     * @param floors at which priorities, and from which place on; earlier jobs are passed over
     * @param strays ids of earlier jobs to look at all the same
     */
    public record Start(SortedMap<Integer, Place> floors, List<Long> strays) {

        private Integer[] levels() {
            return floors.keySet().toArray(Integer[]::new);
        }

        private Array runAts(Connection connection) throws SQLException {
            return Place.runAts(connection, floors.values().stream());
        }

        private Array ids(Connection connection) throws SQLException {
            return JobStore.ids(connection, floors.values().stream().map(Place::jobId));
        }
    }

    /**
     * Where a claim or a completion looks for jobs of queues; earlier jobs are passed over, and so are other priorities.
     *
     * @param floors for each priority one for all queues, and one for each queue to which that does not apply
     */
    public record QueueStart(List<Floor> floors) {

        /**
         * A place below which nothing is looked at.
         *
         * @param queueId 0 for all queues that have no floors of their own
         * @param queueName null for these
         */
        public record Floor(int queueId, @Nullable String queueName, int priority, Place place) {

            /** Returns this floor at another place. */
            public Floor at(Place other) {
                return new Floor(queueId, queueName, priority, other);
            }
        }

        /** Returns those of these floors that apply to the queues with these names. */
        public QueueStart of(Collection<String> queueNames) {
            return new QueueStart(floors.stream()
                    .filter(floor -> floor.queueName == null || queueNames.contains(floor.queueName))
                    .toList());
        }

        private Array ints(Connection connection, ToIntFunction<Floor> of) throws SQLException {
            return connection.createArrayOf(
                    "int4", floors.stream().map(of::applyAsInt).toArray(Integer[]::new));
        }

        private static void set(PreparedStatement statement, int first, @Nullable QueueStart start)
                throws SQLException {
            Connection connection = statement.getConnection();
            statement.setArray(first, start == null ? null : start.ints(connection, Floor::queueId));
            statement.setArray(first + 1, start == null ? null : start.ints(connection, Floor::priority));
            statement.setArray(
                    first + 2,
                    start == null
                            ? null
                            : Place.runAts(connection, start.floors.stream().map(Floor::place)));
            statement.setArray(
                    first + 3,
                    start == null ? null : ids(connection, start.floors.stream().map(floor -> floor.place.jobId)));
        }
    }

    /** Claims that are made at the same time look at different jobs, so that none of them locks what another one has claimed. */
    public enum Chain {
        /** All jobs. */
        WHOLE(null),
        /** Jobs without a queue whose ids, and jobs of queues whose ids, are even. */
        EVEN(0),
        /** The others. */
        ODD(1);

        private final @Nullable Integer parity;

        Chain(@Nullable Integer parity) {
            this.parity = parity;
        }
    }

    /**
     * What a claim looks for.
     *
     * @param wanted how many jobs at most
     * @param mostBytes how many bytes their payloads may have together; a single job may have more
     * @param forbidden flags whose jobs are passed over
     * @param runs how many jobs to take of a queue whose first job is of a task with this identifier
     * @param wide whether to look in many queues at once, because each has few jobs
     * @param start where to look for jobs without a queue; null to look at all
     * @param chain which jobs to look at
     * @param queueStart where to look for jobs of queues; null to look at all
     */
    public record ClaimRequest(
            int wanted,
            long mostBytes,
            Collection<String> forbidden,
            ToIntFunction<String> runs,
            boolean wide,
            @Nullable Start start,
            Chain chain,
            @Nullable QueueStart queueStart) {

        /** Asks for jobs of queues wherever they are. */
        public ClaimRequest(
                int wanted,
                long mostBytes,
                Collection<String> forbidden,
                ToIntFunction<String> runs,
                boolean wide,
                @Nullable Start start,
                Chain chain) {
            this(wanted, mostBytes, forbidden, runs, wide, start, chain, null);
        }

        /** Asks for so many jobs of any size, one of a queue. */
        public static ClaimRequest of(int wanted) {
            return new ClaimRequest(wanted, Long.MAX_VALUE, List.of(), task -> 1, false, null, Chain.WHOLE);
        }
    }

    /**
     * A job whose row could not be read.
     *
     * @param job what could be read of it
     * @param error why
     */
    public record Unreadable(Job job, Throwable error) {}

    /**
     * Jobs that have been claimed.
     *
     * @param jobs in the order in which they are to start
     * @param cut whether there are more, for which there were too many bytes
     * @param at when, by the database's clock; null if that is not known
     * @param passedOver a queue that somebody held for the moment, though it may have due jobs for which there was room; null if none was
     */
    public record Claimed(
            List<Job> jobs,
            List<Unreadable> unreadable,
            boolean cut,
            @Nullable Instant at,
            @Nullable String passedOver) {

        private Claimed() {
            this(new ArrayList<>(), new ArrayList<>(), false, null, null);
        }

        /** Returns how many jobs have been claimed. */
        public int size() {
            return jobs.size() + unreadable.size();
        }
    }

    /**
     * Jobs that a careful claim leaves alone.
     *
     * @param queueIds queues of which nothing is claimed
     * @param tasks identifiers of tasks whose jobs are left alone, and with each the queue that it is the next one of
     */
    public record PassedOver(List<Long> jobIds, List<Integer> queueIds, Set<String> tasks) {

        /** Nothing. */
        public static final PassedOver NONE = new PassedOver(List.of(), List.of(), Set.of());
    }

    /**
     * A job that the server did not let anybody claim.
     *
     * @param queueId null for a job without a queue, as its name
     * @param reason what the server said
     * @param state with which SQLSTATE
     */
    public record Refused(
            long jobId,
            String task,
            @Nullable String queueName,
            @Nullable Integer queueId,
            String reason,
            String state) {

        /** Returns whether the server says that it lacks something, a disk with room for instance, which may be so. */
        public boolean isLack() {
            return state.startsWith("53") || state.startsWith("58") || state.startsWith("08");
        }
    }

    /**
     * What a careful claim brought.
     *
     * @param refused what could not be claimed
     */
    public record CarefullyClaimed(Claimed claimed, List<Refused> refused) {}

    /**
     * Claims due jobs, one of a queue, and passes over those that cannot be claimed, because of a trigger of somebody's for
     * instance. Takes longer than {@link #claim}, a second at most, and may leave jobs behind.
     *
     * @param wanted how many jobs at most
     * @param mostBytes how many bytes their payloads may have together; a single job may have more
     * @param withPayload whether to read the payload; without it the job has the payload {@code null}
     * @param queueStart as in {@link ClaimRequest}
     */
    public CarefullyClaimed claimCarefully(
            Tasks tasks,
            int wanted,
            long mostBytes,
            Collection<String> forbidden,
            PassedOver passedOver,
            boolean withPayload,
            @Nullable QueueStart queueStart)
            throws SQLException {
        return call(withPayload ? CLAIM_CAREFULLY : CLAIM_WITHOUT_PAYLOAD, (connection, statement) -> {
            statement.setString(1, workerId);
            statement.setArray(2, connection.createArrayOf("int4", tasks.ids()));
            statement.setInt(3, wanted);
            statement.setArray(4, texts(connection, forbidden));
            statement.setArray(5, ids(connection, passedOver.jobIds.stream()));
            statement.setArray(6, connection.createArrayOf("int4", passedOver.queueIds.toArray()));
            statement.setLong(7, mostBytes);
            statement.setArray(8, connection.createArrayOf("int4", tasks.ids(passedOver.tasks)));
            QueueStart.set(statement, 9, queueStart);
            List<Refused> refused = new ArrayList<>();
            Claimed claimed = claimed(statement, tasks, rows -> {
                String reason = rows.getString(17);
                if (reason != null) {
                    refused.add(new Refused(
                            rows.getLong(1),
                            tasks.nameOf(rows.getInt(3)),
                            rows.getString(2),
                            rows.getObject(19, Integer.class),
                            reason,
                            rows.getString(18)));
                }
                return reason != null;
            });
            return new CarefullyClaimed(claimed, refused);
        });
    }

    /** Claims due jobs. Ends with an exception, and claims nothing, when {@link #cancelClaims} is called meanwhile. */
    public Claimed claim(Tasks tasks, ClaimRequest request) throws SQLException {
        return call(CLAIM, (connection, statement) -> {
            Integer[] ids = tasks.ids();
            Start start = request.start;
            statement.setString(1, workerId);
            statement.setArray(2, connection.createArrayOf("int4", ids));
            statement.setInt(3, request.wanted);
            statement.setArray(4, texts(connection, request.forbidden));
            statement.setArray(5, runs(connection, tasks, ids, request.runs));
            statement.setArray(6, start == null ? null : connection.createArrayOf("int4", start.levels()));
            statement.setArray(7, start == null ? null : start.runAts(connection));
            statement.setArray(8, start == null ? null : start.ids(connection));
            statement.setArray(
                    9, start == null || start.strays.isEmpty() ? null : ids(connection, start.strays.stream()));
            statement.setBoolean(10, request.wide);
            statement.setLong(11, request.mostBytes);
            statement.setObject(12, request.chain.parity, Types.INTEGER);
            statement.setArray(
                    13, tasks.onlyQueued.isEmpty() ? null : connection.createArrayOf("int4", tasks.unqueuedIds()));
            QueueStart.set(statement, 14, request.queueStart);
            return claimed(statement, tasks, rows -> false);
        });
    }

    /** Takes the present row, if it is no job that has been claimed; returns whether it has. */
    @FunctionalInterface
    private interface OtherRows {
        boolean take(ResultSet rows) throws SQLException;
    }

    private Claimed claimed(PreparedStatement statement, Tasks tasks, OtherRows others) throws SQLException {
        claiming.add(statement);
        try (ResultSet rows = statement.executeQuery()) {
            Claimed claimed = new Claimed();
            Rows reader = new Rows(tasks, 1);
            boolean cut = false;
            while (rows.next()) {
                if (!others.take(rows)) {
                    cut |= !reader.read(rows, claimed);
                }
            }
            return new Claimed(claimed.jobs, claimed.unreadable, cut, reader.lockedAt, reader.passedOver);
        } finally {
            claiming.remove(statement);
            cancelled.remove(statement);
        }
    }

    /**
     * Ends the claims that are under way, which may wait for a lock. May be called from any thread; opens connections. The first
     * time may come before the server has the statement, and the driver cancels a statement only once: call again.
     *
     * @return whether there were any
     */
    public boolean cancelClaims() throws SQLException {
        boolean any = false;
        for (Statement statement : claiming) {
            any = true;
            if (cancelled.add(statement)) {
                statement.cancel();
            } else {
                statement.getConnection().unwrap(PGConnection.class).cancelQuery();
            }
        }
        return any;
    }

    private static @Nullable Array runs(
            Connection connection, Tasks tasks, Integer[] taskIds, ToIntFunction<String> runOfTask)
            throws SQLException {
        Integer[] runs = new Integer[taskIds.length];
        boolean allSingle = true;
        for (int i = 0; i < runs.length; i++) {
            runs[i] = runOfTask.applyAsInt(
                    Objects.requireNonNull(tasks.identifiers().get(taskIds[i])));
            allSingle &= runs[i] <= 1;
        }
        return allSingle ? null : connection.createArrayOf("int4", runs);
    }

    private static final String COMPLETE = "select outcome, " + JOB_COLUMNS
            + " from {schema}.pgworker_complete(worker_id => ?, job_ids => ?, claims => ?, claim_numbers => ?,"
            + " task_ids => ?, wanted => ?, forbidden => ?, aheads => ?, going_on => ?, addresses => ?::pg_catalog.tid[], renewals => ?, most_bytes => ?, "
            + QUEUE_START + ")";

    /**
     * What a completion does beside deleting the jobs: it claims the next jobs of their queues as the lanes say, and frees the
     * queues that do not go on.
     *
     * @param mostBytes as in {@link ClaimRequest}
     * @param forbidden as in {@link ClaimRequest}
     * @param queueStart as in {@link ClaimRequest}
     */
    public record Continuation(
            Tasks tasks,
            Lanes lanes,
            long mostBytes,
            Collection<String> forbidden,
            @Nullable QueueStart queueStart) {

        /** Looks at all jobs. */
        public Continuation(Tasks tasks, Lanes lanes, long mostBytes, Collection<String> forbidden) {
            this(tasks, lanes, mostBytes, forbidden, null);
        }
    }

    /**
     * Deletes the jobs that these claims still hold, and goes on as the continuation says.
     *
     * @param done no job twice; faster in ascending order of their ids
     */
    public Completion complete(List<Job> done, Continuation next, Locks locks) throws SQLException {
        return call(COMPLETE, (connection, statement) -> complete(connection, statement, done, next, locks));
    }

    /**
     * As {@link #complete(List, Continuation, Locks)}, in the transaction of the given connection and without ending it.
     */
    public Completion complete(Connection connection, Job done, Continuation next, Locks locks) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(schema.in(COMPLETE))) {
            return complete(connection, statement, List.of(done), next, locks);
        }
    }

    /**
     * What a write of outcomes does with the queues of the jobs.
     *
     * @param aheads how many jobs to claim of the queue of each job, in the order of the jobs; empty for none at all
     * @param goingOn ids of the jobs whose queue stays locked because this worker has more jobs of it
     */
    public record Lanes(List<Integer> aheads, List<Long> goingOn) {

        /** For jobs without queues. */
        public static final Lanes NONE = new Lanes(List.of(), List.of());

        /** Returns these lanes without any claims. */
        public Lanes withoutClaims() {
            return new Lanes(Collections.nCopies(aheads.size(), 0), goingOn);
        }

        /** Returns true if any job is to be claimed. */
        public boolean claims() {
            return wanted() > 0;
        }

        private int wanted() {
            return aheads.stream().mapToInt(Integer::intValue).sum();
        }
    }

    private static final String AWAIT_ROW = """
            select id from {schema}._private_jobs where id = ? for update
            """;

    /** Waits, in the transaction of the given connection, until no other transaction changes the job's row. */
    public void awaitRow(Connection connection, Job job) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(schema.in(AWAIT_ROW))) {
            statement.setLong(1, job.id());
            statement.executeQuery().close();
        }
    }

    private Completion complete(
            Connection connection, PreparedStatement statement, List<Job> done, Continuation next, Locks locks)
            throws SQLException {
        Lanes lanes = next.lanes;
        int wanted = lanes.wanted();
        statement.setString(1, workerId);
        statement.setArray(2, ids(connection, done.stream().map(Job::id)));
        setClaims(connection, statement, done, locks);
        statement.setArray(5, connection.createArrayOf("int4", next.tasks.ids()));
        statement.setInt(6, wanted);
        statement.setArray(7, wanted == 0 ? null : texts(connection, next.forbidden));
        statement.setArray(
                8,
                lanes.aheads.isEmpty() ? null : connection.createArrayOf("int4", lanes.aheads.toArray(Integer[]::new)));
        statement.setArray(9, lanes.goingOn.isEmpty() ? null : ids(connection, lanes.goingOn.stream()));
        statement.setString(10, addresses(done));
        statement.setArray(11, times(connection, done, job -> locks.pending(Claim.of(job))));
        statement.setLong(12, next.mostBytes);
        QueueStart.set(statement, 13, next.queueStart);
        Completion completion = new Completion(new Claimed(), new HashMap<>());
        try (ResultSet rows = statement.executeQuery()) {
            Rows reader = new Rows(next.tasks, 2);
            while (rows.next()) {
                String outcome = rows.getString(1);
                if (outcome.equals("claimed")) {
                    boolean unused = reader.read(rows, completion.claimed);
                } else {
                    completion.unwritten.put(rows.getLong(2), Written.of(outcome));
                    addresses.forget(rows.getLong(2));
                }
            }
        }
        return completion;
    }

    /** A group consists of few claims, whose times take the server longer to read than their numbers. */
    private static void setClaims(Connection connection, PreparedStatement statement, List<Job> jobs, Locks locks)
            throws SQLException {
        Map<Instant, Integer> numbers = new LinkedHashMap<>();
        Integer[] ofJobs = new Integer[jobs.size()];
        @Nullable Instant last = null;
        for (int i = 0; i < ofJobs.length; i++) {
            Instant time = locks.current(Claim.of(jobs.get(i)));
            ofJobs[i] =
                    time.equals(last) ? ofJobs[i - 1] : numbers.computeIfAbsent(time, unknown -> numbers.size() + 1);
            last = time;
        }
        statement.setArray(3, times(connection, List.copyOf(numbers.keySet()), time -> time));
        statement.setArray(4, numbers.size() == 1 ? null : connection.createArrayOf("int4", ofJobs));
    }

    private static final String RELEASE = """
            select id, outcome from {schema}.pgworker_release(worker_id => ?, job_ids => ?, claims => ?, actions => ?, delays => ?,
              run_ats => ?, errors => ?, keys => ?, attempts => ?, payloads => ?, going_on => ?, renewals => ?,
              lane_queues => ?, lane_levels => ?, lane_run_ats => ?, lane_ids => ?)
            """;

    /**
     * Gives jobs up that did not succeed, as each release says, where these claims still hold them, and frees the queues that
     * do not go on.
     *
     * @param releases no job twice
     * @param queueStart as in {@link ClaimRequest}
     * @return what has become of each, by its id
     */
    public Map<Long, Written> release(
            List<Release> releases, List<Long> goingOn, Locks locks, @Nullable QueueStart queueStart)
            throws SQLException {
        return call(RELEASE, (connection, statement) -> {
            statement.setString(1, workerId);
            statement.setArray(2, ids(connection, releases.stream().map(r -> r.claim.jobId)));
            statement.setArray(3, times(connection, releases, r -> locks.current(r.claim)));
            statement.setArray(4, array(connection, "text", releases, r -> r.action.sqlName));
            statement.setArray(5, array(connection, "float8", releases, Release::delaySeconds));
            statement.setArray(6, times(connection, releases, Release::runAt));
            statement.setArray(7, array(connection, "text", releases, Release::error));
            statement.setArray(8, array(connection, "text", releases, Release::key));
            statement.setArray(9, array(connection, "int4", releases, Release::attempts));
            statement.setArray(10, array(connection, "text", releases, Release::payload));
            statement.setArray(11, goingOn.isEmpty() ? null : ids(connection, goingOn.stream()));
            statement.setArray(12, times(connection, releases, r -> locks.pending(r.claim)));
            QueueStart.set(statement, 13, queueStart);
            Map<Long, Written> outcomes = new HashMap<>();
            try (ResultSet rows = statement.executeQuery()) {
                while (rows.next()) {
                    outcomes.put(rows.getLong(1), Written.of(rows.getString(2)));
                }
            }
            return outcomes;
        });
    }

    private static final String WRITE_NOTHING = """
            with deleted as (delete from {schema}._private_jobs where id = -1),
            updated as (update {schema}._private_jobs set locked_at = null, locked_by = null where id = -2)
            select
            """;

    /** Does to no job what writes of outcomes do; where that succeeds, it is the rows of jobs that keep these from it. */
    public void writeNothing() throws SQLException {
        complete(List.of(), new Continuation(Tasks.NONE, Lanes.NONE, 1, List.of()), Locks.UNCHANGED);
        release(List.of(), List.of(), Locks.UNCHANGED, null);
        call(WRITE_NOTHING, (connection, statement) -> statement.execute());
    }

    private static final String FREE = """
            select {schema}.pgworker_free(worker_id => ?, queue_names => ?, locked_ats => ?)
            """;

    /** Frees queues of which this worker has no job. */
    public void free(Collection<String> queueNames) throws SQLException {
        call(FREE, (connection, statement) -> {
            statement.setString(1, workerId);
            statement.setArray(2, connection.createArrayOf("text", queueNames.toArray()));
            statement.setArray(3, null);
            return statement.execute();
        });
    }

    /** Frees queues that this worker still has locked since the given times. */
    public void free(List<HeldQueue> queues) throws SQLException {
        call(FREE, (connection, statement) -> {
            statement.setString(1, workerId);
            statement.setArray(2, array(connection, "text", queues, HeldQueue::name));
            statement.setArray(3, times(connection, queues, HeldQueue::lockedAt));
            return statement.execute();
        });
    }

    private static final String HELD = """
            select j.id, j.locked_at, j.key, q.queue_name
            from {schema}._private_jobs j
            left join {schema}._private_job_queues q on q.id = j.job_queue_id
            where j.locked_by = ?::pg_catalog.text
            """;

    /** A job that the database says this worker holds. */
    public record Held(
            Claim claim, @Nullable String key, @Nullable String queueName) {}

    /**
     * Reads which jobs this worker holds. Reads the whole table, and takes no lock.
     *
     * @param limit how long the database may take
     */
    public List<Held> held(Duration limit) throws SQLException {
        return Connections.call(dataSource, schema.in(HELD), limit, (connection, statement) -> {
            statement.setString(1, workerId);
            List<Held> held = new ArrayList<>();
            try (ResultSet rows = statement.executeQuery()) {
                while (rows.next()) {
                    Claim claim = new Claim(rows.getLong(1), JobRows.instant(rows, 2));
                    held.add(new Held(claim, rows.getString(3), rows.getString(4)));
                }
            }
            return held;
        });
    }

    private static final String STILL_HELD = """
            select g.id, j.locked_at
            from pg_catalog.unnest(?::bigint[]) g(id)
            join {schema}._private_jobs j on j.id = g.id and j.locked_by = ?::pg_catalog.text
            """;

    /** Returns those of the claims by which this worker still holds their jobs. */
    public Set<Claim> stillHeld(Collection<Claim> claims, Locks locks) throws SQLException {
        return call(STILL_HELD, (connection, statement) -> {
            statement.setArray(1, ids(connection, claims.stream().map(Claim::jobId)));
            statement.setString(2, workerId);
            Map<Long, Instant> times = new HashMap<>();
            try (ResultSet rows = statement.executeQuery()) {
                while (rows.next()) {
                    times.put(rows.getLong(1), JobRows.instant(rows, 2));
                }
            }
            Set<Claim> held = new HashSet<>();
            for (Claim claim : claims) {
                Instant lockedAt = times.get(claim.jobId);
                if (lockedAt != null && locks.get(claim).has(lockedAt)) {
                    held.add(claim);
                }
            }
            return held;
        });
    }

    private static final String RENEW = """
            select {schema}.pgworker_renew(worker_id => ?, job_ids => ?, claims => ?, renewals => ?)
            """;

    /**
     * Gives the locks of these claims, and of their queues, their pending times, as far as the worker still holds them and
     * nobody else has locked their rows.
     *
     * @return the ids of the jobs whose locks have these times
     */
    public Set<Long> renew(List<Claim> claims, Locks locks) throws SQLException {
        return call(RENEW, (connection, statement) -> {
            statement.setString(1, workerId);
            statement.setArray(2, ids(connection, claims.stream().map(Claim::jobId)));
            statement.setArray(3, times(connection, claims, locks::current));
            statement.setArray(4, times(connection, claims, locks::pending));
            Set<Long> renewed = new HashSet<>();
            try (ResultSet rows = statement.executeQuery()) {
                while (rows.next()) {
                    renewed.add(rows.getLong(1));
                }
            }
            return renewed;
        });
    }

    private static final String HELD_QUEUES = """
            select queue_name, locked_at from {schema}._private_job_queues where locked_by = ?::pg_catalog.text
            """;

    /** A queue that the database says this worker has locked, and since when. */
    public record HeldQueue(String name, Instant lockedAt) {}

    /**
     * Reads which queues this worker has locked. Reads the whole table of queues, and takes no lock.
     *
     * @param limit how long the database may take
     */
    public List<HeldQueue> heldQueues(Duration limit) throws SQLException {
        return Connections.call(dataSource, schema.in(HELD_QUEUES), limit, (connection, statement) -> {
            statement.setString(1, workerId);
            List<HeldQueue> queues = new ArrayList<>();
            try (ResultSet rows = statement.executeQuery()) {
                while (rows.next()) {
                    queues.add(new HeldQueue(rows.getString(1), JobRows.instant(rows, 2)));
                }
            }
            return queues;
        });
    }

    private static final String WAITS = """
            select {schema}.pgworker_waits(task_ids => ?, forbidden => ?, longer_than => ?::double precision * interval '1 second')
            """;

    /** Returns whether a job that this worker may run has been due for longer than that. */
    public boolean waits(Tasks tasks, Collection<String> forbidden, Duration longerThan) throws SQLException {
        return call(WAITS, (connection, statement) -> {
            statement.setArray(1, connection.createArrayOf("int4", tasks.unqueuedIds()));
            statement.setArray(2, texts(connection, forbidden));
            statement.setDouble(3, longerThan.toNanos() / 1e9);
            try (ResultSet row = statement.executeQuery()) {
                row.next();
                return row.getBoolean(1);
            }
        });
    }

    private static final String NEXT_DUE = """
            select {schema}.pgworker_next_due(task_ids => ?, elapsed => ?, levels => ?, lane_levels => ?)
            """;

    /**
     * Returns how long it takes, by the database's clock, until the next job of these tasks is due that was not due yet
     * at a moment in the past: negative if it fell due since, null if there is none.
     *
     * @param elapsed the time since that moment, which should lie just before the last claim
     * @param levels the priorities of jobs without a queue to look at; null to look at all
     */
    public @Nullable Duration nextDue(Tasks tasks, Duration elapsed, @Nullable Collection<Integer> levels)
            throws SQLException {
        return nextDue(tasks, elapsed, levels, null);
    }

    /**
     * As {@link #nextDue(Tasks, Duration, Collection)}.
     *
     * @param queueLevels the priorities of jobs of queues to look at; null to look at all
     */
    public @Nullable Duration nextDue(
            Tasks tasks,
            Duration elapsed,
            @Nullable Collection<Integer> levels,
            @Nullable Collection<Integer> queueLevels)
            throws SQLException {
        return this.<@Nullable Duration>call(NEXT_DUE, (connection, statement) -> {
            statement.setArray(1, connection.createArrayOf("int4", tasks.ids()));
            statement.setDouble(2, elapsed.toNanos() / 1e9);
            statement.setArray(
                    3, levels == null ? null : connection.createArrayOf("int4", levels.toArray(Integer[]::new)));
            statement.setArray(
                    4,
                    queueLevels == null ? null : connection.createArrayOf("int4", queueLevels.toArray(Integer[]::new)));
            try (ResultSet row = statement.executeQuery()) {
                row.next();
                double seconds = row.getDouble(1);
                return row.wasNull() ? null : Duration.ofNanos((long) Math.min(seconds * 1e9, 1e18));
            }
        });
    }

    private static final String DUE_TIMES = """
            select level, seconds from {schema}.pgworker_due_times(task_ids => ?, since => ?::pg_catalog.timestamptz, levels => ?)
            """;

    /**
     * As {@link #nextDue}, for each of these priorities, and for jobs without a queue alone.
     *
     * @param since the moment in the past
     * @return the priorities at which a job is to become due
     */
    public Map<Integer, Duration> dueTimes(Tasks tasks, Instant since, Collection<Integer> levels) throws SQLException {
        return call(DUE_TIMES, (connection, statement) -> {
            statement.setArray(1, connection.createArrayOf("int4", tasks.ids()));
            statement.setString(2, Timestamps.text(since));
            statement.setArray(3, connection.createArrayOf("int4", levels.toArray(Integer[]::new)));
            Map<Integer, Duration> due = new HashMap<>();
            try (ResultSet rows = statement.executeQuery()) {
                while (rows.next()) {
                    due.put(rows.getInt(1), Duration.ofNanos((long) Math.min(rows.getDouble(2) * 1e9, 1e18)));
                }
            }
            return due;
        });
    }

    private static final String LOOK_BELOW = """
            select levels, strays from {schema}.pgworker_look_below(
              task_ids => ?, forbidden => ?, floor_levels => ?, floor_run_ats => ?, floor_ids => ?, most_levels => ?, most_strays => ?)
            """;

    /**
     * What there is that claims pass over which begin at floors.
     *
     * @param levels the priorities of jobs without a queue, due or not
     * @param strays ids of due jobs below the floors
     */
    public record Below(List<Integer> levels, List<Long> strays) {}

    /**
     * Looks for what claims pass over that begin so. Takes long where much is left of finished jobs.
     *
     * @param forbidden flags whose jobs are passed over
     */
    public Below lookBelow(Tasks tasks, Collection<String> forbidden, Start start, int mostLevels, int mostStrays)
            throws SQLException {
        return call(LOOK_BELOW, (connection, statement) -> {
            statement.setArray(1, connection.createArrayOf("int4", tasks.unqueuedIds()));
            statement.setArray(2, texts(connection, forbidden));
            statement.setArray(3, connection.createArrayOf("int4", start.levels()));
            statement.setArray(4, start.runAts(connection));
            statement.setArray(5, start.ids(connection));
            statement.setInt(6, mostLevels);
            statement.setInt(7, mostStrays);
            try (ResultSet row = statement.executeQuery()) {
                row.next();
                return new Below(List.of((Integer[]) row.getArray(1).getArray()), List.of((Long[])
                        row.getArray(2).getArray()));
            }
        });
    }

    private static final String LOOK_AT_QUEUES =
            "select queue_id, queue_name, level, run_at, id from {schema}.pgworker_look_at_queues("
                    + "task_ids => ?, forbidden => ?, most_levels => ?, most_lanes => ?, " + QUEUE_START + ")";

    /**
     * Looks for where the jobs of queues are. Without floors to begin from it takes long where much is left of finished jobs.
     *
     * @param forbidden flags whose jobs are passed over by claims
     * @param mostLanes how many queues may have floors of their own
     * @param from where to begin; null for the first entry
     * @return floors below which there are no jobs, or none that are not below those to begin from; null if there are too many priorities
     */
    public @Nullable QueueStart lookAtQueues(
            Tasks tasks, Collection<String> forbidden, int mostLevels, int mostLanes, @Nullable QueueStart from)
            throws SQLException {
        return this.<@Nullable QueueStart>call(LOOK_AT_QUEUES, (connection, statement) -> {
            statement.setArray(1, connection.createArrayOf("int4", tasks.ids()));
            statement.setArray(2, texts(connection, forbidden));
            statement.setInt(3, mostLevels);
            statement.setInt(4, mostLanes);
            QueueStart.set(statement, 5, from);
            List<QueueStart.Floor> floors = new ArrayList<>();
            try (ResultSet rows = statement.executeQuery()) {
                while (rows.next()) {
                    if (rows.getInt(1) < 0) {
                        return null;
                    }
                    Instant runAt = JobRows.instant(rows, 4);
                    long id = rows.getLong(5);
                    floors.add(new QueueStart.Floor(
                            rows.getInt(1),
                            rows.getString(2),
                            rows.getInt(3),
                            new Place(runAt, rows.wasNull() ? Long.MIN_VALUE : id)));
                }
            }
            return new QueueStart(floors);
        });
    }

    /**
     * What a completion did.
     *
     * @param claimed the next jobs of the queues that became free
     * @param unwritten the jobs that were not deleted, by their ids
     */
    public record Completion(Claimed claimed, Map<Long, Written> unwritten) {}

    /** What the database has made of an outcome. */
    public enum Written {
        /** The job runs again, and the attempt counts. */
        RETRIED,
        /** The job has failed permanently. */
        FAILED,
        /** The job runs again, and the attempt does not count. */
        BACK,
        /** The job was superseded or removed by its key while it ran, and never runs again. */
        SUPERSEDED,
        /** The job is this claim's, but another transaction has locked its row: write it again. */
        BUSY,
        /** The job is not this claim's any more. */
        LOST,
        /** There is no such job. */
        GONE;

        private static Written of(String name) {
            return valueOf(name.toUpperCase(Locale.ROOT));
        }
    }

    /** What becomes of a job that did not succeed. */
    public enum ReleaseAction {
        /** It runs again after a delay, and the attempt counts. */
        RETRY("retry"),
        /** It has failed permanently. */
        FAIL("fail"),
        /** It runs again, and the attempt does not count. */
        BACK("back");

        private final String sqlName;

        ReleaseAction(String sqlName) {
            this.sqlName = sqlName;
        }
    }

    /**
     * A job to give up.
     *
     * @param claim by which it is held
     * @param key the key that the job had when it was claimed
     * @param attempts the attempts that it had when it was claimed; null to take those in the database
     * @param action what becomes of it
     * @param when when it may run again; null for the usual back-off ({@code RETRY}) or at once ({@code BACK})
     * @param error what to write to {@code last_error}; null to leave it
     * @param payload what to write to {@code payload}; null to leave it
     */
    public record Release(
            Claim claim,
            @Nullable String key,
            @Nullable Integer attempts,
            ReleaseAction action,
            @Nullable When when,
            @Nullable String error,
            @Nullable String payload) {

        /** Gives a job up as it was claimed. */
        public static Release of(
                Job job, ReleaseAction action, @Nullable When when, @Nullable String error, @Nullable String payload) {
            return new Release(Claim.of(job), job.key(), job.attempts(), action, when, error, payload);
        }

        /** Returns this release with another error. */
        public Release withError(@Nullable String other) {
            return new Release(claim, key, attempts, action, when, other, payload);
        }

        private @Nullable Double delaySeconds() {
            return when == null || when.delay == null ? null : when.delay.getSeconds() + when.delay.getNano() / 1e9;
        }

        private @Nullable Instant runAt() {
            return when == null ? null : when.at;
        }
    }

    /**
     * A time in the future: one of the two is set.
     *
     * @param delay the time from the database's present, not negative
     * @param at the instant itself
     */
    public record When(@Nullable Duration delay, @Nullable Instant at) {

        /** So long that the database can still add it to its time. */
        private static final Duration LONGEST = Duration.ofDays(365L * 250_000);

        /**
         * Checks that the database can hold the time.
         *
         * @throws IllegalArgumentException if it cannot
         */
        public When {
            Arguments.requireInstant("The time of the next run", at);
            if (delay != null && (delay.isNegative() || delay.compareTo(LONGEST) > 0)) {
                throw new IllegalArgumentException("The time until the next run must be between 0 and "
                        + LONGEST.toDays() + " days, but is " + delay);
            }
        }

        /** Returns the time after a delay. */
        public static When in(Duration delay) {
            return new When(delay, null);
        }
    }

    /** Reads the rows of one answer, all of which have been claimed at the same time. */
    private final class Rows {

        private final Tasks tasks;
        private final int first;
        private @Nullable Instant lockedAt;
        private @Nullable String passedOver;

        Rows(Tasks tasks, int first) {
            this.tasks = tasks;
            this.first = first;
        }

        /** Returns false for the row that stands for jobs that have not been claimed. */
        boolean read(ResultSet row, Claimed claimed) throws SQLException {
            long id = row.getLong(first);
            if (row.wasNull()) {
                Instant at = JobRows.nullableInstant(row, first + 15);
                lockedAt = at == null ? lockedAt : at;
                passedOver = row.getString(first + 1);
                return at != null;
            }
            if (lockedAt == null) {
                lockedAt = JobRows.instant(row, first + 15);
            }
            try {
                Job job = job(row, id, lockedAt);
                addresses.put(id, row.getString(first + 14));
                // Last: a job is in one list or in the other.
                claimed.jobs.add(job);
            } catch (SQLException | RuntimeException | Error e) {
                claimed.unreadable.add(new Unreadable(unreadable(row, id, lockedAt), e));
            }
            return true;
        }

        private Job job(ResultSet row, long id, Instant lockedAt) throws SQLException {
            int taskId = row.getInt(first + 2);
            String task = tasks.identifiers().get(taskId);
            if (task == null) {
                throw new IllegalStateException(
                        "The database handed out a job of task id " + taskId + ", which this worker did not ask for");
            }
            Instant runAt = JobRows.instant(row, first + 5);
            Instant createdAt = JobRows.instant(row, first + 9, runAt);
            return new Job(
                    id,
                    task,
                    Objects.requireNonNullElse(row.getString(first + 3), NO_PAYLOAD),
                    row.getString(first + 1),
                    row.getInt(first + 4),
                    runAt,
                    row.getInt(first + 6),
                    row.getInt(first + 7),
                    row.getString(first + 8),
                    createdAt,
                    JobRows.instant(row, first + 10, createdAt),
                    row.getString(first + 11),
                    lockedAt,
                    workerId,
                    row.getInt(first + 12),
                    JobRows.flags(row, first + 13));
        }

        /** Reads what it takes to give a job up. */
        private Job unreadable(ResultSet row, long id, Instant lockedAt) throws SQLException {
            int taskId = row.getInt(first + 2);
            return new Job(
                    id,
                    tasks.nameOf(taskId),
                    NO_PAYLOAD,
                    row.getString(first + 1),
                    row.getInt(first + 4),
                    Instant.EPOCH,
                    row.getInt(first + 6),
                    row.getInt(first + 7),
                    null,
                    Instant.EPOCH,
                    Instant.EPOCH,
                    row.getString(first + 11),
                    lockedAt,
                    workerId,
                    row.getInt(first + 12),
                    Set.of());
        }
    }

    private static final String NO_PAYLOAD = "null";

    private static @Nullable Array texts(Connection connection, Collection<String> texts) throws SQLException {
        return texts.isEmpty() ? null : connection.createArrayOf("text", texts.toArray());
    }

    /** As text, because the driver would ask the database for the number of the type. */
    private @Nullable String addresses(List<Job> jobs) {
        String[] known = jobs.size() <= 1 ? null : addresses.ofAll(jobs);
        return known == null ? null : "{\"" + String.join("\",\"", known) + "\"}";
    }

    private static Array ids(Connection connection, Stream<Long> ids) throws SQLException {
        // The driver sends arrays of these types as they are, and those of objects as text.
        return connection.createArrayOf("int8", ids.toArray(Long[]::new));
    }

    /** Returns null where there is no time at all. */
    private static <T> @Nullable Array times(
            Connection connection, List<T> elements, Function<T, @Nullable Instant> time) throws SQLException {
        @Nullable String[] texts = new @Nullable String[elements.size()];
        @Nullable Instant last = null;
        @Nullable String text = null;
        boolean any = false;
        for (int i = 0; i < texts.length; i++) {
            Instant instant = time.apply(elements.get(i));
            if (instant != null && !instant.equals(last)) {
                text = Timestamps.text(instant);
                last = instant;
                any = true;
            }
            texts[i] = instant == null ? null : text;
        }
        return any ? connection.createArrayOf("timestamptz", texts) : null;
    }

    private static <T> Array array(
            Connection connection, String type, List<T> elements, Function<T, @Nullable Object> value)
            throws SQLException {
        @Nullable Object[] values = new @Nullable Object[elements.size()];
        for (int i = 0; i < values.length; i++) {
            values[i] = value.apply(elements.get(i));
        }
        return connection.createArrayOf(type, values);
    }

    private <T extends @Nullable Object> T call(String sql, Call<T> call) throws SQLException {
        return answerLimit.call(dataSource, schema.in(sql), call);
    }

    /** Binds and runs a statement and reads its result. */
    @FunctionalInterface
    interface Call<T extends @Nullable Object> {
        T on(Connection connection, PreparedStatement statement) throws SQLException;
    }
}
