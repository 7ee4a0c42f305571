package dev.pgworker.internal.watch;

import java.util.List;
import java.util.stream.IntStream;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import static org.assertj.core.api.Assertions.assertThat;

@Tag("any-postgres")
class ClosestNameTest {

    @ParameterizedTest
    @CsvSource(textBlock = """
            helo, hello
            hlelo, hello
            Hello, hello
            sendMail, send_mail
            send-mail, send_mail
            sned_mail, send_mail
            report, ''
            x, ''
            """)
    void findsWhatWasMeant(String written, String meant) {
        String closest = ClosestName.of(written, List.of("hello", "send_mail", "send_male_report"));

        assertThat(closest).isEqualTo(meant.isEmpty() ? null : meant);
    }

    @Test
    void ofSeveralTheFirstIsTaken() {
        assertThat(ClosestName.of("mail", List.of("maim", "mais", "maid"))).isEqualTo("maim");
    }

    @Test
    void longNamesTakeLittleTime() {
        List<String> names =
                IntStream.range(0, 10_000).mapToObj(i -> i + "x".repeat(120)).toList();

        assertThat(ClosestName.of("5" + "x".repeat(120), names)).isEqualTo("5" + "x".repeat(120));
    }
}
