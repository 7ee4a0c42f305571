package dev.pgworker.dashboard;

import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import javax.sql.DataSource;

import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.BeanFactory;
import org.springframework.boot.context.properties.source.InvalidConfigurationPropertyValueException;

import dev.pgworker.WorkerClient;
import dev.pgworker.autoconfigure.WorkerInstance;
import dev.pgworker.autoconfigure.WorkerInstances;
import dev.pgworker.job.JobQueries;

/** The workers of the application, by name, with what the dashboard reads of each. Thread-safe. */
final class Sources {

    private final WorkerInstances instances;
    private final BeanFactory beans;
    private final @Nullable String dataSource;
    private final Map<String, Source> sources = new ConcurrentHashMap<>();

    /**
     * Creates the sources.
     *
     * @param dataSource the name of the bean to read from, instead of the data source of the default worker
     * @throws InvalidConfigurationPropertyValueException if there is no such bean
     */
    Sources(WorkerInstances instances, BeanFactory beans, @Nullable String dataSource) {
        this.instances = instances;
        this.beans = beans;
        this.dataSource = dataSource;
        if (dataSource != null
                && !(beans.containsBean(dataSource) && beans.isTypeMatch(dataSource, DataSource.class))) {
            throw new InvalidConfigurationPropertyValueException(
                    "pgworker.dashboard.data-source", dataSource, "It must be the name of a DataSource bean.");
        }
    }

    /** Returns the names of all workers, the default one first. */
    List<String> names() {
        return instances.all().stream().map(WorkerInstance::name).toList();
    }

    /**
     * Returns the source of a worker.
     *
     * @throws Refusal if there is none with that name
     */
    Source get(String name) {
        Source known = sources.get(name);
        if (known != null) {
            return known;
        }
        if (!names().contains(name)) {
            throw new Refusal(404, "The worker must be one of " + names() + ".");
        }
        return sources.computeIfAbsent(name, each -> source(instances.get(each)));
    }

    /** A replica is one of the default worker's database, which other workers may share. */
    private Source source(WorkerInstance instance) {
        DataSource primary = instance.dataSource();
        DataSource ofDefault = instances.get(WorkerInstances.DEFAULT).dataSource();
        if (dataSource == null || primary != ofDefault) {
            return new Source(instance, instance.jobQueries(), primary, primary, siblings(instance));
        }
        DataSource replica = beans.getBean(dataSource, DataSource.class);
        JobQueries queries = WorkerClient.jobQueries(
                replica, instance.schema(), instance.settings().recovery());
        return new Source(instance, queries, replica, primary, siblings(instance));
    }

    private List<WorkerInstance> siblings(WorkerInstance instance) {
        return instances.all().stream()
                .filter(other -> !other.name().equals(instance.name())
                        && other.dataSource() == instance.dataSource()
                        && other.schema().name().equals(instance.schema().name()))
                .toList();
    }
}
