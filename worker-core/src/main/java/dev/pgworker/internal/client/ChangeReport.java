package dev.pgworker.internal.client;

import java.util.Collection;
import java.util.List;

import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;

import dev.pgworker.event.WorkerEvent;
import dev.pgworker.internal.argument.LogText;
import dev.pgworker.internal.event.WorkerEvents;
import dev.pgworker.internal.failure.WorkerLog;
import dev.pgworker.internal.jdbc.ClientConnections;
import dev.pgworker.job.DeadWorker;

/**
 * Reports what has been changed by hand and in whose name, when it is committed: as a line in the log and as an event.
 */
final class ChangeReport {

    private static final Logger log = WorkerLog.of(ChangeReport.class);

    private static final int MOST_LOGGED = 20;
    private static final int MOST_TOLD = 1_000;

    private final WorkerEvents events;
    private final @Nullable String user;

    ChangeReport(WorkerEvents events, @Nullable String user) {
        this.events = events;
        this.user = user;
    }

    /** Reports in the name of another user. */
    ChangeReport of(String other) {
        return new ChangeReport(events, other);
    }

    /** Returns in whose name it reports; null if no name was given. */
    @Nullable String user() {
        return user;
    }

    /** Reports jobs, unless there are none. */
    void jobs(ChangeStatement change, List<Long> ids) {
        if (!ids.isEmpty()) {
            ClientConnections.afterCommit(() -> {
                log(change, ids.size(), ids);
                publish(change.action(), ids, ids.size());
            });
        }
    }

    /** Writes a line about jobs of which some are named. */
    void log(ChangeStatement change, int count, List<Long> first) {
        List<Long> some = first.subList(0, Math.min(MOST_LOGGED, first.size()));
        log.info(
                "{} {} {}{}: {}{}",
                count,
                count == 1 ? "job" : "jobs",
                change.participle(),
                by(),
                some,
                count > some.size() ? " and " + (count - some.size()) + " more" : "");
    }

    /**
     * Reports something else.
     *
     * @param sentence what has been done, to which the names belong
     */
    void other(String action, String sentence, Collection<String> names, List<Long> jobIds, long count) {
        ClientConnections.afterCommit(() -> {
            log.info("{}{}: {}", sentence, by(), LogText.visible(names.toString()));
            publish(action, jobIds, count);
        });
    }

    /** Publishes an event. */
    void publish(String action, List<Long> ids, long count) {
        events.publish(new WorkerEvent.JobsChanged(
                DeadWorker.BY_HAND, action, ids.subList(0, Math.min(MOST_TOLD, ids.size())), count, user));
    }

    private String by() {
        return user == null ? " by hand" : " by user \"" + LogText.visible(user) + "\"";
    }
}
