package dev.pgworker.task;

import java.lang.reflect.AnnotatedElement;
import java.lang.reflect.Method;
import java.lang.reflect.Type;
import java.util.Set;

import org.springframework.aot.hint.BindingReflectionHintsRegistrar;
import org.springframework.aot.hint.ExecutableMode;
import org.springframework.aot.hint.MemberCategory;
import org.springframework.aot.hint.ReflectionHints;
import org.springframework.aot.hint.annotation.ReflectiveProcessor;
import org.springframework.core.annotation.MergedAnnotations;
import org.springframework.core.annotation.MergedAnnotations.SearchStrategy;
import tools.jackson.databind.JsonNode;

import dev.pgworker.job.Job;
import dev.pgworker.step.JobSteps;

/**
 * Registers for ahead-of-time processing what reflection a handler needs: its method, its payload's types and its retry
 * delay.
 */
final class JobHandlerReflectiveProcessor implements ReflectiveProcessor {

    private static final Set<Type> NO_PAYLOAD = Set.of(JobContext.class, Job.class, JobSteps.class, JsonNode.class);

    private final BindingReflectionHintsRegistrar binding = new BindingReflectionHintsRegistrar();

    @Override
    public void registerReflectionHints(ReflectionHints hints, AnnotatedElement element) {
        if (!(element instanceof Method method)) {
            return;
        }
        hints.registerType(method.getDeclaringClass());
        hints.registerMethod(method, ExecutableMode.INVOKE);
        for (Type parameter : SuspendFunctions.parameters(method)) {
            if (!NO_PAYLOAD.contains(parameter)) {
                binding.registerReflectionHints(hints, parameter);
            }
        }
        MergedAnnotations.from(method, SearchStrategy.TYPE_HIERARCHY).stream()
                .flatMap(annotation -> annotation.getValue("retryDelay", Class.class).stream())
                .filter(policy -> policy != RetryDelay.class)
                .forEach(policy -> hints.registerType(policy, MemberCategory.INVOKE_DECLARED_CONSTRUCTORS));
    }
}
