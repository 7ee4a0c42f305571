package dev.pgworker.internal.crontab;

import java.time.Instant;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Collectors;

import org.jspecify.annotations.Nullable;

import dev.pgworker.crontab.CronAdmin;
import dev.pgworker.crontab.CronItem;
import dev.pgworker.crontab.CronItemStatus;
import dev.pgworker.internal.argument.Arguments;
import dev.pgworker.internal.client.CrontabControl;
import dev.pgworker.job.Job;
import dev.pgworker.job.JobRequest;
import dev.pgworker.job.JobScheduler;

/** Joins what an application plans with what the database knows. */
public final class PlannedCronAdmin implements CronAdmin {

    private final CronPlan plan;
    private final CrontabControl control;
    private final JobScheduler jobs;

    /**
     * Creates the administration for the items of one application.
     *
     * @param jobs adds the jobs of triggered items
     */
    public PlannedCronAdmin(CronPlan plan, CrontabControl control, JobScheduler jobs) {
        this.plan = plan;
        this.control = control;
        this.jobs = jobs;
    }

    @Override
    public List<CronItemStatus> list() {
        return List.copyOf(statuses().values());
    }

    @Override
    public Optional<CronItemStatus> find(String identifier) {
        return Optional.ofNullable(statuses().get(requireIdentifier(identifier)));
    }

    private Map<String, CronItemStatus> statuses() {
        Instant now = control.now();
        Map<String, CrontabControl.Entry> known = new LinkedHashMap<>();
        control.list().forEach(entry -> known.put(entry.identifier(), entry));
        Map<String, CronItemStatus> statuses = new LinkedHashMap<>();
        for (CronItem item : plan.items()) {
            statuses.put(item.identifier(), status(item, known.remove(item.identifier()), now));
        }
        known.values()
                .forEach(entry -> statuses.put(
                        entry.identifier(),
                        new CronItemStatus(
                                entry.identifier(),
                                null,
                                null,
                                entry.lastExecution(),
                                entry.since(),
                                entry.pausedAt())));
        return statuses;
    }

    private static CronItemStatus status(CronItem item, CrontabControl.@Nullable Entry entry, Instant now) {
        if (entry == null) {
            return new CronItemStatus(item.identifier(), item, item.nextDue(now), null, null, null);
        }
        Instant last = entry.lastExecution();
        Instant next = entry.pausedAt() != null ? null : item.nextDue(last == null || last.isBefore(now) ? now : last);
        return new CronItemStatus(item.identifier(), item, next, last, entry.since(), entry.pausedAt());
    }

    @Override
    public Job trigger(String identifier) {
        requireIdentifier(identifier);
        for (CronItem item : plan.items()) {
            if (item.identifier().equals(identifier)) {
                JobRequest job = plan.job(item, control.now(), false);
                return jobs.addJob(job.identifier(), job.payload(), job.spec());
            }
        }
        List<String> own = plan.items().stream().map(CronItem::identifier).toList();
        throw new IllegalArgumentException(
                "identifier \"" + identifier + "\" is not an item of this application's crontab, "
                        + (own.isEmpty() ? "which has none" : "which has " + quoted(own)));
    }

    @Override
    public boolean pause(String identifier) {
        requireKnown(identifier);
        return control.pause(identifier);
    }

    @Override
    public boolean resume(String identifier) {
        requireKnown(identifier);
        return control.resume(identifier);
    }

    @Override
    public boolean forget(String identifier) {
        requireKnown(identifier);
        if (plan.items().stream().anyMatch(item -> item.identifier().equals(identifier))) {
            throw new IllegalArgumentException("identifier \"" + identifier + "\" is an item of this application's"
                    + " crontab, which would register it again: remove it there first, and from the crontabs of other"
                    + " applications");
        }
        return control.forget(identifier);
    }

    private void requireKnown(String identifier) {
        requireIdentifier(identifier);
        List<String> known =
                new ArrayList<>(plan.items().stream().map(CronItem::identifier).toList());
        if (known.contains(identifier)) {
            return;
        }
        control.list().stream()
                .map(CrontabControl.Entry::identifier)
                .filter(other -> !known.contains(other))
                .forEach(known::add);
        if (!known.contains(identifier)) {
            throw new IllegalArgumentException("identifier \"" + identifier + "\" is not a known cron item; "
                    + (known.isEmpty() ? "there are none" : "there are " + quoted(known)));
        }
    }

    private static String requireIdentifier(@Nullable String identifier) {
        return Arguments.requireGivenText("identifier", identifier);
    }

    private static String quoted(Collection<String> identifiers) {
        return identifiers.stream().map(name -> "\"" + name + "\"").collect(Collectors.joining(", "));
    }
}
