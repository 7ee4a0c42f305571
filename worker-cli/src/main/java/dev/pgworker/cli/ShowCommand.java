package dev.pgworker.cli;

import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;

import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Parameters;

import dev.pgworker.job.Job;
import dev.pgworker.job.JobAdmin;

/** Shows all that is known of jobs. */
@Command(name = "show", description = "Show jobs with their payloads.")
final class ShowCommand extends SessionCommand {

    @Parameters(paramLabel = "ID", arity = "1..*", description = "Ids of jobs.")
    private List<String> ids = new ArrayList<>();

    ShowCommand(Session session) {
        super(session);
    }

    @Override
    public Integer call() {
        List<Long> given = ids.stream().map(JobSelection::id).toList();
        JobAdmin admin = session.jobs();
        List<Map<String, Object>> found = new ArrayList<>();
        int shown = 0;
        List<Long> missing = new ArrayList<>();
        for (long id : given) {
            Optional<Job> job = admin.find(id);
            if (job.isEmpty()) {
                missing.add(id);
            } else if (session.isJson()) {
                found.add(Json.job(job.get(), States.of(job.get())));
            } else {
                if (shown++ > 0) {
                    session.terminal().out().println();
                }
                print(job.get());
            }
        }
        if (session.isJson()) {
            session.writeJson(Json.object("jobs", found));
        }
        missing.forEach(id -> session.say("No job " + id));
        return missing.isEmpty() ? ExitStatus.OK : ExitStatus.NOT_FOUND;
    }

    private void print(Job job) {
        print("Job", String.valueOf(job.id()));
        print("Task", job.taskIdentifier());
        print("State", States.of(job));
        print("Queue", job.queueName());
        print("Priority", String.valueOf(job.priority()));
        print("Run at", Text.time(job.runAt()));
        print("Attempts", job.attempts() + " of " + job.maxAttempts());
        print("Recoveries", job.recoveries() == 0 ? null : String.valueOf(job.recoveries()));
        print("Key", job.key());
        print("Revision", job.revision() == 0 ? null : String.valueOf(job.revision()));
        print("Flags", job.flags().isEmpty() ? null : String.join(", ", job.flags()));
        print("Added", Text.time(job.createdAt()));
        print("Changed", Text.time(job.updatedAt()));
        print("Locked", job.lockedAt() == null ? null : Text.time(job.lockedAt()));
        print("Locked by", job.lockedBy());
        print("Last error", job.lastError());
        print("Payload", job.payload());
    }

    private void print(String name, @Nullable String value) {
        if (value == null) {
            return;
        }
        PrintWriter out = session.terminal().out();
        out.print(name + ":" + " ".repeat(11 - name.length()));
        out.println(Text.visible(value).strip().replace("\n", "\n" + " ".repeat(12)));
    }
}
