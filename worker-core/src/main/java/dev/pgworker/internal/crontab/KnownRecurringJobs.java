package dev.pgworker.internal.crontab;

import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Supplier;

import org.jspecify.annotations.Nullable;
import tools.jackson.databind.node.ObjectNode;

import dev.pgworker.crontab.CronItem;
import dev.pgworker.internal.argument.Arguments;
import dev.pgworker.internal.client.CrontabControl;
import dev.pgworker.internal.client.ScheduleControl;
import dev.pgworker.job.Job;
import dev.pgworker.job.JobRequest;
import dev.pgworker.job.JobScheduler;
import dev.pgworker.schedule.RecurringJob;
import dev.pgworker.schedule.RecurringJob.Origin;
import dev.pgworker.schedule.RecurringJobs;
import dev.pgworker.schedule.RecurringQuery;
import dev.pgworker.schedule.Schedule;

/** Joins the schedules of the database, the register of crontabs' items, and the items of one application. */
public final class KnownRecurringJobs implements RecurringJobs {

    /** As the database compares names. */
    private static final Comparator<RecurringJob> BY_ID =
            Comparator.comparing(job -> job.id().getBytes(StandardCharsets.UTF_8), Arrays::compareUnsigned);

    private final ScheduleControl schedules;
    private final CrontabControl crontab;
    private final JobScheduler jobs;
    private final Supplier<CronPlan> plan;

    /**
     * Creates what knows the recurring jobs of a schema.
     *
     * @param jobs adds the jobs of triggered items
     * @param plan the items of the application; asked at each call
     */
    public KnownRecurringJobs(
            ScheduleControl schedules, CrontabControl crontab, JobScheduler jobs, Supplier<CronPlan> plan) {
        this.schedules = schedules;
        this.crontab = crontab;
        this.jobs = jobs;
        this.plan = plan;
    }

    @Override
    public RecurringJobs actingAs(String user) {
        return new KnownRecurringJobs(schedules.actingAs(user), crontab, jobs, plan);
    }

    @Override
    public RecurringJob create(Schedule schedule) {
        return schedules.create(schedule);
    }

    @Override
    public RecurringJob put(Schedule schedule) {
        return schedules.put(schedule);
    }

    @Override
    public boolean delete(String id) {
        if (schedules.delete(id)) {
            return true;
        }
        if (planned(id) != null) {
            throw new IllegalArgumentException("id \"" + id + "\" is an item of this application's crontab, which would"
                    + " register it again: remove it there first, and from the crontabs of other applications");
        }
        return told("forgotten", id, crontab.forget(id));
    }

    @Override
    public boolean pause(String id) {
        return schedules.pause(id) || (isItem(id) && told("paused", id, crontab.pause(id)));
    }

    @Override
    public boolean resume(String id) {
        return schedules.resume(id) || (isItem(id) && told("resumed", id, crontab.resume(id)));
    }

    private boolean told(String participle, String id, boolean changed) {
        if (changed) {
            schedules.tell("Recurring job", participle, id);
        }
        return changed;
    }

    /** Returns false for a schedule. */
    private boolean isItem(String id) {
        RecurringJob found = find(id).orElseThrow(() ->
                new IllegalArgumentException("id \"" + id + "\" must be that of a recurring job, but there is none"));
        return found.origin() == Origin.CRONTAB;
    }

    @Override
    public Optional<RecurringJob> find(String id) {
        return schedules
                .find(id)
                .or(() -> items().stream().filter(item -> item.id().equals(id)).findFirst());
    }

    @Override
    public List<RecurringJob> list(RecurringQuery query) {
        Arguments.requireNonNull("query", query);
        List<RecurringJob> found = new ArrayList<>();
        if (!Collections.disjoint(query.origins(), RecurringQuery.SCHEDULES)) {
            found.addAll(schedules.list(query));
        }
        if (query.origins().contains(Origin.CRONTAB)) {
            items().stream().filter(item -> matches(item, query)).forEach(found::add);
        }
        found.sort(BY_ID);
        int end = Math.min(query.limit(), found.size());
        // The next page begins after the last id.
        boolean shared = end < found.size()
                && found.get(end).id().equals(found.get(end - 1).id());
        return List.copyOf(found.subList(0, shared ? end + 1 : end));
    }

    private static boolean matches(RecurringJob item, RecurringQuery query) {
        return (query.prefix() == null || item.id().startsWith(query.prefix()))
                && (query.task() == null || query.task().equals(item.task()))
                && (query.paused() == null || query.paused() == item.isPaused())
                && !Boolean.TRUE.equals(query.problem())
                && (query.after() == null
                        || Arrays.compareUnsigned(
                                        item.id().getBytes(StandardCharsets.UTF_8),
                                        query.after().getBytes(StandardCharsets.UTF_8))
                                > 0);
    }

    private List<RecurringJob> items() {
        Instant now = crontab.now();
        Map<String, CrontabControl.Entry> known = new LinkedHashMap<>();
        crontab.list().forEach(entry -> known.put(entry.identifier(), entry));
        List<RecurringJob> items = new ArrayList<>();
        CronPlan own = plan.get();
        for (CronItem item : own.items()) {
            String id = item.identifier();
            items.add(item(id, item, own.schedule(item), known.remove(id), now));
        }
        known.forEach((id, entry) -> items.add(item(id, null, null, entry, now)));
        return items;
    }

    private static RecurringJob item(
            String id,
            @Nullable CronItem item,
            @Nullable Schedule schedule,
            CrontabControl.@Nullable Entry entry,
            Instant now) {
        Instant last = entry == null ? null : entry.lastExecution();
        Instant pausedAt = entry == null ? null : entry.pausedAt();
        // Later than the last execution even where that lies in the future, because the database's clock was set back.
        Instant next =
                item == null || pausedAt != null ? null : item.nextDue(last == null || last.isBefore(now) ? now : last);
        return new RecurringJob(
                id,
                Origin.CRONTAB,
                schedule,
                next,
                last,
                null,
                pausedAt,
                null,
                null,
                entry == null ? null : entry.since(),
                null);
    }

    private @Nullable CronItem planned(String id) {
        return plan.get().items().stream()
                .filter(item -> item.identifier().equals(id))
                .findFirst()
                .orElse(null);
    }

    @Override
    public Job trigger(String id) {
        return schedules.trigger(id).orElseGet(() -> triggerItem(id, null));
    }

    @Override
    public Job trigger(String id, @Nullable Object payload) {
        return schedules.trigger(id, payload).orElseGet(() -> triggerItem(id, schedules.tree(payload)));
    }

    private Job triggerItem(String id, @Nullable ObjectNode payload) {
        CronItem item = planned(id);
        if (item == null) {
            throw new IllegalArgumentException("id \"" + id
                    + "\" must be that of a schedule or an item of this application's crontab, but there is none");
        }
        JobRequest job = plan.get().job(item, payload, crontab.now(), false);
        Job added = jobs.addJob(job.identifier(), job.payload(), job.spec());
        boolean unused = told("triggered", id, true);
        return added;
    }
}
