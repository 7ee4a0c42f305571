package dev.pgworker.cli;

import java.util.List;
import java.util.function.Predicate;

import picocli.CommandLine.Command;
import picocli.CommandLine.Parameters;

import dev.pgworker.crontab.CronAdmin;
import dev.pgworker.crontab.CronItemStatus;

/** Looks at recurring jobs, pauses and forgets them. */
@Command(name = "crontab", description = "Check a crontab, and look at recurring jobs, pause or forget them.")
final class CrontabCommand {

    /** Lists recurring jobs that workers have registered. */
    @Command(name = "list", description = "List the recurring jobs that workers have registered.")
    static final class ListItems extends SessionCommand {

        ListItems(Session session) {
            super(session);
        }

        @Override
        public Integer call() {
            List<CronItemStatus> items = session.crontab().list();
            if (session.isJson()) {
                session.writeJson(Json.object(
                        "items",
                        items.stream()
                                .map(item -> Json.object(
                                        "identifier", item.identifier(),
                                        "knownSince", item.knownSince(),
                                        "lastExecution", item.lastExecution(),
                                        "pausedSince", item.pausedSince()))
                                .toList()));
                return ExitStatus.OK;
            }
            Table table = new Table("ITEM", "=KNOWN SINCE", "=LAST EXECUTION", "=PAUSED SINCE");
            items.forEach(item -> {
                Table unused = table.row(
                        item.identifier(),
                        Text.seconds(item.knownSince()),
                        Text.seconds(item.lastExecution()),
                        Text.seconds(item.pausedSince()));
            });
            session.writeTable(table);
            return ExitStatus.OK;
        }
    }

    /** Pauses recurring jobs. */
    @Command(
            name = "pause",
            description =
                    "Pause recurring jobs in all PgWorkers until they are resumed. What is due meanwhile is passed over.")
    static final class Pause extends SessionCommand {

        @Parameters(paramLabel = "ITEM", arity = "1..*", description = "Identifiers, as crontab list shows them.")
        private List<String> items = List.of();

        Pause(Session session) {
            super(session);
        }

        @Override
        public Integer call() {
            CronAdmin crontab = session.crontab();
            return change(session, crontab, items, crontab::pause, "paused", "was paused already");
        }
    }

    /** Ends pauses. */
    @Command(name = "resume", description = "End the pause of recurring jobs.")
    static final class Resume extends SessionCommand {

        @Parameters(paramLabel = "ITEM", arity = "1..*", description = "Identifiers, as crontab list shows them.")
        private List<String> items = List.of();

        Resume(Session session) {
            super(session);
        }

        @Override
        public Integer call() {
            CronAdmin crontab = session.crontab();
            return change(session, crontab, items, crontab::resume, "resumed", "was not paused");
        }
    }

    /** Forgets recurring jobs that no crontab has any more. */
    @Command(
            name = "forget",
            description = "Forget recurring jobs that have left every crontab. A running worker that still has one"
                    + " registers it again, as if it were new.")
    static final class Forget extends SessionCommand {

        @Parameters(paramLabel = "ITEM", arity = "1..*", description = "Identifiers, as crontab list shows them.")
        private List<String> items = List.of();

        Forget(Session session) {
            super(session);
        }

        @Override
        public Integer call() {
            CronAdmin crontab = session.crontab();
            return change(session, crontab, items, crontab::forget, "forgotten", "was forgotten already");
        }
    }

    private static int change(
            Session session,
            CronAdmin crontab,
            List<String> items,
            Predicate<String> change,
            String done,
            String notNeeded) {
        Predicate<String> isKnown = item -> crontab.find(item).isPresent();
        return session.change("recurring job", items, isKnown, change, done, notNeeded);
    }
}
