package dev.pgworker.dashboard;

import java.sql.SQLException;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

import org.junit.jupiter.api.Test;
import org.springframework.dao.CannotAcquireLockException;

import static org.assertj.core.api.Assertions.assertThat;

class DatabaseWorkTest {

    @Test
    void changesThatWaitForLocksLeaveRoomForReads() {
        DatabaseWork work = new DatabaseWork();
        CountDownLatch locked = new CountDownLatch(1);
        List<CompletableFuture<Boolean>> changes = Stream.generate(() -> CompletableFuture.supplyAsync(
                        () -> work.change(() -> locked.await(5, TimeUnit.MINUTES)), task -> new Thread(task).start()))
                .limit(3)
                .toList();

        Throwable refused = CompletableFuture.anyOf(changes.toArray(CompletableFuture[]::new))
                .handle((done, failure) -> failure.getCause())
                .orTimeout(1, TimeUnit.MINUTES)
                .join();
        assertThat(refused).isInstanceOf(Refusal.class).hasMessageContaining("rows locked by another transaction");
        assertThat(work.read(() -> "read")).isEqualTo("read");

        locked.countDown();
        assertThat(changes)
                .filteredOn(change ->
                        change.handle((done, failure) -> failure == null).join())
                .hasSize(2);
        assertThat(work.change(() -> "changed")).isEqualTo("changed");
        work.stop();
    }

    @Test
    void aLockTimeoutIsNoOutage() {
        SQLException locked = new SQLException("canceling statement due to lock timeout", "55P03");

        assertThat(Failures.explain(new CannotAcquireLockException("change", locked)))
                .hasMessageContaining("Another transaction has locked what this needs");
    }
}
