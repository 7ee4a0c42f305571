package dev.pgworker.internal.engine;

import java.util.EnumMap;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;

import com.google.errorprone.annotations.concurrent.GuardedBy;

import dev.pgworker.internal.store.TaskIds;
import dev.pgworker.job.Job;

/**
 * What a worker starts no jobs of at present, for whatever reason. Claims pass it over, and what has been claimed and not started is
 * given back. Read all the time, and changed rarely: while nothing is held back, a question costs one look at a field. Thread-safe.
 */
public final class HeldBack {

    /** Why something is held back. What several hold back starts when all of them let it go. */
    public enum Reason {

        /** It is paused. */
        PAUSED,

        /** A limit that the application declares is not in the database. */
        LIMIT
    }

    /**
     * What is held back for one reason.
     *
     * @param everything whether all tasks are
     * @param tasks the identifiers of tasks
     * @param queues the names of queues
     */
    public record Part(boolean everything, Set<String> tasks, Set<String> queues) {

        /** Nothing. */
        public static final Part NONE = new Part(false, Set.of(), Set.of());

        /** Copies the sets. */
        public Part {
            tasks = Set.copyOf(tasks);
            queues = Set.copyOf(queues);
        }

        private boolean isEmpty() {
            return !everything && tasks.isEmpty() && queues.isEmpty();
        }

        private boolean hasTask(String task) {
            return everything || tasks.contains(task);
        }

        private Part and(Part other) {
            Set<String> allTasks = new HashSet<>(tasks);
            allTasks.addAll(other.tasks);
            Set<String> allQueues = new HashSet<>(queues);
            allQueues.addAll(other.queues);
            return new Part(everything || other.everything, allTasks, allQueues);
        }
    }

    @GuardedBy("this") private final Map<Reason, Part> parts = new EnumMap<>(Reason.class);

    private volatile Part all = Part.NONE;
    private volatile Runnable onChange = () -> {};

    /**
     * Sets what to call when something else is held back than before. Call once, before anything is.
     *
     * @param changed called on the thread of {@link #hold}; must return soon
     */
    public void tells(Runnable changed) {
        onChange = changed;
    }

    /** Sets what is held back for this reason from here on, in place of what was before. */
    public void hold(Reason reason, Part part) {
        synchronized (this) {
            if (part.equals(parts.getOrDefault(reason, Part.NONE))) {
                return;
            }
            parts.put(reason, part);
            all = parts.values().stream().reduce(Part.NONE, Part::and);
        }
        onChange.run();
    }

    /** Returns whether anything is held back. */
    public boolean isAny() {
        return !all.isEmpty();
    }

    /** Returns whether this job is not to be started. */
    public boolean holds(Job job) {
        Part current = all;
        return !current.isEmpty()
                && (current.hasTask(job.taskIdentifier())
                        || (job.queueName() != null && current.queues.contains(job.queueName())));
    }

    /** Returns those of the tasks that are not held back. */
    public TaskIds without(TaskIds tasks) {
        Part current = all;
        if (!current.everything && current.tasks.isEmpty()) {
            return tasks;
        }
        Map<Integer, String> others = new HashMap<>(tasks.identifiers());
        others.values().removeIf(current::hasTask);
        return new TaskIds(others, tasks.onlyQueued());
    }
}
