package dev.pgworker;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;

/** What callers of the other Graphile Workers' functions see besides rows of jobs. */
class PeerInterfaceTest {

    @RegisterExtension
    final TestSchema db = new TestSchema();

    @Test
    void functionsWithoutAResultReturnNull() {
        for (String call : db.sql("""
                select p.proname || '(' || (select string_agg('null::' || format_type(a.type, null), ', ' order by a.place)
                    from unnest(p.proargtypes) with ordinality a(type, place)) || ')'
                from pg_proc p
                where p.pronamespace = '{schema}'::regnamespace and p.proname not like 'pgworker%'
                  and p.prorettype = 'void'::regtype""").query(String.class).list()) {
            String known = call.replace("null::text,", "'w'::text,").replace("(null::text)", "('w')");
            assertThat(db.sql("select {schema}." + known + " is null")
                            .query(Boolean.class)
                            .single())
                    .as(known)
                    .isTrue();
        }
    }

    @Test
    void forceUnlockWorkersLeavesTheTimeOfTheLastChange() {
        db.sql("select {schema}.add_job('t', queue_name => 'q')").query().listOfRows();
        db.sql("""
                update {schema}._private_jobs
                set locked_at = now(), locked_by = 'w', attempts = 1, updated_at = timestamptz '2020-01-01 00:00:00+00'""").update();

        db.sql("select {schema}.force_unlock_workers('{w}')").query().listOfRows();

        assertThat(db.sql("""
                        select count(*) from {schema}._private_jobs
                        where locked_at is null and attempts = 1 and updated_at = timestamptz '2020-01-01 00:00:00+00'""").query(Long.class).single()).isEqualTo(1);
    }
}
