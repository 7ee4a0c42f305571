package dev.pgworker.autoconfigure;

import java.util.List;
import java.util.Optional;
import java.util.function.Supplier;

import dev.pgworker.crontab.CronAdmin;
import dev.pgworker.crontab.CronItemStatus;
import dev.pgworker.job.Job;

/** Asks for the worker only when it is used, so that it can be injected before the worker's handlers exist. */
final class LazyCronAdmin implements CronAdmin {

    private final Supplier<CronAdmin> target;

    LazyCronAdmin(Supplier<CronAdmin> target) {
        this.target = target;
    }

    @Override
    public List<CronItemStatus> list() {
        return target.get().list();
    }

    @Override
    public Optional<CronItemStatus> find(String identifier) {
        return target.get().find(identifier);
    }

    @Override
    public Job trigger(String identifier) {
        return target.get().trigger(identifier);
    }

    @Override
    public boolean pause(String identifier) {
        return target.get().pause(identifier);
    }

    @Override
    public boolean resume(String identifier) {
        return target.get().resume(identifier);
    }

    @Override
    public boolean forget(String identifier) {
        return target.get().forget(identifier);
    }
}
