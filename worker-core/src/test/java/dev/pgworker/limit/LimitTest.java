package dev.pgworker.limit;

import java.time.Duration;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

/** Limits, their attributes and their words. */
class LimitTest {

    static Stream<Limit> limits() {
        return Stream.of(
                Limit.concurrency("a", 3, "mail", "fax").per("tenant"),
                Limit.concurrency("a", 1, "mail").per(List.of("a.b", "c")),
                Limit.rate("a", 100, Duration.ofMinutes(1), "mail").withBurst(7),
                Limit.fairShare("a", "mail").per("tenant"),
                Limit.fairShare("a", "mail").per("tenant").withWeights(Map.of("acme", 3.0, "x=1, y", 0.5, "", 2.0)));
    }

    @ParameterizedTest
    @MethodSource("limits")
    void aLimitIsMadeOfItsAttributes(Limit limit) {
        assertThat(LimitAttributes.limit("a", limit.attributes()))
                .isEqualTo(limit)
                .hasSameHashCodeAs(limit);
    }

    @Test
    void attributesMayBeTexts() {
        Map<String, String> share = new HashMap<>(Map.of("tasks", "mail, fax", "per", "customer.id"));
        share.put("weights", "acme=3, globex=0.5");
        share.put("burst", "");
        share.put("maxRunning", null);
        assertThat(LimitAttributes.limit("a", share))
                .isEqualTo(Limit.fairShare("a", "mail", "fax")
                        .per("customer.id")
                        .withWeights(Map.of("acme", 3.0, "globex", 0.5)));
        assertThat(LimitAttributes.limit(
                        "a", Map.of("tasks", "mail", "maxStarts", " 10 ", "period", "1m", "burst", "4")))
                .isEqualTo(Limit.rate("a", 10, Duration.ofMinutes(1), "mail").withBurst(4));
        assertThat(LimitAttributes.limit("a", Map.of("tasks", "mail", "per", "t", "weights", "")))
                .isEqualTo(Limit.fairShare("a", "mail").per("t"));
    }

    @Test
    void wordsSayWhatIsAllowed() {
        assertThat(limits())
                .extracting(Limit::words)
                .containsExactly(
                        "3 running per tenant",
                        "1 running per a.b.c",
                        "100 starts in PT1M, burst 7",
                        "fair shares per tenant",
                        "fair shares per tenant,  2, acme 3, x=1, y 0.5");
        Map<String, Double> many =
                IntStream.range(0, 20).boxed().collect(Collectors.toMap(n -> (n < 10 ? "t0" : "t") + n, n -> 1.5));
        assertThat(Limit.fairShare("a", "mail").per("t").withWeights(many).words())
                .endsWith("t09 1.5, ...")
                .doesNotContain("t10");
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', textBlock = """
            ''                                | maxRunning must be set, or else maxStarts and period, or else weights and per
            maxRunning=1;burst=2              | burst must not be combined with maxRunning
            maxRunning=1;maxStarts=2;period=1m | maxStarts must not be combined with maxRunning; period must not be combined with maxRunning
            maxRunning=1;weights=             | weights must not be combined with maxRunning
            maxStarts=1                       | period must be set together with maxStarts
            period=1m                         | maxStarts must be set together with period
            maxStarts=1;period=soon           | period must be a duration such as "1m", but is "soon"
            maxStarts=0;period=1ms;burst=x    | maxStarts must be between 1 and 1000000, but is 0; period must be between 1 s and 365 days, but is PT0.001S; burst must be an integer, but is "x"
            weights=a=1                       | per must be set together with weights
            weights=a;per=t                   | weights must be such as "acme=3", but one is "a"
            weights=3;per=t                   | weights must be such as "acme=3", but one is "3"
            weights=a=x;per=t                 | weights must be such as "acme=3", but one is "a=x"
            weights=a=0.001;per=t             | weights must be between 0.01 and 100, but that of "a" is 0.001
            weights=a=NaN;per=t               | weights must be between 0.01 and 100, but that of "a" is NaN
            weights=a=101;per=t               | weights must be between 0.01 and 100, but that of "a" is 101.0
            weights=a=1;per=t;period=1m       | period must not be combined with weights
            maxRunning=1;per=a..b             | per must not be empty
            """)
    void allThatIsWrongIsToldByTheNameOfTheAttribute(String given, String told) {
        Map<String, String> attributes = new HashMap<>(Map.of("tasks", "mail"));
        for (String one : given.isEmpty() ? new String[0] : given.split(";")) {
            attributes.put(one.substring(0, one.indexOf('=')), one.substring(one.indexOf('=') + 1));
        }
        assertThatIllegalArgumentException()
                .isThrownBy(() -> LimitAttributes.limit("a", attributes))
                .withMessage(told);
    }

    @Test
    void nameAndTasksAreRequired() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> LimitAttributes.limit(null, Map.of("maxRunning", 1)))
                .withMessage("name must not be null; tasks must name 1 to 100, but names 0");
    }

    @Test
    void weightsBelongToFairShares() {
        Limit share = Limit.fairShare("a", "mail").per("t");
        assertThatIllegalStateException()
                .isThrownBy(() -> Limit.concurrency("a", 1, "mail").withWeights(Map.of("b", 2.0)));
        assertThatIllegalStateException().isThrownBy(() -> share.withBurst(1));
        assertThatIllegalArgumentException().isThrownBy(() -> share.withWeights(Collections.singletonMap("b", null)));
        assertThatIllegalArgumentException()
                .isThrownBy(() -> share.withWeights(
                        IntStream.rangeClosed(0, 1000).boxed().collect(Collectors.toMap(String::valueOf, n -> 1.0))))
                .withMessage("weights must name at most 1000 values, but names 1001");
    }
}
