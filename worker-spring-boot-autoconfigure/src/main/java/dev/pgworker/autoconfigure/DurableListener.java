package dev.pgworker.autoconfigure;

import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.Objects;
import java.util.Optional;
import java.util.function.UnaryOperator;

import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.BeanFactory;
import org.springframework.context.ApplicationEvent;
import org.springframework.context.expression.BeanFactoryResolver;
import org.springframework.context.expression.MethodBasedEvaluationContext;
import org.springframework.core.DefaultParameterNameDiscoverer;
import org.springframework.core.ParameterNameDiscoverer;
import org.springframework.core.ResolvableType;
import org.springframework.expression.Expression;
import org.springframework.expression.ParseException;
import org.springframework.expression.ParserContext;
import org.springframework.expression.spel.standard.SpelExpressionParser;

import dev.pgworker.job.JobRequest;
import dev.pgworker.job.JobSpec;
import dev.pgworker.task.DurableEventListener;
import dev.pgworker.task.TaskRegistration;

/** One {@link DurableEventListener} method: which events it accepts, and which job it makes of one. Thread-safe. */
final class DurableListener {

    private static final SpelExpressionParser PARSER = new SpelExpressionParser();
    private static final ParameterNameDiscoverer NAMES = new DefaultParameterNameDiscoverer();

    private final Method method;
    private final TaskRegistration task;
    private final ResolvableType type;
    private final BeanFactoryResolver beans;
    private final @Nullable Integer priority;
    private final @Nullable Expression condition;
    private final @Nullable Expression queue;
    private final @Nullable Expression key;

    /**
     * Reads what a method declares.
     *
     * @param task the handler that the method is
     * @param resolver replaces placeholders in attributes, or throws an {@code IllegalArgumentException}
     * @throws WorkerConfigurationException if the method has no event, or an attribute is wrong
     */
    DurableListener(
            Method method,
            DurableEventListener annotation,
            TaskRegistration task,
            BeanFactory beans,
            UnaryOperator<String> resolver) {
        this.method = method;
        this.task = task;
        this.beans = new BeanFactoryResolver(beans);
        if (task.payloadType() == null) {
            throw refused("has no parameter for the event", "Add a parameter of the event's type.");
        }
        type = ResolvableType.forType(task.payloadType());
        if (ApplicationEvent.class.isAssignableFrom(type.toClass())) {
            throw refused(
                    "listens to an ApplicationEvent, whose source cannot be stored",
                    "Publish an object that does not extend ApplicationEvent, such as a record.");
        }
        int given = annotation.priority();
        if (given < Short.MIN_VALUE || given > Short.MAX_VALUE) {
            throw refused("has the priority " + given, "It must be between -32768 and 32767.");
        }
        priority = given == 0 ? null : given;
        condition = expression("condition", annotation.condition(), resolver, null);
        queue = expression("queue", annotation.queue(), resolver, ParserContext.TEMPLATE_EXPRESSION);
        key = expression("key", annotation.key(), resolver, ParserContext.TEMPLATE_EXPRESSION);
    }

    private WorkerConfigurationException refused(String problem, String action) {
        return new WorkerConfigurationException("Durable event listener " + source() + " " + problem + ".", action);
    }

    private @Nullable Expression expression(
            String attribute, String text, UnaryOperator<String> resolver, @Nullable ParserContext template) {
        if (text.isEmpty()) {
            return null;
        }
        try {
            String resolved = resolver.apply(text);
            return template == null ? PARSER.parseExpression(resolved) : PARSER.parseExpression(resolved, template);
        } catch (ParseException | IllegalStateException | IllegalArgumentException e) {
            throw refused(
                    "has a " + attribute + " that cannot be read, \"" + text + "\": " + e.getMessage(),
                    template == null
                            ? "It must be a SpEL expression, such as \"#event.total > 100\"."
                            : "It must be a text with SpEL expressions in #{}, such as \"order-#{id}\".");
        }
    }

    /** Returns the task identifier of its jobs. */
    String id() {
        return task.identifier();
    }

    /** Returns the handler that it is. */
    TaskRegistration task() {
        return task;
    }

    /** Returns its class and method, for messages. */
    String source() {
        return task.source();
    }

    boolean accepts(ResolvableType event) {
        return type.isAssignableFrom(event);
    }

    /**
     * Returns the job that an event makes; empty if the condition does not accept it.
     *
     * @throws IllegalStateException if an expression fails or its value is not allowed; the message names the listener
     */
    Optional<JobRequest> job(Object event) {
        String attribute = "condition";
        try {
            MethodBasedEvaluationContext context = context(event);
            if (condition != null && !Boolean.TRUE.equals(condition.getValue(context, Boolean.class))) {
                return Optional.empty();
            }
            attribute = "queue";
            JobSpec.Builder spec = JobSpec.builder().priority(priority).queueName(value(queue, context));
            attribute = "key";
            spec.jobKey(value(key, context));
            attribute = "queue or key";
            return Optional.of(JobRequest.of(id(), event, spec.build()));
        } catch (RuntimeException e) {
            throw new IllegalStateException(
                    "The " + attribute + " of durable event listener " + source() + " cannot be used for an event of "
                            + event.getClass().getName() + ": " + e.getMessage(),
                    e);
        }
    }

    private MethodBasedEvaluationContext context(Object event) {
        Object[] arguments = Arrays.stream(method.getParameterTypes())
                .map(parameter -> parameter.isInstance(event) ? event : null)
                .toArray();
        MethodBasedEvaluationContext context = new MethodBasedEvaluationContext(event, method, arguments, NAMES);
        context.setVariable("event", event);
        context.setBeanResolver(beans);
        return context;
    }

    private static @Nullable String value(@Nullable Expression expression, MethodBasedEvaluationContext context) {
        if (expression == null) {
            return null;
        }
        String value = Objects.requireNonNullElse(expression.getValue(context, String.class), "");
        if (value.isEmpty()) {
            throw new IllegalArgumentException("its value is empty");
        }
        return value;
    }
}
