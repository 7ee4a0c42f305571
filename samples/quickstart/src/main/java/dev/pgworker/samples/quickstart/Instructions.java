package dev.pgworker.samples.quickstart;

import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.SQLException;
import javax.sql.DataSource;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.boot.context.event.ApplicationReadyEvent;
import org.springframework.context.event.EventListener;
import org.springframework.core.env.Environment;
import org.springframework.stereotype.Component;

import dev.pgworker.schema.WorkerSchema;

/** Says at start how to try the application. */
@Component
class Instructions {

    private static final Logger log = LoggerFactory.getLogger(Instructions.class);

    private final Environment environment;
    private final DataSource dataSource;
    private final WorkerSchema schema;

    Instructions(Environment environment, DataSource dataSource, WorkerSchema schema) {
        this.environment = environment;
        this.dataSource = dataSource;
        this.schema = schema;
    }

    @EventListener(ApplicationReadyEvent.class)
    void print() throws SQLException {
        try (Connection connection = dataSource.getConnection()) {
            DatabaseMetaData database = connection.getMetaData();
            // Parameters may hold a password.
            String jdbcUrl = database.getURL().split("\\?", 2)[0];
            String psqlAddress = jdbcUrl.replace("jdbc:", "") + "?user=" + database.getUserName();
            log.info("""
                    Ready. Add a job over HTTP, or with SQL from any program:

                      curl -H 'Content-Type: application/json' -d '{"name":"Ada"}' http://localhost:{}/greetings

                      psql '{}' -c "select {}.add_job('hello', json_build_object('name', 'Bobby Tables'))"

                    Database: {}
                    """, environment.getProperty("local.server.port"), psqlAddress, schema.name(), jdbcUrl);
        }
    }
}
