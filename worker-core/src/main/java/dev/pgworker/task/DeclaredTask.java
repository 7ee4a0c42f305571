package dev.pgworker.task;

import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;

import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.util.ClassUtils;

import dev.pgworker.internal.argument.Arguments;
import dev.pgworker.job.Task;

/**
 * A task constant of the application, by which it adds jobs: what its handler has to take.
 *
 * @param task the constant's value
 * @param source where it stands, for messages
 * @since 0.1.0
 */
public record DeclaredTask(Task<?> task, String source) {

    private static final Logger log = LoggerFactory.getLogger(DeclaredTask.class);

    /** Checks that there are both. */
    public DeclaredTask {
        Arguments.requireNonNull("task", task);
        Arguments.requireNonNull("source", source);
    }

    /**
     * Returns the tasks in static final fields of a class, of the classes in it, and of its superclasses and interfaces. Only a
     * class that has such a field is initialized. What cannot be read is passed over.
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
