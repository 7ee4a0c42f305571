package dev.pgworker.testing;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.DisabledIfEnvironmentVariable;
import org.junit.jupiter.api.condition.EnabledIfSystemProperty;
import org.springframework.jdbc.core.simple.JdbcClient;
import org.springframework.jdbc.datasource.DriverManagerDataSource;

import dev.pgworker.testsupport.TestPostgres;

import static org.assertj.core.api.Assertions.assertThat;

/** The build runs the tests on the oldest and on the newest PostgreSQL supported, and not twice on the same. */
@DisabledIfEnvironmentVariable(named = "PGWORKER_TEST_JDBC_URL", matches = ".+")
class PostgresVersionTest {

    @Test
    @EnabledIfSystemProperty(named = "pgworker.test.postgres-version", matches = "\\d+")
    void testsRunOnTheVersionThatTheBuildSays() {
        int version = JdbcClient.create(new DriverManagerDataSource(TestPostgres.jdbcUrl()))
                .sql("select current_setting('server_version_num')::int / 10000")
                .query(Integer.class)
                .single();

        assertThat(version).isEqualTo(Integer.getInteger("pgworker.test.postgres-version"));
    }
}
