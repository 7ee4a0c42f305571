package dev.pgworker.task;

import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;

import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.springframework.util.ClassUtils;

import dev.pgworker.internal.argument.Arguments;
import dev.pgworker.internal.failure.WorkerLog;
import dev.pgworker.job.Task;

/**
 * A task constant with which the application adds jobs, and whose payload type the task's handler must accept.
 *
 * @param task the constant's value
 * @param source where the constant is declared, for messages
 * @since 0.1.0
 */
public record DeclaredTask(Task<?> task, String source) {

    private static final Logger log = WorkerLog.of(DeclaredTask.class);

    /** Checks that neither is null. */
    public DeclaredTask {
        Arguments.requireNonNull("task", task);
        Arguments.requireNonNull("source", source);
    }

    /**
     * Returns the tasks in static final fields of a class, of its nested classes, and of its superclasses and
     * interfaces. Only classes that have such a field are initialized. Classes and fields that cannot be read are
     * skipped.
     */
    public static List<DeclaredTask> in(Class<?> type) {
        Set<Class<?>> classes = new LinkedHashSet<>();
        List<DeclaredTask> found = new ArrayList<>();
        try {
            collect(ClassUtils.getUserClass(type), classes);
        } catch (RuntimeException | LinkageError e) {
            log.debug("The classes around {} cannot be read", type, e);
        }
        for (Class<?> each : classes) {
            addFrom(each, found);
        }
        return found;
    }

    private static void collect(@Nullable Class<?> type, Set<Class<?>> classes) {
        if (type == null || type.getName().startsWith("java.") || !classes.add(type)) {
            return;
        }
        collect(type.getSuperclass(), classes);
        for (Class<?> implemented : type.getInterfaces()) {
            collect(implemented, classes);
        }
        for (Class<?> member : type.getDeclaredClasses()) {
            collect(member, classes);
        }
    }

    private static void addFrom(Class<?> type, List<DeclaredTask> found) {
        try {
            for (Field field : type.getDeclaredFields()) {
                if (field.getType() == Task.class
                        && Modifier.isStatic(field.getModifiers())
                        && Modifier.isFinal(field.getModifiers())
                        && field.trySetAccessible()
                        && field.get(null) instanceof Task<?> task) {
                    found.add(new DeclaredTask(task, type.getName() + "." + field.getName()));
                }
            }
        } catch (ReflectiveOperationException | RuntimeException | LinkageError e) {
            log.debug("The constants of {} cannot be read", type, e);
        }
    }
}
