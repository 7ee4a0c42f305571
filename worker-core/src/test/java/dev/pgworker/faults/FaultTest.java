package dev.pgworker.faults;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.stream.LongStream;

import com.zaxxer.hikari.HikariDataSource;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIfSystemProperty;
import org.springframework.jdbc.core.simple.JdbcClient;

import dev.pgworker.schema.SchemaMigrator;
import dev.pgworker.schema.WorkerSchema;
import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;

/**
 * Looks for faults that nobody has thought of: many short runs of a worker whose database, executor and callbacks fail at
 * random. How many, and with which seeds, can be given: see docs/fault-tests.md.
 */
@Tag("thorough")
@Tag("any-postgres")
class FaultTest {

    private static final int MOST_REPORTS = Integer.getInteger("pgworker.faults.reports", 3);

    private static final WorkerSchema SCHEMA = TestSchema.uniqueName();
    private static HikariDataSource clean;

    @BeforeAll
    static void createSchema() {
        clean = TestSchema.pool(4);
        new SchemaMigrator(clean, SCHEMA).migrate();
        JdbcClient.create(clean)
                .sql(SCHEMA.in("create table {schema}.traces (job_id bigint, run int, primary key (job_id, run))"))
                .update();
    }

    @AfterAll
    static void dropSchema() {
        JdbcClient.create(clean).sql(SCHEMA.in("drop schema {schema} cascade")).update();
        clean.close();
    }

    /** Seeds that found a fault, of each sort some. */
    private static final long[] FAILED_ONCE = {
        1, 3, 5, 12, 16, 26, 28, 33, 35, 104, 107, 113, 116, 118, 125, 135, 139, 151, 1014, 3_000_007, 3_000_082,
        3_000_084
    };

    @Test
    void whatFailedOnceFailsNoMore() throws Exception {
        run(FAILED_ONCE);
    }

    @Test
    void everyJobEndsWhenTheFaultsStopAndNothingIsMissing() throws Exception {
        run(LongStream.rangeClosed(1_001, 1_020).filter(seed -> seed != 1_014).toArray());
    }

    @Test
    @EnabledIfSystemProperty(named = "pgworker.faults.runs", matches = "\\d+")
    void theSameWithSeedsOfWhichThereIsNoEnd() throws Exception {
        long first = Long.getLong("pgworker.faults.seed", new Random().nextInt(1_000_000_000));
        run(LongStream.range(first, first + Integer.getInteger("pgworker.faults.runs"))
                .toArray());
    }

    private static void run(long... seeds) throws Exception {
        List<String> reports = new ArrayList<>();
        List<Long> failed = new ArrayList<>();
        long begin = System.nanoTime();
        for (long seed : seeds) {
            String report = new FaultRun(seed, SCHEMA, clean).problems();
            if (report != null) {
                failed.add(seed);
                System.out.println(report);
                if (reports.size() < MOST_REPORTS) {
                    reports.add(report);
                }
            }
        }
        System.out.println(seeds.length + " runs with faults in " + (System.nanoTime() - begin) / 1_000_000_000
                + " s; seeds that failed: " + failed);
        assertThat(reports).as("what went wrong with seeds " + failed).isEmpty();
    }
}
