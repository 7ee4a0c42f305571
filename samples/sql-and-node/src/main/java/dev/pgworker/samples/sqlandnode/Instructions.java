package dev.pgworker.samples.sqlandnode;

import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.SQLException;
import javax.sql.DataSource;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.boot.context.event.ApplicationReadyEvent;
import org.springframework.context.event.EventListener;
import org.springframework.stereotype.Component;

/** Says at start how to try the application. */
@Component
class Instructions {

    private static final Logger log = LoggerFactory.getLogger(Instructions.class);

    private final DataSource dataSource;

    Instructions(DataSource dataSource) {
        this.dataSource = dataSource;
    }

    @EventListener(ApplicationReadyEvent.class)
    void print() throws SQLException {
        try (Connection connection = dataSource.getConnection()) {
            DatabaseMetaData database = connection.getMetaData();
            // Parameters may hold a password.
            String jdbcUrl = database.getURL().split("\\?", 2)[0];
            String address = jdbcUrl.replace("jdbc:", "") + "?user=" + database.getUserName();
            log.info("""
                    Ready. Add jobs in another terminal, in samples/sql-and-node, and watch this log:

                      psql '{}' -f enqueue.sql

                      npm install
                      DATABASE_URL='{}' node enqueue.js
                    """, address, address);
        }
    }
}
