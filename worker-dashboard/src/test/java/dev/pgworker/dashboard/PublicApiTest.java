package dev.pgworker.dashboard;

import java.nio.file.Path;

import org.junit.jupiter.api.Test;

import dev.pgworker.testsupport.PublicApi;

import static org.assertj.core.api.Assertions.assertThat;

/** What users may rely on changes only on purpose. */
class PublicApiTest {

    private final PublicApi api = PublicApi.of(Path.of("target/classes"));

    @Test
    void isTheOneThatIsCheckedIn() {
        assertThat(api.checkedIn())
                .as("public-api.txt; to change it on purpose, run this test with -Dpgworker.public-api.write=true")
                .containsExactlyElementsOf(api.lines());
    }

    @Test
    void namesNothingThatUsersMustNotUse() {
        assertThat(api.leaks()).isEmpty();
    }

    @Test
    void saysInWhichVersionItCame() {
        assertThat(api.withoutSince()).isEmpty();
    }
}
