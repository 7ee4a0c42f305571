package dev.pgworker.autoconfigure;

import java.lang.annotation.Annotation;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Predicate;
import javax.sql.DataSource;

import org.jspecify.annotations.Nullable;
import org.springframework.aop.scope.ScopedProxyUtils;
import org.springframework.beans.factory.BeanFactoryUtils;
import org.springframework.beans.factory.NoUniqueBeanDefinitionException;
import org.springframework.beans.factory.config.ConfigurableListableBeanFactory;
import org.springframework.boot.context.properties.source.InvalidConfigurationPropertyValueException;
import org.springframework.boot.jdbc.autoconfigure.JdbcConnectionDetails;
import org.springframework.jdbc.datasource.TransactionAwareDataSourceProxy;
import org.springframework.orm.jpa.JpaTransactionManager;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.support.ResourceTransactionManager;
import org.springframework.util.ClassUtils;

/** Chooses among the application's data sources and transaction managers. */
final class DatabaseChoice {

    private static final boolean JPA_PRESENT = ClassUtils.isPresent(
            "org.springframework.orm.jpa.JpaTransactionManager", DatabaseChoice.class.getClassLoader());

    private final ConfigurableListableBeanFactory beans;

    DatabaseChoice(ConfigurableListableBeanFactory beans) {
        this.beans = beans;
    }

    /**
     * Returns the database of the default worker: that of the property, of the qualifier, of the primary or of the only data
     * source.
     *
     * @throws WorkerConfigurationException if none of that decides
     */
    WorkerDatabase ofDefault(WorkerProperties properties) {
        if (properties.dataSource() != null) {
            return database(named("pgworker.data-source", properties.dataSource(), DataSource.class));
        }
        Map<String, DataSource> marked = marked(DataSource.class, WorkerDataSource.class);
        if (marked.size() > 1) {
            throw new WorkerConfigurationException(
                    "Several data sources are marked with @WorkerDataSource: " + String.join(", ", marked.keySet())
                            + ".",
                    "Keep the annotation on one of them.");
        }
        return database(
                marked.isEmpty() ? primary() : marked.values().iterator().next());
    }

    /**
     * Returns the database of a worker with a data source of its own.
     *
     * @param property the property that names the bean
     */
    WorkerDatabase named(String property, String bean) {
        return database(named(property, bean, DataSource.class));
    }

    private DataSource primary() {
        DataSource primary = null;
        try {
            primary = beans.getBeanProvider(DataSource.class).getIfAvailable();
        } catch (NoUniqueBeanDefinitionException e) {
            // Told below, with those that are no candidates by default.
        }
        if (primary == null) {
            throw new WorkerConfigurationException(
                    "It is not clear which data source the worker is to use: "
                            + String.join(", ", names(DataSource.class)) + ".",
                    "Mark one with @WorkerDataSource or @Primary, or set pgworker.data-source to the name of its bean.");
        }
        return primary;
    }

    /** The details that Spring Boot knows are those of the data source that it would choose itself. */
    private WorkerDatabase database(DataSource dataSource) {
        JdbcConnectionDetails details =
                dataSource == unique(DataSource.class) ? unique(JdbcConnectionDetails.class) : null;
        return new WorkerDatabase(dataSource, details == null ? SeparateConnections.detailsOf(dataSource) : details);
    }

    /**
     * Returns what manages the transactions of a data source: what the property names, what is marked for the default worker,
     * or whatever is known to manage that data source. Null if there is none.
     *
     * @param property the property that may name the bean
     */
    @Nullable PlatformTransactionManager transactionManager(
            DataSource dataSource, String property, @Nullable String bean, boolean ofDefault) {
        if (bean != null) {
            return fitting(bean, named(property, bean, PlatformTransactionManager.class), dataSource);
        }
        Map<String, PlatformTransactionManager> marked =
                ofDefault ? marked(PlatformTransactionManager.class, WorkerTransactionManager.class) : Map.of();
        if (marked.size() > 1) {
            throw new WorkerConfigurationException(
                    "Several transaction managers are marked with @WorkerTransactionManager: "
                            + String.join(", ", marked.keySet()) + ".",
                    "Keep the annotation on one of them.");
        }
        if (!marked.isEmpty()) {
            Map.Entry<String, PlatformTransactionManager> one =
                    marked.entrySet().iterator().next();
            return fitting(one.getKey(), one.getValue(), dataSource);
        }
        PlatformTransactionManager primary = unique(PlatformTransactionManager.class);
        Boolean fits = primary == null ? Boolean.FALSE : manages(primary, dataSource);
        if (Boolean.TRUE.equals(fits) || (fits == null && dataSource == unique(DataSource.class))) {
            return primary;
        }
        List<PlatformTransactionManager> fitting = all(PlatformTransactionManager.class, name -> true).values().stream()
                .filter(manager -> Boolean.TRUE.equals(manages(manager, dataSource)))
                .toList();
        return fitting.size() == 1 ? fitting.get(0) : null;
    }

    /** With one of another data source a handler that is rolled back would lose its job. */
    private static PlatformTransactionManager fitting(
            String bean, PlatformTransactionManager manager, DataSource dataSource) {
        if (Boolean.FALSE.equals(manages(manager, dataSource))) {
            throw new WorkerConfigurationException(
                    "The transaction manager " + bean + " manages another data source than the worker's.",
                    "Name or mark the transaction manager of the worker's data source.");
        }
        return manager;
    }

    /** Returns null if that cannot be told, as of JTA. */
    private static @Nullable Boolean manages(PlatformTransactionManager manager, DataSource dataSource) {
        DataSource managed = null;
        if (JPA_PRESENT) {
            managed = Jpa.dataSource(manager);
        }
        if (manager instanceof ResourceTransactionManager resource
                && resource.getResourceFactory() instanceof DataSource factory) {
            managed = factory;
        }
        return managed == null ? null : plain(managed) == plain(dataSource);
    }

    /** Apart, so that the outer class loads without JPA. */
    private static final class Jpa {

        static @Nullable DataSource dataSource(PlatformTransactionManager manager) {
            return manager instanceof JpaTransactionManager jpa ? jpa.getDataSource() : null;
        }
    }

    private static DataSource plain(DataSource dataSource) {
        DataSource target =
                dataSource instanceof TransactionAwareDataSourceProxy proxy ? proxy.getTargetDataSource() : null;
        return target == null ? dataSource : target;
    }

    private <T> T named(String property, String bean, Class<T> type) {
        if (!beans.containsBean(bean) || !beans.isTypeMatch(bean, type)) {
            throw new InvalidConfigurationPropertyValueException(
                    property,
                    bean,
                    "It must be the name of a " + type.getSimpleName() + " bean: " + String.join(", ", names(type))
                            + ".");
        }
        return beans.getBean(bean, type);
    }

    private <T> @Nullable T unique(Class<T> type) {
        return beans.getBeanProvider(type).getIfUnique();
    }

    private <T> Map<String, T> marked(Class<T> type, Class<? extends Annotation> mark) {
        return all(
                type,
                name -> beans.findAnnotationOnBean(name, mark) != null
                        || isMarked(ScopedProxyUtils.getTargetBeanName(name), mark));
    }

    /** The annotations of a bean method with a scoped proxy are those of the proxy's target. */
    private boolean isMarked(String target, Class<? extends Annotation> mark) {
        return beans.containsBean(target) && beans.findAnnotationOnBean(target, mark) != null;
    }

    private <T> Map<String, T> all(Class<T> type, Predicate<String> wanted) {
        Map<String, T> all = new LinkedHashMap<>();
        names(type).stream().filter(wanted).forEach(name -> all.put(name, beans.getBean(name, type)));
        return all;
    }

    private List<String> names(Class<?> type) {
        return Arrays.stream(BeanFactoryUtils.beanNamesForTypeIncludingAncestors(beans, type, true, false))
                .filter(name -> !ScopedProxyUtils.isScopedTarget(name))
                .toList();
    }
}
