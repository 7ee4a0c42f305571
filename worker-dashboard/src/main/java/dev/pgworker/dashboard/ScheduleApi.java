package dev.pgworker.dashboard;

import java.time.Clock;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;

import org.jspecify.annotations.Nullable;
import org.springframework.dao.DuplicateKeyException;
import tools.jackson.databind.JsonNode;

import dev.pgworker.history.HistoryEntry;
import dev.pgworker.job.Job;
import dev.pgworker.job.JobState;
import dev.pgworker.schedule.RecurringJob;
import dev.pgworker.schedule.RecurringJobs;
import dev.pgworker.schedule.RecurringQuery;
import dev.pgworker.schedule.Schedule;

/** What the pages read and change of the schedules of the database. Lists are read page by page, in the order of names. */
final class ScheduleApi {

    private static final int PAGE = 50;
    private static final int LARGEST_PAGE = 200;
    private static final int PREVIEW = 5;

    private final Clock clock;
    private final PayloadRule payloads;
    private final ScheduleForm form;
    private final CronViews crontabs = new CronViews();

    ScheduleApi(Clock clock, PayloadRule payloads) {
        this.clock = clock;
        this.payloads = payloads;
        this.form = new ScheduleForm(clock);
    }

    private JobViews jobViews(Visitor visitor) {
        return new JobViews(payloads, visitor, clock.instant());
    }

    View list(Source source, Input input, Visitor visitor) {
        int limit = input.integer("limit", PAGE, 1, LARGEST_PAGE);
        RecurringQuery query = new RecurringQuery(
                input.text("prefix"),
                input.text("task"),
                input.optionalFlag("paused"),
                input.optionalFlag("problem"),
                RecurringQuery.SCHEDULES,
                input.text("after"),
                limit + 1);
        List<RecurringJob> found =
                source.readPrimary(() -> source.instance().recurringJobs().list(query));
        List<RecurringJob> page = found.subList(0, Math.min(limit, found.size()));
        ScheduleViews views = new ScheduleViews(jobViews(visitor));
        return new View()
                .put("schedules", page.stream().map(views::listed).toList())
                .put("next", found.size() > limit ? page.get(page.size() - 1).id() : null);
    }

    /** Shows a schedule, or else the item of the crontab that has the name. */
    View one(Source source, Input input, Visitor visitor) {
        String name = input.given("name");
        Optional<RecurringJob> found =
                source.readPrimary(() -> source.instance().recurringJobs().find(name));
        if (found.isPresent() && found.get().origin() != RecurringJob.Origin.CRONTAB) {
            RecurringJob status = found.get();
            View view = new ScheduleViews(jobViews(visitor)).whole(status);
            Long lastJob = status.lastJobId();
            view.put("lastJob", lastJob == null ? null : source.read(() -> lastJob(source, lastJob)));
            return new View().put("schedule", view).put("item", null);
        }
        Map<String, @Nullable Object> item = crontabs.one(source, name, jobViews(visitor), payloads.readOfEach());
        if (item == null) {
            throw noSuch(name);
        }
        return new View().put("schedule", null).put("item", item);
    }

    /** Returns what became of a job: its state, or how it ended. */
    private View lastJob(Source source, long id) {
        View view = new View().put("id", id);
        Job job = source.queries().find(List.of(id), 0).stream().findFirst().orElse(null);
        if (job != null) {
            return view.put("state", JobState.of(job, clock.instant()));
        }
        List<HistoryEntry> history = source.part(
                        "The history is not shown",
                        () -> source.queries().history().of(id, 0))
                .value();
        return view.put(
                "state",
                history == null || history.isEmpty() ? null : history.get(0).outcome());
    }

    private static Refusal noSuch(String name) {
        return new Refusal(
                404, "There is no schedule \"" + name + "\", nor a recurring job of a crontab with that name.");
    }

    /** Shows when a schedule would be due, or why it cannot be. */
    View preview(Input input) {
        Schedule schedule = form.preview(input);
        View view = new View();
        ScheduleViews.putRecurrence(view, schedule.recurrence());
        List<Instant> next = new ArrayList<>();
        Instant first = schedule.firstDue(clock.instant());
        if (first != null) {
            next.add(first);
            next.addAll(schedule.next(first, PREVIEW - 1));
        }
        return view.put("next", ScheduleViews.texts(next));
    }

    private static RecurringJobs acting(Source source, Visitor visitor) {
        return source.instance().recurringJobs().actingAs(visitor.actingName());
    }

    View create(Source source, Input input, Visitor visitor) {
        Schedule schedule = form.schedule(input, () -> {
            JsonNode payload = payload(input);
            return payload == null ? Json.read("payload", "{}") : payload;
        });
        try {
            acting(source, visitor).create(schedule);
        } catch (DuplicateKeyException e) {
            throw new Refusal(409, "name must be another one: there is a schedule of this name.");
        }
        return new View().put("name", schedule.name()).put("text", schedule.name() + " was created.");
    }

    private static @Nullable JsonNode payload(Input input) {
        String text = input.text("payload");
        if (text == null) {
            return null;
        }
        if (text.length() > Json.LONGEST_PAYLOAD) {
            throw new Refusal(413, "payload must not be longer than 10 MB here.");
        }
        JsonNode payload = Json.read("payload", text);
        if (!payload.isObject()) {
            throw new IllegalArgumentException("payload must be a JSON object such as {}");
        }
        return payload;
    }

    /** Changes a schedule as it was read: what somebody else has changed since is not overwritten. */
    View change(Source source, Input input, Visitor visitor) {
        String name = input.given("name");
        Instant readAs = input.instant("updatedAt");
        return source.change(() -> {
            RecurringJobs schedules = acting(source, visitor);
            RecurringJob status = schedules.find(name).orElseThrow(() -> noSuch(name));
            if (status.origin() == RecurringJob.Origin.DECLARED) {
                throw new Refusal(
                        409,
                        "An application declares this schedule at its start, and would change it back. Change it there.");
            }
            if (!Objects.equals(status.updatedAt(), readAs)) {
                throw new Refusal(409, "The schedule has been changed meanwhile. Close this, and look at it again.");
            }
            Schedule former = status.schedule();
            if (former == null) {
                throw new Refusal(409, "The schedule cannot be read: " + status.problem());
            }
            schedules.put(form.schedule(input, () -> {
                JsonNode payload = payload(input);
                return payload == null ? kept(former, input, visitor) : payload;
            }));
            return new View().put("name", name).put("text", name + " was changed.");
        });
    }

    /** By another task a rule might show a payload that it hides. */
    private Object kept(Schedule former, Input input, Visitor visitor) {
        String json = ScheduleViews.payload(former);
        String task = former.job().identifier();
        boolean sameTask = task.equals(input.text("task"));
        if (!sameTask && !json.equals(payloads.shown(task, json, true, visitor.principal()))) {
            throw new IllegalArgumentException(
                    "payload is required with another task, because the present one is hidden");
        }
        return Json.read("payload", json);
    }

    /**
     * Adds a job of a schedule at once.
     *
     * @param mayAdd whether the visitor may add any job, which one with another payload is
     */
    View trigger(Source source, Input input, Visitor visitor, boolean mayAdd) {
        String name = input.given("name");
        JsonNode payload = payload(input);
        if (payload != null && !mayAdd) {
            throw new Refusal(403, "With another payload, you also need the action " + DashboardAction.ADD.id() + ".");
        }
        RecurringJobs schedules = acting(source, visitor);
        Job job = payload == null ? schedules.trigger(name) : schedules.trigger(name, payload);
        return job.isSkipped()
                ? new View().put("jobId", null).put("text", "The application prevented that the job was added.")
                : new View().put("jobId", job.id()).put("text", "Job " + job.id() + " was added.");
    }

    View pause(Source source, Input input, Visitor visitor) {
        String name = input.given("name");
        boolean changed = acting(source, visitor).pause(name);
        return new View().put("text", name + (changed ? " is paused." : " was paused before, or does not exist."));
    }

    View resume(Source source, Input input, Visitor visitor) {
        String name = input.given("name");
        boolean changed = acting(source, visitor).resume(name);
        return new View().put("text", name + (changed ? " runs again." : " was not paused, or does not exist."));
    }

    View delete(Source source, Input input, Visitor visitor) {
        String name = input.given("name");
        boolean existed = acting(source, visitor).delete(name);
        return new View().put("text", name + (existed ? " was deleted." : " no longer existed."));
    }
}
