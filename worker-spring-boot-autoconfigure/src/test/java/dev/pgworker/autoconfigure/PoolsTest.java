package dev.pgworker.autoconfigure;

import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import javax.sql.DataSource;

import com.zaxxer.hikari.HikariDataSource;
import com.zaxxer.hikari.util.Credentials;
import org.apache.commons.dbcp2.BasicDataSource;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.health.contributor.CompositeHealthContributor;
import org.springframework.boot.health.contributor.Health;
import org.springframework.boot.health.contributor.HealthIndicator;
import org.springframework.boot.health.contributor.Status;
import org.springframework.boot.test.context.assertj.AssertableApplicationContext;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.jdbc.datasource.DelegatingDataSource;
import org.springframework.jdbc.datasource.LazyConnectionDataSourceProxy;
import org.springframework.jdbc.datasource.lookup.AbstractRoutingDataSource;

import dev.pgworker.Worker;
import dev.pgworker.autoconfigure.health.WorkerHealthAutoConfiguration;
import dev.pgworker.autoconfigure.testing.Greetings;
import dev.pgworker.autoconfigure.testing.TestDatabase;
import dev.pgworker.job.JobScheduler;
import dev.pgworker.job.Task;

import static org.assertj.core.api.Assertions.assertThat;

/** What pools do to their connections holds on the worker's own: the role that logs in has no right on the schema, the one it becomes has. */
@Tag("thorough")
class PoolsTest {

    private static final Task<Greetings.Greeting> HELLO = Task.of("hello", Greetings.Greeting.class);

    @RegisterExtension
    final TestDatabase db = new TestDatabase();

    private String owner;
    private String login;

    @BeforeEach
    void createRoles() {
        owner = db.schema() + "_owner";
        login = db.schema() + "_login";
        db.sql("create role " + owner).update();
        db.sql("create role " + login + " noinherit login password 'secret' in role " + owner)
                .update();
        db.sql("create schema {schema} authorization " + owner).update();
        db.sql("create schema {schema}_app authorization " + owner).update();
    }

    @AfterEach
    void dropRoles() {
        db.sql("drop schema if exists {schema} cascade").update();
        db.sql("drop schema if exists {schema}_app cascade").update();
        db.sql("drop role " + login).update();
        db.sql("drop owned by " + owner).update();
        db.sql("drop role " + owner).update();
    }

    private String plainUrl() {
        return db.url().replaceFirst("\\?.*", "");
    }

    private ApplicationContextRunner application() {
        return db.runner()
                .withConfiguration(AutoConfigurations.of(WorkerHealthAutoConfiguration.class))
                .withBean(Greetings.class)
                .withPropertyValues(
                        "spring.datasource.url=" + plainUrl(),
                        "spring.datasource.username=" + login,
                        "spring.datasource.password=secret",
                        "pgworker.poll-interval=500ms",
                        "pgworker.recovery.heartbeat-interval=1s");
    }

    private void runsAJob(AssertableApplicationContext context) {
        assertThat(context).hasNotFailed();
        context.getBean(JobScheduler.class).addJob(HELLO, new Greetings.Greeting("Ada"));
        Awaitility.await().until(() -> context.getBean(Greetings.class).names.contains("Ada"));
        Awaitility.await().until(() -> health(context).getStatus().equals(Status.UP));
        assertThat(health(context).getDetails())
                .containsEntry("listening", true)
                .doesNotContainKey("failing");
        assertThat(db.sql("select count(*) from {schema}._private_workers")
                        .query(Integer.class)
                        .single())
                .isEqualTo(1);
    }

    private static Health health(AssertableApplicationContext context) {
        return ((HealthIndicator)
                        context.getBean(CompositeHealthContributor.class).getContributor("engine"))
                .health();
    }

    private String setRole() {
        return "set role " + owner;
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "spring.datasource.hikari.auto-commit=false",
                "spring.datasource.hikari.transaction-isolation=TRANSACTION_SERIALIZABLE",
                "spring.datasource.hikari.schema=pg_catalog",
                "spring.datasource.hikari.catalog=ignored",
                "spring.datasource.hikari.maximum-pool-size=2",
                "pgworker.listen.url=",
            })
    void hikariWithARoleThatIsSet(String property) {
        application()
                .withPropertyValues("spring.datasource.hikari.connection-init-sql=" + setRole())
                .withPropertyValues(property.equals("pgworker.listen.url=") ? property + plainUrl() : property)
                .run(this::runsAJob);
    }

    /** As secrets that are rotated, and tokens that expire: whoever has changed them tells the pool. */
    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void hikariWhoseUserChanges(boolean listensApart) {
        db.sql("create role " + login + "_next noinherit login password 'next' in role " + owner)
                .update();
        try {
            application()
                    .withPropertyValues("spring.datasource.hikari.connection-init-sql=" + setRole())
                    .withPropertyValues(
                            listensApart ? "pgworker.listen.url=" + plainUrl() : "spring.main.banner-mode=off")
                    .run(context -> {
                        runsAJob(context);
                        assertThat(usersOfTheWorkersOwnConnections()).containsOnly(login);

                        HikariDataSource pool = context.getBean(HikariDataSource.class);
                        pool.setCredentials(Credentials.of(login + "_next", "next"));
                        db.sql("alter role " + login + " nologin").update();
                        db.sql("select pg_terminate_backend(pid) from pg_stat_activity where usename = ?")
                                .param(login)
                                .query()
                                .listOfRows();

                        Awaitility.await()
                                .untilAsserted(() -> assertThat(usersOfTheWorkersOwnConnections())
                                        .hasSize(2)
                                        .containsOnly(login + "_next"));
                        runsAJob(context);
                    });
        } finally {
            db.sql("drop role " + login + "_next").update();
        }
    }

    private List<String> usersOfTheWorkersOwnConnections() {
        return db.sql("select usename from pg_stat_activity where application_name = 'pgworker' and usename like ?")
                .param(login + "%")
                .query(String.class)
                .list();
    }

    @Test
    void dbcp() {
        application()
                .withPropertyValues(
                        "spring.datasource.type=" + BasicDataSource.class.getName(),
                        "spring.datasource.dbcp2.connection-init-sqls=" + setRole())
                .run(this::runsAJob);
    }

    @Test
    void tomcat() {
        application()
                .withPropertyValues(
                        "spring.datasource.type=" + org.apache.tomcat.jdbc.pool.DataSource.class.getName(),
                        "spring.datasource.tomcat.init-s-q-l=" + setRole())
                .run(this::runsAJob);
    }

    private HikariDataSource pool() {
        HikariDataSource pool = new HikariDataSource();
        pool.setJdbcUrl(plainUrl());
        pool.setUsername(login);
        pool.setPassword("secret");
        return pool;
    }

    /** Sets the role each time, as an application does that has one for each tenant. */
    private DataSource wrapped(HikariDataSource pool) {
        return new DelegatingDataSource(pool) {
            @Override
            public Connection getConnection() throws SQLException {
                Connection connection = super.getConnection();
                try (Statement statement = connection.createStatement()) {
                    statement.execute(setRole());
                }
                return connection;
            }
        };
    }

    @Test
    void aWrapperThatSetsTheRole() {
        try (HikariDataSource pool = pool()) {
            application().withBean(DataSource.class, () -> wrapped(pool)).run(this::runsAJob);
        }
    }

    @Test
    void aSubclassThatSetsTheRole() {
        HikariDataSource subclass = new HikariDataSource() {
            @Override
            public Connection getConnection() throws SQLException {
                Connection connection = super.getConnection();
                try (Statement statement = connection.createStatement()) {
                    statement.execute(setRole());
                }
                return connection;
            }
        };
        subclass.setJdbcUrl(plainUrl());
        subclass.setUsername(login);
        subclass.setPassword("secret");
        application().withBean(DataSource.class, () -> subclass).run(this::runsAJob);
    }

    @Test
    void aDataSourceThatRoutes() {
        try (HikariDataSource pool = pool()) {
            AbstractRoutingDataSource routing = new AbstractRoutingDataSource() {
                @Override
                protected Object determineCurrentLookupKey() {
                    return "one";
                }
            };
            routing.setTargetDataSources(Map.of("one", wrapped(pool)));
            application().withBean(DataSource.class, () -> routing).run(this::runsAJob);
        }
    }

    @Test
    void aLazyProxyOfAPool() {
        try (HikariDataSource pool = pool()) {
            pool.setConnectionInitSql(setRole());
            application()
                    .withBean(DataSource.class, () -> new LazyConnectionDataSourceProxy(pool))
                    .run(this::runsAJob);
        }
    }

    @Test
    void aPoolOfReadOnlyConnectionsIsRefused() {
        application()
                .withPropertyValues(
                        "spring.datasource.hikari.connection-init-sql=" + setRole(),
                        "spring.datasource.hikari.read-only=true")
                .run(context ->
                        assertThat(context.getStartupFailure()).rootCause().hasMessageContaining("read-only"));
    }

    /** The wedge that this is about: the pool may use the schema, the connection of the heartbeat may not. */
    @Test
    void aWorkerThatCannotRegisterIsDown() {
        application()
                .withPropertyValues("spring.datasource.hikari.connection-init-sql=" + setRole())
                .withBean(
                        WorkerBuilderCustomizer.class,
                        () -> builder ->
                                builder.privateDataSource(SeparateConnections.like(poolWithoutInitialization())))
                .run(context -> {
                    Awaitility.await().until(() -> health(context).getStatus().equals(Status.DOWN));
                    assertThat(health(context).getDetails().get("problem"))
                            .asString()
                            .contains("The heartbeat has failed", "permission denied for schema " + db.schema());
                    assertThat(context.getBean(Worker.class).awaitStarted(Duration.ZERO))
                            .isFalse();
                });
    }

    private DataSource poolWithoutInitialization() {
        HikariDataSource unused = pool();
        unused.setMinimumIdle(0);
        return unused;
    }
}
