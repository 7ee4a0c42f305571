package dev.pgworker.autoconfigure;

import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Set;
import java.util.stream.Stream;

import org.springframework.beans.factory.annotation.BeanFactoryAnnotationUtils;
import org.springframework.beans.factory.config.ConfigurableListableBeanFactory;

/**
 * The beans of an application that take part in what its workers do. One that is qualified with the name of a worker belongs
 * to that worker alone.
 */
final class Collaborators {

    private final ConfigurableListableBeanFactory beans;
    private final Set<String> workers;

    /**
     * Creates collaborators.
     *
     * @param workers the names of all workers
     */
    Collaborators(ConfigurableListableBeanFactory beans, Set<String> workers) {
        this.beans = beans;
        this.workers = workers;
    }

    /** Returns the beans of a worker and those of all workers, in order. */
    <T> List<T> of(String worker, Class<T> type) {
        Stream<T> all = beans.getBeanProvider(type).orderedStream();
        if (workers.size() == 1) {
            return all.toList();
        }
        Set<Object> ofOthers = qualified(type, worker);
        return all.filter(bean -> !ofOthers.contains(bean)).toList();
    }

    /** Returns the beans of a worker, in order: those without a qualifier belong to the default one. */
    <T> List<T> onlyOf(String worker, Class<T> type) {
        if (worker.equals(WorkerInstances.DEFAULT)) {
            return of(worker, type);
        }
        Set<Object> ofOthers = qualified(type, worker);
        Set<Object> ofAny = qualified(type, "");
        return of(worker, type).stream()
                .filter(bean -> ofAny.contains(bean) && !ofOthers.contains(bean))
                .toList();
    }

    /** Returns the beans that are qualified with the name of another worker than the given one. */
    private Set<Object> qualified(Class<?> type, String except) {
        Set<Object> found = Collections.newSetFromMap(new IdentityHashMap<>());
        for (String name : beans.getBeanNamesForType(type)) {
            if (BeanFactoryAnnotationUtils.isQualifierMatch(
                    qualifier -> workers.contains(qualifier) && !qualifier.equals(except), name, beans)) {
                found.add(beans.getBean(name));
            }
        }
        return found;
    }

    /** Returns the beans with a qualifier of this product's own, which nobody else is to inject. */
    <T> List<T> internal(String qualifier, Class<T> type) {
        return BeanFactoryAnnotationUtils.qualifiedBeansOfType(beans, type, qualifier).values().stream()
                .toList();
    }
}
