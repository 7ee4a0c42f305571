package dev.pgworker.testing;

import org.springframework.jdbc.core.simple.JdbcClient;
import org.springframework.jdbc.datasource.DriverManagerDataSource;

import dev.pgworker.testsupport.TestPostgres;

/** A database for one test, which may take it away from those who use it. */
public final class OwnDatabase {

    private final String name = TestSchema.uniqueName().name();
    private final JdbcClient server = JdbcClient.create(new DriverManagerDataSource(TestPostgres.jdbcUrl()));

    private final String options;

    public OwnDatabase() {
        this("");
    }

    /** Makes one with options of {@code create database}. */
    public OwnDatabase(String options) {
        this.options = options;
    }

    /** Creates the database, without a schema. */
    public void create() {
        server.sql("create database " + name + " " + options).update();
    }

    public String url() {
        return TestPostgres.jdbcUrl().replaceFirst("/[^/?]*(\\?|$)", "/" + name + "$1");
    }

    /** Returns a statement on the server's connection, which is not in this database. */
    public JdbcClient.StatementSpec onServer(String sql) {
        return server.sql(sql);
    }

    /** Refuses connections from this moment on; those that exist go on. */
    public void forbidConnections() {
        server.sql("alter database " + name + " allow_connections false").update();
    }

    public void allowConnections() {
        server.sql("alter database " + name + " allow_connections true").update();
    }

    public boolean allowsConnections() {
        return server.sql("select datallowconn from pg_database where datname = ?")
                .param(name)
                .query(Boolean.class)
                .single();
    }

    /** Ends all connections. */
    public void cut() {
        server.sql("select pg_terminate_backend(pid) from pg_stat_activity where datname = ?")
                .param(name)
                .query()
                .listOfRows();
    }

    /** Ends all connections and drops the database. */
    public void drop() {
        cut();
        server.sql("drop database " + name).update();
    }
}
