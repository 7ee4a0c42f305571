package dev.pgworker.starter;

import java.io.File;
import java.io.IOException;
import java.lang.module.ModuleFinder;
import java.lang.module.ModuleReference;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import javax.tools.JavaCompiler;
import javax.tools.ToolProvider;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import dev.pgworker.testsupport.TestPostgres;

import static org.assertj.core.api.Assertions.assertThat;

/** The jars as they are published, and all that the starter brings, on the module path. */
class ModulePathTest {

    /** Jars with the separator of paths between them. */
    private static final String MODULE_PATH = System.getProperty("pgworker.test.module-path");

    @TempDir
    Path directory;

    @Test
    void noPackageIsInTwoModules() {
        Path[] jars =
                Stream.of(MODULE_PATH.split(File.pathSeparator)).map(Path::of).toArray(Path[]::new);
        Map<String, String> modules = new HashMap<>();

        for (ModuleReference module : ModuleFinder.of(jars).findAll()) {
            for (String name : module.descriptor().packages()) {
                String other = modules.put(name, module.descriptor().name());
                assertThat(other)
                        .as("module with package " + name + " besides " + modules.get(name))
                        .isNull();
            }
        }

        assertThat(modules)
                .containsEntry("dev.pgworker", "dev.pgworker.core")
                .containsEntry("dev.pgworker.autoconfigure", "dev.pgworker.spring.boot.autoconfigure");
        assertThat(ModuleFinder.of(jars).find("dev.pgworker.spring.boot.starter"))
                .isPresent();
    }

    @Test
    void anApplicationOfNamedModulesRunsAJob() throws Exception {
        compile();

        Path output = directory.resolve("output.txt");
        Process application = new ProcessBuilder(
                        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                        "-XX:TieredStopAtLevel=1",
                        "--module-path",
                        directory + File.pathSeparator + MODULE_PATH,
                        "--add-modules",
                        "ALL-MODULE-PATH",
                        "--module",
                        "application/application.Application",
                        "--spring.datasource.url=" + TestPostgres.newDatabase("modules"),
                        "--spring.main.banner-mode=off")
                .redirectErrorStream(true)
                .redirectOutput(output.toFile())
                .start();
        try {
            assertThat(application.waitFor(120, TimeUnit.SECONDS))
                    .as(() -> read(output))
                    .isTrue();
        } finally {
            application.destroyForcibly();
        }

        assertThat(read(output))
                .contains("Hello Ada from module application")
                .contains("The scheduler is from module dev.pgworker.core");
        assertThat(application.exitValue()).as(read(output)).isZero();
    }

    private void compile() throws IOException {
        JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
        List<String> arguments = new ArrayList<>(
                List.of("-d", directory.toString(), "-parameters", "--module-path", MODULE_PATH, "-proc:none"));
        try (Stream<Path> sources = Files.walk(Path.of("src/test/module"))) {
            sources.map(Path::toString).filter(name -> name.endsWith(".java")).forEach(arguments::add);
        }
        assertThat(compiler.run(null, null, null, arguments.toArray(String[]::new)))
                .isZero();
    }

    private static String read(Path file) {
        try {
            return Files.readString(file);
        } catch (IOException e) {
            return e.toString();
        }
    }
}
