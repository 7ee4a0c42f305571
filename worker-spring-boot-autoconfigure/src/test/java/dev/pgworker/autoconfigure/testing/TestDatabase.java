package dev.pgworker.autoconfigure.testing;

import java.util.concurrent.atomic.AtomicInteger;

import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.autoconfigure.aop.AopAutoConfiguration;
import org.springframework.boot.jackson.autoconfigure.JacksonAutoConfiguration;
import org.springframework.boot.jdbc.autoconfigure.DataSourceAutoConfiguration;
import org.springframework.boot.jdbc.autoconfigure.DataSourceTransactionManagerAutoConfiguration;
import org.springframework.boot.jdbc.autoconfigure.JdbcClientAutoConfiguration;
import org.springframework.boot.jdbc.autoconfigure.JdbcTemplateAutoConfiguration;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.boot.transaction.autoconfigure.TransactionAutoConfiguration;
import org.springframework.jdbc.core.simple.JdbcClient;
import org.springframework.jdbc.datasource.DriverManagerDataSource;

import dev.pgworker.autoconfigure.JobSchedulerAutoConfiguration;
import dev.pgworker.autoconfigure.WorkerAutoConfiguration;
import dev.pgworker.testsupport.TestPostgres;

/**
 * Gives each test a schema for jobs, one for its application, and contexts that use them. Unless it is {@linkplain #installed() installed}
 * the first context installs the schema for jobs.
 */
public final class TestDatabase implements BeforeEachCallback, AfterEachCallback {

    private static final AtomicInteger counter = new AtomicInteger();

    private boolean installed;
    private InstalledCopy copy;
    private String url;
    private String schema;

    /**
     * Gives each test a database in which the schema for jobs is installed already, and nothing else has happened: installing it takes
     * long. A test that has changed nothing but rows leaves its database to the next one.
     */
    public TestDatabase installed() {
        installed = true;
        return this;
    }

    @Override
    public void beforeEach(ExtensionContext context) {
        if (installed) {
            copy = InstalledCopy.take();
            url = copy.url();
            schema = InstalledCopy.SCHEMA;
        } else {
            url = TestPostgres.jdbcUrl();
            schema = "a" + ProcessHandle.current().pid() + "_" + counter.incrementAndGet();
        }
    }

    @Override
    public void afterEach(ExtensionContext context) {
        if (installed) {
            copy.giveBack();
        } else {
            sql("drop schema if exists {schema} cascade").update();
            sql("drop schema if exists {schema}_app cascade").update();
        }
    }

    /** Returns the JDBC URL of the database, user and password included. */
    public String url() {
        return url;
    }

    public String schema() {
        return schema;
    }

    /** Returns a runner with the auto-configurations of an application that uses JDBC. */
    public ApplicationContextRunner runner() {
        return new ApplicationContextRunner()
                .withConfiguration(AutoConfigurations.of(
                        AopAutoConfiguration.class,
                        DataSourceAutoConfiguration.class,
                        DataSourceTransactionManagerAutoConfiguration.class,
                        TransactionAutoConfiguration.class,
                        JdbcTemplateAutoConfiguration.class,
                        JdbcClientAutoConfiguration.class,
                        JacksonAutoConfiguration.class,
                        JobSchedulerAutoConfiguration.class,
                        WorkerAutoConfiguration.class))
                .withPropertyValues(
                        "spring.datasource.url=" + url,
                        "spring.datasource.hikari.minimum-idle=0",
                        "spring.datasource.hikari.connection-timeout=30000",
                        "pgworker.schema.name=" + schema);
    }

    /** Returns a statement, outside every application, in which {schema} stands for the schema's name. */
    public JdbcClient.StatementSpec sql(String text) {
        return JdbcClient.create(new DriverManagerDataSource(url)).sql(text.replace("{schema}", schema));
    }

    /** Ends and refuses all connections to the test's own database, or allows them again. */
    public void away(boolean away) {
        JdbcClient server = JdbcClient.create(new DriverManagerDataSource(TestPostgres.jdbcUrl()));
        String database = url.replaceFirst(".*/([^/?]+).*", "$1");
        server.sql("alter database " + database + " allow_connections " + !away).update();
        if (away) {
            server.sql("select pg_terminate_backend(pid) from pg_stat_activity where datname = ?")
                    .param(database)
                    .query()
                    .listOfRows();
        }
    }

    public int jobs() {
        return sql("select count(*) from {schema}.jobs").query(Integer.class).single();
    }

    /** Drops the schema for jobs, for a test of what installs it. */
    public void uninstall() {
        sql("drop schema {schema} cascade").update();
    }

    public boolean isInstalled() {
        return sql("select to_regclass('{schema}.jobs') is not null")
                .query(Boolean.class)
                .single();
    }
}
