package dev.pgworker.dashboard;

import java.io.IOException;
import java.time.Clock;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.function.Supplier;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import org.jspecify.annotations.Nullable;
import tools.jackson.databind.JsonNode;

/** The addresses of the data that the pages show and change, below {@code api}. */
final class Api {

    private static final Pattern OF_INSTANCE = Pattern.compile("/([^/]+)/(.+)");
    private static final Pattern JOB = Pattern.compile("jobs/([0-9]{1,19})");
    private static final Pattern CHANGE = Pattern.compile("jobs/(run-now|complete|fail|remove|cancel|reschedule)");
    private static final Pattern BULK = Pattern.compile("bulk/([A-Za-z0-9_-]{24})(/stop)?");
    private static final Pattern CRON = Pattern.compile("(?:crontab|schedules)/(trigger|pause|resume)");
    private static final int MOST_LIVE_IDS = 200;

    private final Sources sources;
    private final Guard guard;
    private final Csrf csrf;
    private final PayloadRule payloads;
    private final Clock clock;
    private final Parts parts;

    /**
     * What answers.
     *
     * @param work runs what needs the database
     */
    record Parts(DatabaseWork work, ReadApi reads, WriteApi writes, ScheduleApi schedules, Bulks bulks, LiveHub hub) {}

    Api(Sources sources, Guard guard, Csrf csrf, PayloadRule payloads, Clock clock, Parts parts) {
        this.sources = sources;
        this.guard = guard;
        this.csrf = csrf;
        this.payloads = payloads;
        this.clock = clock;
        this.parts = parts;
    }

    /** Answers with data; null if the request stays open. */
    @Nullable Object get(String path, HttpServletRequest request, HttpServletResponse response) throws IOException {
        if (path.equals("/me")) {
            return me(request, response).map();
        }
        Matcher matcher = OF_INSTANCE.matcher(path);
        if (!matcher.matches()) {
            throw noSuchAddress();
        }
        Source source = sources.get(matcher.group(1));
        Input input = Input.query(request);
        if (matcher.group(2).equals("live")) {
            live(source, input, request, response);
            return null;
        }
        return read(source, matcher.group(2), input, Visitor.of(request));
    }

    private static Refusal noSuchAddress() {
        return new Refusal(404, "There is no such address.");
    }

    private View me(HttpServletRequest request, HttpServletResponse response) {
        String path = request.getContextPath() + request.getServletPath();
        List<String> actions = guard.actions(request);
        return new View()
                .put("user", Visitor.of(request).name())
                .put("csrf", csrf.view(request, response, path))
                .put("instances", sources.names())
                .put("actions", actions)
                .put("readOnly", actions.isEmpty())
                .put("readOnlyReason", guard.readOnlyReason(actions))
                .put("payloads", payloads.extent())
                .put("version", StaticFiles.version())
                .put("path", path)
                .put("time", clock.instant());
    }

    private void live(Source source, Input input, HttpServletRequest request, HttpServletResponse response)
            throws IOException {
        if (request.getMethod().equals("HEAD")) {
            throw new Refusal(405, "The method must be GET.");
        }
        String ids = input.text("ids");
        Set<Long> wanted = Input.numbers("ids", ids == null ? List.of() : List.of(ids.split(",", -1)), MOST_LIVE_IDS);
        parts.hub().subscribe(source, wanted, request, response);
    }

    private Map<String, @Nullable Object> read(Source source, String what, Input input, Visitor visitor) {
        ReadApi reads = parts.reads();
        Matcher bulk = BULK.matcher(what);
        if (bulk.matches() && bulk.group(2) == null) {
            return parts.bulks().view(source, bulk.group(1));
        }
        Matcher job = JOB.matcher(what);
        Callable<View> reading = job.matches()
                ? () -> reads.job(source, id(job.group(1)), visitor)
                : switch (what) {
                    case "overview" -> () -> reads.overview(source);
                    case "series" -> () -> reads.series(source, input);
                    case "jobs" -> () -> reads.jobs(source, input, visitor);
                    case "jobs/count" -> () -> reads.count(source, input);
                    case "flow" -> () -> JobViews.flow(source, input);
                    case "history" -> () -> reads.history(source, input, visitor);
                    case "queues" -> () -> reads.queues(source, input);
                    case "tasks" -> () -> reads.tasks(source, input);
                    case "crontab" -> () -> reads.crontab(source, visitor);
                    case "schedules" -> () -> parts.schedules().list(source, input, visitor);
                    case "schedules/one" -> () -> parts.schedules().one(source, input, visitor);
                    case "schedules/preview" -> () -> parts.schedules().preview(input);
                    case "limits" -> () -> LimitApi.list(source);
                    case "limits/one" -> () -> LimitApi.one(source, input, payloads.allShown());
                    case "workers" -> () -> reads.workers(source, visitor);
                    case "maintenance" -> () -> reads.maintenance(source);
                    default -> throw noSuchAddress();
                };
        return parts.work().read(reading).map();
    }

    private static long id(String digits) {
        try {
            return Long.parseLong(digits);
        } catch (NumberFormatException e) {
            throw new Refusal(404, "There is no job " + digits + ".");
        }
    }

    /**
     * Changes something.
     *
     * @param body read once it is known that the sender may do that
     */
    Object post(String path, HttpServletRequest request, Supplier<JsonNode> body) {
        Matcher matcher = OF_INSTANCE.matcher(path);
        if (!matcher.matches()) {
            throw noSuchAddress();
        }
        Source source = sources.get(matcher.group(1));
        String what = matcher.group(2);
        Visitor visitor = Visitor.of(request);
        if (what.startsWith("bulk")) {
            return bulk(source, what, request, body, visitor);
        }
        DashboardAction action = action(what);
        guard.requireActor(action, request);
        List<String> actions = guard.actions(request);
        Input input = Input.body(body.get());
        return parts.work()
                .change(() -> action == DashboardAction.LIMIT
                        ? changeLimit(source, what, input, visitor)
                        : what.startsWith("schedules")
                                ? changeSchedule(source, what, input, visitor, actions)
                                : change(source, what, action, input, visitor, actions))
                .map();
    }

    private static DashboardAction action(String what) {
        Matcher change = CHANGE.matcher(what);
        if (change.matches()) {
            return DashboardAction.of(change.group(1));
        }
        if (CRON.matcher(what).matches()) {
            return DashboardAction.CRON;
        }
        return switch (what) {
            case "jobs" -> DashboardAction.ADD;
            case "jobs/retry" -> DashboardAction.RUN_NOW;
            case "schedules", "schedules/change", "schedules/delete", "crontab/forget" -> DashboardAction.SCHEDULE;
            case "limits", "limits/change", "limits/delete" -> DashboardAction.LIMIT;
            case "pauses/pause", "pauses/resume" -> DashboardAction.PAUSE;
            case "signals" -> DashboardAction.SIGNAL;
            case "cleanup" -> DashboardAction.CLEANUP;
            case "force-unlock" -> DashboardAction.FORCE_UNLOCK;
            case "sweep" -> DashboardAction.SWEEP;
            default -> throw noSuchAddress();
        };
    }

    /**
     * Changes something.
     *
     * @param actions what the visitor may do besides
     */
    private View change(
            Source source, String what, DashboardAction action, Input input, Visitor visitor, List<String> actions) {
        WriteApi writes = parts.writes();
        return switch (action) {
            case ADD ->
                writes.add(
                        source,
                        input,
                        visitor,
                        actions.contains(DashboardAction.RESCHEDULE.id()),
                        actions.contains(DashboardAction.CANCEL.id()));
            case CLEANUP -> writes.cleanup(source, input, visitor);
            case SIGNAL -> writes.signal(source, input, visitor);
            case PAUSE -> writes.pause(source, what.equals("pauses/pause"), input, visitor);
            case FORCE_UNLOCK -> writes.forceUnlock(source, input, visitor);
            case SWEEP -> writes.sweep(source, input, visitor);
            case CRON, SCHEDULE -> writes.cron(source, what.substring("crontab/".length()), input, visitor);
            default ->
                what.equals("jobs/retry")
                        ? writes.retry(source, input, payloads, visitor, actions.contains(DashboardAction.ADD.id()))
                        : writes.change(source, action, input, visitor);
        };
    }

    private static View changeLimit(Source source, String what, Input input, Visitor visitor) {
        return switch (what) {
            case "limits" -> LimitApi.create(source, input, visitor);
            case "limits/change" -> LimitApi.change(source, input, visitor);
            default -> LimitApi.delete(source, input, visitor);
        };
    }

    private View changeSchedule(Source source, String what, Input input, Visitor visitor, List<String> actions) {
        boolean mayAdd = actions.contains(DashboardAction.ADD.id());
        ScheduleApi schedules = parts.schedules();
        return switch (what) {
            case "schedules" -> schedules.create(source, input, visitor);
            case "schedules/change" -> schedules.change(source, input, visitor);
            case "schedules/delete" -> schedules.delete(source, input, visitor);
            case "schedules/trigger" -> schedules.trigger(source, input, visitor, mayAdd);
            case "schedules/pause" -> schedules.pause(source, input, visitor);
            default -> schedules.resume(source, input, visitor);
        };
    }

    /** Which action it is stands in the body or was said before. */
    private Object bulk(
            Source source, String what, HttpServletRequest request, Supplier<JsonNode> body, Visitor visitor) {
        Bulks bulks = parts.bulks();
        Matcher stop = BULK.matcher(what);
        if (stop.matches() && stop.group(2) != null) {
            guard.requireActor(bulks.actionOf(source, stop.group(1)), request);
            return bulks.stop(source, stop.group(1));
        }
        if (!what.equals("bulk") && !what.equals("bulk/preview")) {
            throw noSuchAddress();
        }
        guard.requireAnyActor(request);
        Input input = Input.body(body.get());
        DashboardAction action = Bulks.action(input);
        guard.requireActor(action, request);
        if (what.equals("bulk")) {
            String selection = input.required("selection");
            return bulks.start(source, selection, action, WriteApi.jobChange(action, input), visitor)
                    .map();
        }
        return parts.work()
                .change(() -> parts.reads().preview(source, bulks, action, input.object("filter"), visitor))
                .map();
    }
}
