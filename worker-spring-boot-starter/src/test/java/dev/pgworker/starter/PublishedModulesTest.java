package dev.pgworker.starter;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.jar.JarFile;
import java.util.regex.Pattern;
import java.util.stream.Stream;

import org.junit.jupiter.api.Test;

import static org.assertj.core.api.Assertions.assertThat;

/** What is published is complete: the BOM has every module in its version, and the jars contain the licence. */
class PublishedModulesTest {

    private static final Path ROOT = Path.of("..");
    private static final Pattern MODULE = Pattern.compile("<module>([^<]+)</module>");
    private static final Pattern MANAGED = Pattern.compile(
            "<dependency>\\s*<groupId>dev\\.pgworker</groupId>\\s*<artifactId>([^<]+)</artifactId>\\s*<version>\\$\\{project\\.version}</version>");
    private static final Pattern VERSION = Pattern.compile(
            "<groupId>dev\\.pgworker</groupId>\\s*<artifactId>[^<]+</artifactId>\\s*<version>([^<]+)</version>");

    private static String pom(String module) throws IOException {
        return Files.readString(ROOT.resolve(module).resolve("pom.xml"));
    }

    private static List<String> published() throws IOException {
        return MODULE.matcher(pom("."))
                .results()
                .map(match -> match.group(1))
                .filter(module -> !module.equals("worker-bom") && !isSkipped(module))
                .toList();
    }

    private static boolean isSkipped(String module) {
        try {
            return pom(module).contains("<maven.deploy.skip>true</maven.deploy.skip>");
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static String version(String module) throws IOException {
        return VERSION.matcher(pom(module)).results().findFirst().orElseThrow().group(1);
    }

    @Test
    void theBomHasThem() throws IOException {
        assertThat(MANAGED.matcher(pom("worker-bom")).results().map(match -> match.group(1)))
                .containsExactlyInAnyOrderElementsOf(published());
        assertThat(version("worker-bom")).isEqualTo(version("."));
    }

    @Test
    void theirJarsContainTheLicence() throws IOException {
        try (Stream<Path> jars = Stream.of(
                        System.getProperty("pgworker.test.module-path").split(System.getProperty("path.separator")))
                .map(Path::of)
                .filter(jar -> jar.getFileName().toString().startsWith("worker-"))) {
            assertThat(jars.toList()).hasSizeGreaterThan(2).allSatisfy(jar -> {
                try (JarFile file = new JarFile(jar.toFile())) {
                    assertThat(file.getEntry("META-INF/LICENSE")).isNotNull();
                }
            });
        }
    }
}
