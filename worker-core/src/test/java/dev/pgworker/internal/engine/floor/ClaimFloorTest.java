package dev.pgworker.internal.engine.floor;

import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.IntStream;
import java.util.stream.LongStream;

import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

import dev.pgworker.internal.store.ClaimStart;
import dev.pgworker.internal.store.Claimed;
import dev.pgworker.internal.store.FloorScan;
import dev.pgworker.internal.store.IndexPosition;
import dev.pgworker.job.Job;
import dev.pgworker.testing.TestJob;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

@Tag("any-postgres")
class ClaimFloorTest {

    private static final Instant NOW = Instant.parse("2026-01-01T00:00:00Z");
    private static final Instant EDGE = NOW.minusMillis(210);
    private static final Duration TOOK = Duration.ofMillis(10);

    private final AtomicInteger scansWanted = new AtomicInteger();
    private final ClaimFloor floor = new ClaimFloor(scansWanted::incrementAndGet);

    @Test
    void isNotInUseBeforeALookHasToldThePriorities() throws SQLException {
        assertThat(floor.current(List.of(), true)).isNull();
        assertThat(floor.levels()).isNull();

        scan(List.of(0, 3));

        ClaimStart start = current();
        assertThat(start.floors())
                .hasSize(2)
                .containsEntry(0, IndexPosition.FIRST)
                .containsEntry(3, IndexPosition.FIRST);
        assertThat(floor.levels()).containsExactly(0, 3);
    }

    @Test
    void beginsWhereTheClaimBeforeTheFirstLookHasEnded() throws SQLException {
        claim(true, job(1, 0, -500, null), job(2, 3, -400, null));

        scan(List.of(0, 3, 7));

        assertThat(current().floors())
                .containsEntry(0, at(EDGE))
                .containsEntry(3, new IndexPosition(NOW.minusSeconds(400), 2))
                .containsEntry(7, IndexPosition.FIRST);
    }

    @Test
    void beginsWhereAClaimHasEndedThatWasUnderWayDuringTheFirstLook() throws SQLException {
        assertThat(floor.current(List.of(), true)).isNull();
        scan(List.of(0, 3));
        floor.announced(EDGE.minusMillis(5), List.of(3), List.of());

        assertThat(floor.claimed(null, claimed(job(1, 0, -1, null)), false, TOOK))
                .isTrue();

        assertThat(current().floors()).containsEntry(0, at(EDGE)).containsEntry(3, at(EDGE.minusMillis(5)));
    }

    @Test
    void whatIsAnnouncedBetweenTheFirstClaimAndTheFirstLookIsLookedFor() throws SQLException {
        claim(false, job(1, 0, -1, null));
        floor.announced(EDGE.minusMillis(5), List.of(3), List.of());

        scan(List.of(0, 3));

        assertThat(current().floors().get(3).runAt()).isBeforeOrEqualTo(EDGE.minusMillis(5));
    }

    @Test
    void aClaimFromBeforeEverythingWasForgottenSetsNoFloor() throws SQLException {
        claim(false, job(1, 0, -1, null));
        floor.forget();

        scan(List.of(0));

        assertThat(current().floors()).containsEntry(0, IndexPosition.FIRST);
    }

    @Test
    void aClaimThatBringsAllRaisesItToItsOwnTimeLessTheLag() throws SQLException {
        scan(List.of(0, 3));

        claim(false, job(1, 0, -500, null));

        assertThat(current().floors()).containsEntry(0, at(EDGE)).containsEntry(3, at(EDGE));
    }

    @Test
    void aFullClaimRaisesItToItsLastJobWithoutAQueue() throws SQLException {
        scan(List.of(0, 3, 7));

        claim(true, job(1, 0, -500, null), job(2, 3, -500, null), job(3, 3, -400, null), job(4, 7, -9, "queue"));

        assertThat(current().floors())
                .containsEntry(0, at(EDGE))
                .containsEntry(3, new IndexPosition(NOW.minusSeconds(400), 3))
                .containsEntry(7, IndexPosition.FIRST);
    }

    @Test
    void aFullClaimOfJobsThatHaveJustBecomeDueRaisesItNoFurtherThanTheEdge() throws SQLException {
        scan(List.of(3));

        claim(true, job(1, 3, 0, null));

        assertThat(current().floors()).containsEntry(3, at(EDGE));
    }

    @Test
    void aFullClaimOfJobsOfQueuesSaysNothing() throws SQLException {
        scan(List.of(3));

        claim(true, job(1, 0, -500, "queue"));

        assertThat(current().floors()).containsEntry(3, IndexPosition.FIRST);
    }

    @Test
    void aJobThatIsAnnouncedBelowLowersIt() throws SQLException {
        scan(List.of(0, 3));
        claim(false);

        floor.announced(EDGE.plusMillis(1), List.of(0), List.of());
        assertThat(current().floors()).containsEntry(0, at(EDGE)).containsEntry(3, at(EDGE));
        floor.announced(EDGE.minusMillis(5), List.of(0), List.of());
        floor.announced(EDGE.minusMillis(2), List.of(0), List.of());

        assertThat(current().floors()).containsEntry(0, at(EDGE.minusMillis(5))).containsEntry(3, at(EDGE));
        claim(false);
        assertThat(current().floors()).containsEntry(0, at(EDGE));
    }

    @Test
    void whatIsAnnouncedDuringAClaimIsNotLostWithItsEnd() throws SQLException {
        scan(List.of(0));
        claim(false);
        ClaimStart start = current();

        floor.announced(EDGE.minusMillis(5), List.of(0), List.of());
        floor.announced(NOW, List.of(4), List.of());
        floor.claimed(start, claimed(), false, TOOK);

        assertThat(current().floors())
                .containsEntry(0, at(EDGE.minusMillis(5)))
                .containsEntry(4, new IndexPosition(Instant.MIN, Long.MIN_VALUE));
    }

    @Test
    void anUnknownPlaceIsReasonForALookAndAnAnnouncementOfQueuesIsNot() throws SQLException {
        scan(List.of(0));
        assertThat(floor.nanosUntilScan()).isEqualTo(Long.MAX_VALUE);

        floor.announced(null, List.of(), List.of());
        assertThat(floor.nanosUntilScan()).isEqualTo(Long.MAX_VALUE);
        floor.announced(null, List.of(1), List.of());
        assertThat(floor.nanosUntilScan()).isLessThan(Duration.ofMillis(21).toNanos());
    }

    @Test
    void aJobFarBelowWaitsForALookWhereThatTakesTime() throws Exception {
        floor.scanBelow(start -> slowly());
        claim(false);

        floor.announced(EDGE.minusSeconds(9), List.of(0), List.of());
        floor.announced(EDGE.minusSeconds(11), List.of(0), List.of());

        assertThat(current().floors()).containsEntry(0, at(EDGE.minusSeconds(9)));
        assertThat(floor.nanosUntilScan())
                .as("for the first reason")
                .isLessThan(Duration.ofMillis(21).toNanos());
        long begin = System.nanoTime();
        floor.scanBelow(start -> slowly());
        floor.announced(null, null, List.of());
        long wait = floor.nanosUntilScan();
        assertThat(wait + System.nanoTime() - begin)
                .as("for the next one, from the beginning of the last one")
                .isGreaterThan(Duration.ofMillis(300).toNanos());
    }

    /** A look that takes longer. */
    private static FloorScan slowly() {
        return slowly(30);
    }

    private static FloorScan slowly(int millis) {
        long end = System.nanoTime() + Duration.ofMillis(millis).toNanos();
        while (System.nanoTime() < end) {
            LockSupport.parkNanos(end - System.nanoTime());
        }
        return new FloorScan(List.of(0), List.of());
    }

    @Test
    void aSingleLookThatTakesLongDoesNotPutOffTheNextOne() throws Exception {
        scan(List.of(0));
        floor.scanBelow(start -> slowly(400));
        claim(false, job(1, 0, -1, null));

        assertThat(floor.nanosUntilScan()).isLessThan(Duration.ofSeconds(10).toNanos());

        floor.scanBelow(start -> slowly(400));
        claim(false, job(2, 0, -1, null));

        assertThat(floor.nanosUntilScan())
                .as("the second one")
                .isGreaterThan(Duration.ofSeconds(10).toNanos());
    }

    @Test
    void whatIsAnnouncedDuringAClaimThatRaisesTheFloorIsLookedFor() throws SQLException {
        scan(List.of(0));
        claim(false);
        ClaimStart start = current();
        Instant announced = NOW.plusSeconds(1);

        floor.announced(announced, List.of(0), List.of());
        Claimed later = new Claimed(List.of(), List.of(), false, NOW.plusSeconds(2), null);
        assertThat(floor.claimed(start, later, false, TOOK)).isTrue();

        assertThat(current().floors()).containsEntry(0, at(announced));
        assertThat(floor.claimed(current(), later, false, TOOK)).isFalse();
        assertThat(current().floors()).containsEntry(0, at(EDGE.plusSeconds(2)));
    }

    @Test
    void aClaimSaysNothingAboutFloorsThatWereSetAnewMeanwhile() throws SQLException {
        scan(List.of(0));
        claim(false);
        ClaimStart start = current();

        floor.forget();
        scan(List.of(0));
        floor.claimed(start, claimed(), false, TOOK);

        assertThat(current().floors()).containsEntry(0, IndexPosition.FIRST);
    }

    @Test
    void theFirstLookAfterEverythingWasForgottenIsMadeAtOnce() throws SQLException {
        floor.scanBelow(start -> slowly(400));
        claim(false);
        floor.scanBelow(start -> slowly(400));
        claim(false);
        assertThat(floor.nanosUntilScan()).isGreaterThan(Duration.ofMillis(500).toNanos());

        floor.forget();
        claim(false);

        assertThat(floor.nanosUntilScan()).isLessThan(Duration.ofMillis(21).toNanos());
    }

    @Test
    void tooManyPrioritiesAreNoReasonForALookAfterTheOther() throws SQLException {
        assertThat(floor.scanBelow(
                        start -> new FloorScan(IntStream.range(0, 33).boxed().toList(), List.of())))
                .isFalse();
        claim(false);

        assertThat(floor.nanosUntilScan()).isGreaterThan(Duration.ofSeconds(1).toNanos());
    }

    @Test
    void whereALookIsFullClaimsFindTheRest() throws SQLException {
        scan(List.of(0));
        claim(false);

        assertThat(floor.scanBelow(start -> new FloorScan(
                        List.of(0),
                        LongStream.range(0, ClaimFloor.MOST_STRAYS).boxed().toList())))
                .isTrue();

        assertThat(current().strays()).isEmpty();
        assertThat(current().floors()).containsEntry(0, IndexPosition.FIRST);
    }

    @Test
    void theClaimOfAPollLooksAtAllJobsInsteadOfAScanWhileNothingIsClaimed() throws SQLException {
        assertThat(poll()).as("before the first scan").isNull();
        assertThat(floor.nanosUntilScan()).isLessThan(Duration.ofMillis(21).toNanos());
        scan(List.of(0, 3));

        for (int n = 0; n < 3; n++) {
            assertThat(poll()).isNull();
            assertThat(floor.nanosUntilScan()).isEqualTo(Long.MAX_VALUE);
        }
        assertThat(current().floors()).containsEntry(0, at(EDGE)).containsEntry(3, at(EDGE));
        assertThat(floor.nanosUntilScan())
                .as("after a claim from the floors")
                .isBetween(1L, Duration.ofSeconds(5).toNanos());
    }

    @Test
    void whatAClaimOfAPollHasBroughtIsAReasonForAScan() throws SQLException {
        scan(List.of(0));

        ClaimStart start = floor.current(List.of(), true, true);
        assertThat(start).isNull();
        // Of a priority that no scan has seen, and there may be more.
        floor.claimed(start, claimed(job(1, 7, -5, null)), true, TOOK);

        assertThat(floor.current(List.of(), true, true)).isNotNull();
        assertThat(floor.nanosUntilScan())
                .isLessThanOrEqualTo(Duration.ofSeconds(1).toNanos());
    }

    @Test
    void claimsOfAPollBeginAtTheFloorsWhereAScanTakesTime() throws SQLException {
        scan(List.of(0));
        floor.scanBelow(start -> slowly());
        assertThat(poll()).as("the last scan").isNotNull();

        scan(List.of(0));
        assertThat(poll()).isNull();
        floor.claimed(floor.current(List.of(), true, true), claimed(), false, Duration.ofMillis(11));
        assertThat(poll()).as("one that took long").isNotNull();
    }

    @Test
    void claimsOfAPollBeginAtTheFloorsWhereThereIsAnythingElseToLookFor() throws SQLException {
        scan(List.of(0));
        floor.announced(null, null, List.of());
        assertThat(poll()).as("a scan is wanted").isNotNull();

        scan(List.of(0));
        floor.announced(NOW, List.of(0), List.of());
        assertThat(poll()).as("there may be many").isNotNull();
        assertThat(poll()).as("until the next scan").isNotNull();

        floor.scanBelow(start -> new FloorScan(List.of(0), List.of(7L)));
        assertThat(floor.current(List.of(), true, true)).as("strays").isNotNull();
    }

    /** Makes the claim of a poll, which brings nothing; returns where it looked. */
    private @Nullable ClaimStart poll() {
        ClaimStart start = floor.current(List.of(), true, true);
        floor.claimed(start, claimed(), false, TOOK);
        return start;
    }

    @Test
    void straysAreLookedAtUntilAClaimHasHadRoomForThem() throws SQLException {
        scan(List.of(0));
        assertThat(floor.scanBelow(start -> new FloorScan(List.of(0), List.of(7L, 8L))))
                .isTrue();

        assertThat(current().strays()).containsExactly(7L, 8L);
        claim(true, job(7, 0, -900, null));

        assertThat(current().strays()).containsExactly(8L);
        assertThat(current().floors()).as("a stray says nothing").containsEntry(0, IndexPosition.FIRST);
        claim(false);
        assertThat(current().strays()).isEmpty();
    }

    @Test
    void jobsThatAreAnnouncedWithTheirIdsAreStraysWhereALookTakesTime() throws SQLException {
        JobAnnouncements announcements = new JobAnnouncements(floor, new QueueFloors(() -> {}));
        long at = EDGE.minusSeconds(11).toEpochMilli();
        String text = "{\"r\":0.5,\"count\":2,\"at\":" + at + ",\"p\":[0],\"ids\":[7,8]}";
        scan(List.of(0));
        claim(false);
        announcements.made(text);
        assertThat(current().strays()).as("the floor is lowered").isEmpty();

        floor.scanBelow(start -> slowly());
        floor.scanBelow(start -> slowly());
        claim(false);
        announcements.made(text);
        announcements.made(text.replace("[7,8]", "[9]"));
        announcements.made(text.replace("[0]", "[]").replace("[7,8]", "[10]"));

        assertThat(current().strays()).containsExactly(7L, 8L, 9L);
        assertThat(current().floors()).containsEntry(0, at(EDGE));
    }

    @Test
    void idsThatAreNoneAreNoStrays() throws SQLException {
        JobAnnouncements announcements = new JobAnnouncements(floor, new QueueFloors(() -> {}));
        floor.scanBelow(start -> slowly());
        floor.scanBelow(start -> slowly());
        claim(false);
        long at = EDGE.minusSeconds(11).toEpochMilli();

        for (String ids :
                List.of("7", "[]", "null", "[\"7\"]", "[7,1.5]", "[99999999999999999999]", "{\"7\":7.5}", "[[7]]")) {
            announcements.made("{\"at\":" + at + ",\"p\":[0],\"ids\":" + ids + "}");
            assertThat(current().strays()).as(ids).isEmpty();
        }
    }

    @Test
    void aClaimLooksAtSoManyStraysAndTheNextOneAtOthers() throws SQLException {
        floor.scanBelow(start -> slowly());
        floor.scanBelow(start -> slowly());
        claim(false);
        int most = ClaimFloor.MOST_SOUGHT;
        floor.announced(
                EDGE, List.of(0), LongStream.rangeClosed(1, most + 2).boxed().toList());
        floor.announced(
                EDGE,
                List.of(0),
                LongStream.rangeClosed(-ClaimFloor.MOST_STRAYS, 0).boxed().toList());

        ClaimStart start = current();
        assertThat(start.strays()).hasSize(most);
        assertThat(floor.claimed(start, claimed(), false, TOOK)).as("others").isTrue();

        assertThat(current().strays()).containsExactly(most + 1L, most + 2L);
        assertThat(floor.claimed(current(), claimed(), false, TOOK)).isFalse();
    }

    @Test
    void otherFlagsAndTasksEndIt() throws SQLException {
        scan(List.of(0));
        assertThat(floor.current(List.of("flag"), true)).isNull();
        scan(List.of(0));
        assertThat(floor.current(List.of("flag"), true)).isNotNull();
        floor.forget();
        assertThat(floor.current(List.of("flag"), true)).isNull();
    }

    @Test
    void aLookThatBeganBeforeEverythingWasForgottenIsMadeAgain() throws SQLException {
        floor.scanBelow(start -> {
            floor.forget();
            return new FloorScan(List.of(0), List.of());
        });

        assertThat(floor.current(List.of(), true)).isNull();
        assertThat(floor.nanosUntilScan()).isLessThan(Duration.ofMillis(21).toNanos());
    }

    @Test
    void withoutLooksItIsNotInUse() throws SQLException {
        scan(List.of(0));
        claim(false);

        assertThatThrownBy(() -> floor.scanBelow(start -> {
                    throw new SQLException("on purpose");
                }))
                .hasMessage("on purpose");

        assertThat(floor.current(List.of(), true)).isNull();
        claim(false);
        assertThat(floor.nanosUntilScan()).isLessThan(Duration.ofMinutes(1).toNanos());
    }

    @Test
    void announcementsAreWhatTheFunctionsOfTheSchemaSend() throws SQLException {
        scan(List.of(0, 3));
        claim(false);
        JobAnnouncements announcements = new JobAnnouncements(floor, new QueueFloors(() -> {}));
        scansWanted.set(0);

        long below = EDGE.minusMillis(20).toEpochMilli();
        announcements.made("{\"r\":0.5,\"count\":1,\"at\":" + below + ",\"p\":[3]}");
        announcements.made("{\"r\":0.5,\"count\":2,\"p\":[]}");
        announcements.made("{\"r\":0.5,\"count\":1,\"at\":" + NOW.toEpochMilli() + ",\"p\":[0,3]}");
        assertThat(scansWanted).hasValue(0);
        assertThat(current().floors()).containsEntry(0, at(EDGE)).containsEntry(3, at(EDGE.minusMillis(21)));
    }

    @Test
    void whatElseAnybodySendsIsReasonForALookAtMost() throws SQLException {
        JobAnnouncements announcements = new JobAnnouncements(floor, new QueueFloors(() -> {}));
        for (String text : List.of(
                "",
                "x",
                "{\"r\":0.5,\"count\":1}",
                "{\"at\":1e400,\"p\":[1]}",
                "{\"at\":99999999999999999999,\"p\":[1]}",
                "{\"at\":1,\"p\":[\"a\"]}",
                "{\"at\":1,\"p\":[99999999999]}",
                "{\"at\":1,\"p\":[32768]}",
                "{\"at\":-9223372036854775808,\"p\":7}",
                "[".repeat(7_999),
                "null",
                "{\"p\":[" + "1,".repeat(40) + "1]}")) {
            scan(List.of(0));
            assertThat(floor.nanosUntilScan()).isEqualTo(Long.MAX_VALUE);
            assertThat(announcements.made(text)).as(text).isNull();
            assertThat(floor.nanosUntilScan()).as(text).isLessThan(Long.MAX_VALUE);
            assertThat(floor.levels()).as(text).containsExactly(0);
        }
        claim(false);
        scansWanted.set(0);
        announcements.made("{\"at\":9223372036854775807,\"p\":[0]}");
        assertThat(current().floors()).containsOnly(Map.entry(0, at(EDGE)));
        announcements.made("{\"at\":-9223372036854775808,\"p\":[0]}");
        assertThat(current().floors()).containsOnlyKeys(0);
        // A look is wanted instead if the last one has taken long.
        assertThat(current().floors().get(0).runAt().isBefore(EDGE) || scansWanted.get() > 0)
                .isTrue();
    }

    @Test
    void chainsThatAreSplitHaveFloorsOfTheirOwnUntilTheyJoin() throws SQLException {
        assertThat(floor.split()).as("before a look").isFalse();
        assertThat(floor.currentOfOdd(List.of())).isNull();
        scan(List.of(0, 3));
        assertThat(floor.split()).isTrue();
        assertThat(floor.split()).isFalse();

        claimOfMain(true, job(2, 3, -500, null));
        claimOfOdd(true, job(1, 3, -900, null));

        IndexPosition evenPlace = new IndexPosition(NOW.minusSeconds(500), 2);
        IndexPosition oddPlace = new IndexPosition(NOW.minusSeconds(900), 1);
        assertThat(currentOfMain().floors()).containsEntry(0, at(EDGE)).containsEntry(3, evenPlace);
        assertThat(currentOfOdd().floors()).containsEntry(0, at(EDGE)).containsEntry(3, oddPlace);
        assertThat(current().floors()).as("of all jobs").containsEntry(3, oddPlace);
        floor.scanBelow(start -> {
            assertThat(start.floors()).containsEntry(3, oddPlace);
            return new FloorScan(List.of(0, 3, 5), List.of());
        });
        assertThat(currentOfOdd().floors()).containsEntry(5, IndexPosition.FIRST);

        floor.join();
        assertThat(floor.isSplit()).isFalse();
        assertThat(floor.currentOfOdd(List.of())).isNull();
        assertThat(currentOfMain().floors()).containsEntry(0, at(EDGE)).containsEntry(3, oddPlace);
    }

    @Test
    void whatIsAnnouncedLowersTheFloorsOfBothChains() throws SQLException {
        scan(List.of(0));
        assertThat(floor.split()).isTrue();
        claimOfMain(false);
        claimOfOdd(false);

        ClaimStart duringTheOdd = currentOfOdd();
        Instant below = EDGE.plusMillis(1);
        floor.announced(below, List.of(0), List.of());
        ClaimStart ofMain = currentOfMain();
        floor.claimed(ofMain, claimed(), false, Duration.ZERO);
        floor.claimedByOdd(duringTheOdd, claimed(), false, Duration.ZERO);
        assertThat(currentOfOdd().floors()).as("announced during its claim").containsEntry(0, at(below));

        floor.announced(EDGE.minusMillis(1), List.of(0, 7), List.of());
        assertThat(currentOfMain().floors())
                .containsEntry(0, at(EDGE.minusMillis(1)))
                .containsEntry(7, at(Instant.MIN));
        assertThat(currentOfOdd().floors()).containsEntry(0, at(EDGE.minusMillis(1)));
    }

    @Test
    void aClaimThatWasUnderWayWhenTheChainsJoinedRaisesNothing() throws SQLException {
        scan(List.of(0));
        assertThat(floor.split()).isTrue();
        ClaimStart ofMain = currentOfMain();

        floor.join();
        floor.claimed(ofMain, claimed(), false, TOOK);

        assertThat(current().floors()).containsEntry(0, IndexPosition.FIRST);
    }

    @Test
    void aClaimOfAnEarlierSplitRaisesNothing() throws SQLException {
        scan(List.of(0));
        assertThat(floor.split()).isTrue();
        ClaimStart early = currentOfOdd();
        floor.forget();
        assertThat(floor.isSplit()).isFalse();
        scan(List.of(0));
        assertThat(floor.split()).isTrue();

        floor.claimedByOdd(early, claimed(), false, TOOK);

        assertThat(currentOfOdd().floors()).containsEntry(0, IndexPosition.FIRST);
        assertThat(floor.currentOfOdd(List.of("flag"))).as("other flags").isNull();
    }

    @Test
    void ofManyPrioritiesClaimsLookAtSomeAtATimeAndLetThemRest() throws SQLException {
        scan(IntStream.range(0, 1000).boxed().toList());
        assertThat(floor.hasManyLevels()).isTrue();
        assertThat(floor.split()).isFalse();
        List<Integer> firsts = new ArrayList<>();
        boolean more = true;
        while (more) {
            ClaimStart start = current();
            firsts.add(start.floors().firstKey());
            more = floor.claimed(start, claimed(), false, TOOK);
            floor.rest(start, Map.of());
        }
        assertThat(firsts).containsExactly(0, 256, 768);
        assertThat(current().floors()).as("all rest").isEmpty();
        assertThat(floor.levels()).isEmpty();
        assertThat(floor.nanosUntilOtherLevel())
                .isBetween(1L, Duration.ofSeconds(10).toNanos());

        floor.announced(NOW, List.of(700), List.of());
        assertThat(floor.levels()).containsExactly(700);
        ClaimStart start = current();
        assertThat(start.floors()).containsOnlyKeys(700);
        floor.announced(NOW, List.of(700, 3), List.of());
        floor.claimed(start, claimed(), false, TOOK);
        floor.rest(start, Map.of());
        assertThat(current().floors()).as("announced during the claim").containsOnlyKeys(3, 700);

        floor.announced(null, null, List.of());
        assertThat(current().floors()).as("who knows which").hasSize(256);
    }

    @Test
    void priorityRestsUntilItsNextJobIsDueAndAFullClaimBeginsAtTheFirst() throws SQLException {
        scan(IntStream.range(0, 300).boxed().toList());
        ClaimStart start = current();
        floor.claimed(start, claimed(), false, TOOK);
        floor.rest(start, Map.of(5, Duration.ZERO, 6, Duration.ofHours(1), 7, Duration.ofNanos(-1)));

        assertThat(current().floors().keySet()).as("then the others").startsWith(256);
        floor.claimed(current(), claimed(job(1, 257, -5, null)), true, TOOK);
        assertThat(current().floors().keySet()).as("nothing was due at 256").startsWith(5, 7, 257);
        floor.announced(NOW, List.of(256), List.of());
        assertThat(current().floors().keySet()).startsWith(5, 7, 256, 257);
    }

    private ClaimStart currentOfMain() {
        return Objects.requireNonNull(floor.current(List.of(), false));
    }

    private ClaimStart currentOfOdd() {
        return Objects.requireNonNull(floor.currentOfOdd(List.of()));
    }

    private void claimOfMain(boolean full, Job... jobs) {
        floor.claimed(currentOfMain(), claimed(jobs), full, TOOK);
    }

    private void claimOfOdd(boolean full, Job... jobs) {
        floor.claimedByOdd(currentOfOdd(), claimed(jobs), full, TOOK);
    }

    private void scan(List<Integer> levels) throws SQLException {
        floor.scanBelow(start -> new FloorScan(levels, List.of()));
    }

    private ClaimStart current() {
        return Objects.requireNonNull(floor.current(List.of(), true));
    }

    private void claim(boolean full, Job... jobs) {
        floor.claimed(floor.current(List.of(), true), claimed(jobs), full, TOOK);
    }

    private static Claimed claimed(Job... jobs) {
        return new Claimed(Arrays.asList(jobs), List.of(), false, NOW, null);
    }

    private static IndexPosition at(Instant time) {
        return new IndexPosition(time, Long.MIN_VALUE);
    }

    private static Job job(long id, int priority, int second, @Nullable String queueName) {
        return TestJob.withId(id)
                .queueName(queueName)
                .priority(priority)
                .runAt(NOW.plusSeconds(second))
                .build();
    }
}
