package dev.pgworker.cli;

import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Collectors;
import java.util.stream.Stream;

import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

import dev.pgworker.job.Cancellation;
import dev.pgworker.job.Cancellation.State;
import dev.pgworker.job.JobChanges;
import dev.pgworker.job.JobCounts;
import dev.pgworker.job.JobQuery;

/** Cancels jobs by their keys, their ids or what they are, and waits for the end of those that run if it is told to. */
@Command(
        name = "cancel",
        description = {
            "Cancel jobs by their job keys, running ones included: their handlers are interrupted, and they never run again.",
            "With --id, a filter or --all, cancel these jobs."
        },
        footer = {"  worker-cli cancel welcome:42 --yes", "  worker-cli cancel --task export --state running --yes"})
final class CancelCommand extends SessionCommand {

    private static final int PORTION = 1000;

    /** Of more jobs that match, the rest is left for the next time. */
    private static final int MOST = 1_000_000;

    @Parameters(paramLabel = "KEY", arity = "0..*", description = "Job keys.")
    private List<String> keys = new ArrayList<>();

    @Option(
            names = "--id",
            paramLabel = "ID",
            split = ",",
            description = "Ids of jobs, with commas between; - reads them from standard input.")
    private List<String> ids = new ArrayList<>();

    @Mixin
    private JobFilters filters = new JobFilters();

    @Option(names = "--all", description = "All jobs, if there is neither a key, an id nor a filter.")
    private boolean all;

    @Option(
            names = "--wait",
            paramLabel = "DURATION",
            converter = Times.DurationConverter.class,
            description =
                    "Wait so long for the end of jobs that run, and tell what became of them; such as 30s, at most 1d.")
    private @Nullable Duration wait;

    @Mixin
    private Confirmation confirmation = new Confirmation();

    CancelCommand(Session session) {
        super(session);
    }

    @Override
    public Integer call() {
        boolean filtered = !filters.isEmpty() || all;
        long ways = Stream.of(!keys.isEmpty(), !ids.isEmpty(), filtered)
                .filter(given -> given)
                .count();
        if (ways != 1) {
            throw CommandFailure.usage("Give either KEY, --id, filters (" + JobFilters.NAMES + ") or --all");
        }
        if (wait != null && wait.compareTo(Duration.ofDays(1)) > 0) {
            throw CommandFailure.usage("--wait must be at most 1d, but is " + Text.duration(wait));
        }
        JobChanges changes = session.changes();
        if (filtered) {
            return cancelMatching(changes, filters.query(null));
        }
        return keys.isEmpty() ? cancelIds(changes, JobSelection.ids(ids, session.terminal())) : cancelKeys(changes);
    }

    private int cancelKeys(JobChanges changes) {
        confirmation.require(session.terminal(), "Cancel " + Text.count(keys.size(), "job") + " by key");
        List<Cancellation> answers = new ArrayList<>();
        List<String> unknown = new ArrayList<>();
        for (String key : keys) {
            Optional<Cancellation> answer = changes.cancel(key);
            answer.ifPresentOrElse(answers::add, () -> unknown.add(key));
        }
        boolean over = tell(awaited(changes, answers), unknown);
        unknown.forEach(key -> session.say("No job with key " + Text.line(key)));
        return unknown.isEmpty() ? (over ? ExitStatus.OK : ExitStatus.FAILED) : ExitStatus.NOT_FOUND;
    }

    private int cancelIds(JobChanges changes, List<Long> given) {
        confirmation.require(session.terminal(), "Cancel " + Text.count(given.size(), "job"));
        List<Cancellation> answers = new ArrayList<>();
        for (int from = 0; from < given.size(); from += PORTION) {
            answers.addAll(changes.cancel(given.subList(from, Math.min(given.size(), from + PORTION))));
        }
        boolean over = tell(awaited(changes, answers), List.of());
        boolean gone = answers.stream().anyMatch(answer -> answer.state() == State.GONE);
        return gone ? ExitStatus.NOT_FOUND : (over ? ExitStatus.OK : ExitStatus.FAILED);
    }

    private int cancelMatching(JobChanges changes, JobQuery query) {
        JobCounts counts = session.queries().count(query);
        if (counts.total() > 0) {
            confirmation.require(
                    session.terminal(),
                    "Cancel " + Text.count(counts.total(), "job") + JobFilters.describe(query)
                            + (counts.running() == 0 ? "" : ", of which " + counts.running() + " are running"));
        }
        dev.pgworker.job.JobSelection selected = session.queries().select(query, MOST);
        List<Cancellation> answers = new ArrayList<>();
        for (int from = 0; from < selected.ids().size(); from += PORTION) {
            answers.addAll(changes.cancel(
                    selected.ids().subList(from, Math.min(selected.ids().size(), from + PORTION))));
        }
        boolean over = tell(awaited(changes, answers), List.of());
        if (!selected.complete()) {
            session.say("More jobs match: run it again.");
        }
        return over ? ExitStatus.OK : ExitStatus.FAILED;
    }

    /** Waits for those that run, if the user wants it. */
    private List<Cancellation> awaited(JobChanges changes, List<Cancellation> answers) {
        List<Long> running = answers.stream()
                .filter(answer -> answer.state().isOpen())
                .map(Cancellation::jobId)
                .toList();
        if (wait == null || running.isEmpty()) {
            return answers;
        }
        Map<Long, Cancellation> ends = changes.awaitCancellations(running, wait).stream()
                .collect(Collectors.toMap(Cancellation::jobId, end -> end));
        return answers.stream()
                .map(answer -> ends.getOrDefault(answer.jobId(), answer))
                .toList();
    }

    /** Returns whether what was waited for has ended. */
    private boolean tell(List<Cancellation> answers, List<String> unknown) {
        if (session.isJson()) {
            session.writeJson(Json.object(
                    "count",
                    answers.stream()
                            .filter(answer -> answer.state() != State.GONE)
                            .count(),
                    "cancellations",
                    answers.stream().map(CancelCommand::json).toList(),
                    "unknown",
                    keys.isEmpty() ? null : unknown));
        } else {
            Map<State, Long> counts = answers.stream()
                    .collect(Collectors.groupingBy(Cancellation::state, LinkedHashMap::new, Collectors.counting()));
            for (State state : State.values()) {
                long count = counts.getOrDefault(state, 0L);
                if (count > 0) {
                    session.say(Text.count(count, "job") + " " + said(state, count == 1));
                }
            }
            if (answers.isEmpty() && unknown.isEmpty()) {
                session.say("No job matches.");
            }
        }
        return wait == null
                || answers.stream().noneMatch(answer -> answer.state().isOpen());
    }

    private static Map<String, Object> json(Cancellation answer) {
        return Json.object(
                "id", answer.jobId(),
                "state", answer.state().name().toLowerCase(Locale.ROOT),
                "requestedAt", answer.requestedAt(),
                "requestedBy", answer.requestedBy(),
                "workerId", answer.workerId());
    }

    private static String said(State state, boolean one) {
        return switch (state) {
            case REMOVED -> (one ? "was" : "were") + " waiting, and " + (one ? "is" : "are") + " removed.";
            case REQUESTED -> (one ? "is" : "are") + " running: the worker is told to end " + (one ? "it." : "them.");
            case MARKED ->
                (one ? "is" : "are") + " running in a worker that cannot be told, and " + (one ? "does" : "do")
                        + " not run again.";
            case CANCELLED -> (one ? "was" : "were") + " running, and " + (one ? "has" : "have") + " been cancelled.";
            case COMPLETED -> (one ? "was" : "were") + " running, and succeeded all the same.";
            case GONE -> "no longer " + (one ? "exists." : "exist.");
        };
    }
}
