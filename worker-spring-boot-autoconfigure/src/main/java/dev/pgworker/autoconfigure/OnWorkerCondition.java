package dev.pgworker.autoconfigure;

import org.springframework.boot.autoconfigure.condition.ConditionMessage;
import org.springframework.boot.autoconfigure.condition.ConditionOutcome;
import org.springframework.boot.autoconfigure.condition.SpringBootCondition;
import org.springframework.context.annotation.ConditionContext;
import org.springframework.core.env.Environment;
import org.springframework.core.type.AnnotatedTypeMetadata;

/** Matches if the application runs jobs: the default worker or one of {@code pgworker.instances} is enabled. */
final class OnWorkerCondition extends SpringBootCondition {

    @Override
    public ConditionOutcome getMatchOutcome(ConditionContext context, AnnotatedTypeMetadata metadata) {
        Environment environment = context.getEnvironment();
        boolean matches = environment.getProperty("pgworker.enabled", Boolean.class, true)
                || InstanceProperties.names(environment).stream()
                        .anyMatch(name ->
                                InstanceProperties.bind(environment, name).enabled());
        return new ConditionOutcome(
                matches,
                ConditionMessage.forCondition("PgWorker")
                        .because(matches ? "a worker is enabled" : "no worker is enabled"));
    }
}
