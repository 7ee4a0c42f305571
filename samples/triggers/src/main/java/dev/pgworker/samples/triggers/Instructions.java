package dev.pgworker.samples.triggers;

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
            String address = database.getURL().split("\\?", 2)[0].replace("jdbc:", "");
            log.info("""
                    Ready. Write to the table from any program, and watch this log:

                      psql '{}?user={}'
                      insert into users (name, email) values ('Grace', 'grace@example.org');
                      update users set email = 'hopper@example.org' where name = 'Grace';
                    """, address, database.getUserName());
        }
    }
}
