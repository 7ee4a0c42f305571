package dev.pgworker.autoconfigure.testing;

import java.util.Objects;

import org.springframework.beans.factory.BeanFactory;
import org.springframework.beans.factory.support.DefaultListableBeanFactory;
import org.springframework.boot.diagnostics.FailureAnalysis;
import org.springframework.boot.diagnostics.FailureAnalyzer;
import org.springframework.core.env.Environment;
import org.springframework.core.env.StandardEnvironment;
import org.springframework.core.io.support.SpringFactoriesLoader;
import org.springframework.core.io.support.SpringFactoriesLoader.ArgumentResolver;
import org.springframework.core.io.support.SpringFactoriesLoader.FailureHandler;

/** What Spring Boot prints about a failed start: the first analysis of the registered analyzers. */
public final class FailureAnalyses {

    private FailureAnalyses() {}

    public static FailureAnalysis of(Throwable failure) {
        ArgumentResolver arguments = ArgumentResolver.of(BeanFactory.class, new DefaultListableBeanFactory())
                .and(Environment.class, new StandardEnvironment());
        return SpringFactoriesLoader.forDefaultResourceLocation(FailureAnalyses.class.getClassLoader())
                .load(FailureAnalyzer.class, arguments, FailureHandler.handleMessage((message, cause) -> {}))
                .stream()
                .map(analyzer -> analyzer.analyze(failure))
                .filter(Objects::nonNull)
                .findFirst()
                .orElseThrow(() -> new AssertionError("No analysis of this failure", failure));
    }
}
