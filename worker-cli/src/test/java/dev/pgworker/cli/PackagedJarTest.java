package dev.pgworker.cli;

import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIfSystemProperty;

import dev.pgworker.testsupport.TestPostgres;

import static org.assertj.core.api.Assertions.assertThat;

/** The jar as it is published, in a process of its own. */
@EnabledIfSystemProperty(named = "pgworker.test.jar", matches = ".+", disabledReason = "the jar is built later")
class PackagedJarTest {

    private static final String JAVA =
            Path.of(System.getProperty("java.home"), "bin", "java").toString();

    private static final String JAR = System.getProperty("pgworker.test.jar");

    @Test
    void runs() throws Exception {
        String url = TestPostgres.newDatabase("cli");

        assertThat(run(0, url, "--version")).startsWith("worker-cli 0");
        assertThat(run(0, url, "migrate"))
                .contains("INFO Schema graphile_worker is installed")
                .contains("Schema graphile_worker is up to date");
        assertThat(run(0, url, "add", "hello", "--payload", "{\"name\": \"Ada\"}"))
                .isEqualTo("1\n");
        assertThat(run(ExitStatus.NOT_FOUND, url, "show", "1", "2"))
                .contains("Ada")
                .endsWith("No job 2\n");
    }

    /** Returns what a process writes to both of its outputs. */
    private static String run(int status, String url, String... args) throws Exception {
        List<String> command = new ArrayList<>(List.of(JAVA, "-XX:TieredStopAtLevel=1", "-jar", JAR));
        command.addAll(List.of(args));
        ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true);
        builder.environment().put("PGWORKER_URL", url);
        Process process = builder.start();
        process.getOutputStream().close();
        String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertThat(process.waitFor(5, TimeUnit.MINUTES)).isTrue();
        assertThat(process.exitValue()).as(output).isEqualTo(status);
        return output;
    }
}
