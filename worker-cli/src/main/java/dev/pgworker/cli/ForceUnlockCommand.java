package dev.pgworker.cli;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;

import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Parameters;

import dev.pgworker.job.Job;
import dev.pgworker.job.JobPage;
import dev.pgworker.job.JobQueries;
import dev.pgworker.job.JobQuery;
import dev.pgworker.job.JobState;
import dev.pgworker.job.NamedQueue;

/** Takes all jobs and queues from workers. */
@Command(
        name = "force-unlock",
        description = {
            "Release all jobs and queues of workers that you know to be dead. Jobs of a live worker run twice.",
            "Prefer the command sweep, which finds dead workers."
        },
        footer = {"  worker-cli force-unlock pgworker-1a2b --yes"})
final class ForceUnlockCommand extends SessionCommand {

    /** Jobs are listed with their payloads, which may be large. */
    private static final int PAGE = 200;

    private static final int QUEUES = 1000;

    @Parameters(
            paramLabel = "WORKER",
            arity = "1..*",
            description = "Ids of workers, as the command workers lists them.")
    private List<String> workers = new ArrayList<>();

    @Mixin
    private Confirmation confirmation = new Confirmation();

    ForceUnlockCommand(Session session) {
        super(session);
    }

    @Override
    public Integer call() {
        Set<String> ids = new LinkedHashSet<>(workers);
        confirmation.require(session.terminal(), "Unlock all jobs of " + Text.count(ids.size(), "worker"));
        JobQueries queries = session.queries();
        List<String> ofJobs = holdersOfJobs(queries, ids);
        List<String> ofQueues = holdersOfQueues(queries, ids);
        Set<String> unknown = new LinkedHashSet<>(ids);
        unknown.removeAll(new HashSet<>(ofJobs));
        unknown.removeAll(new HashSet<>(ofQueues));
        if (!unknown.isEmpty()) {
            queries.activeWorkers().forEach(worker -> unknown.remove(worker.id()));
        }
        session.operations().forceUnlockWorkers(ids);
        List<String> known = ids.stream().filter(id -> !unknown.contains(id)).toList();
        if (session.isJson()) {
            session.writeJson(Json.object(
                    "unlocked", known, "jobs", ofJobs.size(), "queues", ofQueues.size(), "unknown", unknown));
        } else if (!known.isEmpty()) {
            session.say("Unlocked what " + Text.count(known.size(), "worker") + " held: "
                    + Text.count(ofJobs.size(), "job") + ", " + Text.count(ofQueues.size(), "queue") + ".");
        }
        unknown.forEach(id -> session.say(
                "No job or queue is held by " + Text.line(id) + ", and no worker of that id is registered"));
        return unknown.isEmpty() ? ExitStatus.OK : ExitStatus.NOT_FOUND;
    }

    /** Returns which of the workers holds a job, once for each job. */
    private static List<String> holdersOfJobs(JobQueries queries, Set<String> ids) {
        List<String> holders = new ArrayList<>();
        JobQuery query =
                JobQuery.builder().state(JobState.RUNNING).pageSize(PAGE).build();
        while (true) {
            JobPage page = queries.list(query);
            page.jobs().stream().map(Job::lockedBy).filter(ids::contains).forEach(holders::add);
            if (page.next() == null) {
                return holders;
            }
            query = query.after(page.next());
        }
    }

    /** Returns which of the workers holds a queue, once for each queue. */
    private static List<String> holdersOfQueues(JobQueries queries, Set<String> ids) {
        List<String> holders = new ArrayList<>();
        String after = null;
        while (true) {
            List<NamedQueue> queues = queries.queues(after, QUEUES);
            queues.stream().map(NamedQueue::lockedBy).filter(ids::contains).forEach(holders::add);
            if (queues.size() < QUEUES) {
                return holders;
            }
            after = queues.get(queues.size() - 1).name();
        }
    }
}
