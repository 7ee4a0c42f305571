package dev.pgworker.task;

import java.lang.reflect.Method;
import java.lang.reflect.Type;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;

import org.jspecify.annotations.Nullable;
import tools.jackson.databind.JsonNode;

import dev.pgworker.flow.PredecessorResults;
import dev.pgworker.job.Job;
import dev.pgworker.step.JobSteps;

/** What the parameters of a handler method receive. */
final class HandlerParameters {

    /** Gives the value of one parameter. */
    private interface Argument {
        @Nullable Object of(JobContext context, PayloadCodec codec);
    }

    private static final Map<Type, Argument> KNOWN = Map.of(
            JobContext.class, (context, codec) -> context,
            Job.class, (context, codec) -> context.job(),
            JobSteps.class, (context, codec) -> context.steps(),
            PredecessorResults.class, (context, codec) -> context.predecessors(),
            JsonNode.class, (context, codec) -> codec.decode(context.job(), JsonNode.class));

    private final Argument[] arguments;

    private final @Nullable Type payloadType;

    private final boolean steps;

    private HandlerParameters(Argument[] arguments, @Nullable Type payloadType, boolean steps) {
        this.arguments = arguments;
        this.payloadType = payloadType;
        this.steps = steps;
    }

    /**
     * Reads the parameters of a method as its concrete class has them.
     *
     * @param source the class and method, for messages
     * @throws HandlerDefinitionException if one occurs twice, or if the payload's type is open
     */
    static HandlerParameters of(Method method, Class<?> targetClass, String source) {
        PayloadTypes types = new PayloadTypes(targetClass);
        Type[] declared = SuspendFunctions.parameters(method);
        Argument[] arguments = new Argument[declared.length];
        Set<Type> seen = new HashSet<>();
        Type payload = null;
        for (int i = 0; i < declared.length; i++) {
            Type type = types.resolve(declared[i]);
            Argument known = KNOWN.get(type);
            if (known != null) {
                if (!seen.add(type)) {
                    throw new HandlerDefinitionException(
                            source + " has two parameters of type " + type.getTypeName(), "Remove one of them");
                }
                arguments[i] = known;
                continue;
            }
            if (payload != null) {
                throw new HandlerDefinitionException(
                        source + " has two payload parameters, " + payload.getTypeName() + " and " + type.getTypeName(),
                        "Keep one payload parameter: beside it there can only be JobContext, Job, JobSteps and JsonNode");
            }
            payload = type;
            requireComplete(type, source);
            arguments[i] = (context, codec) -> codec.decode(context.job(), type);
        }
        return new HandlerParameters(arguments, payload, seen.contains(JobSteps.class));
    }

    private static void requireComplete(Type payload, String source) {
        Type open = PayloadTypes.openPart(payload);
        if (open != null) {
            throw new HandlerDefinitionException(
                    source + " leaves its payload type open: \"" + open.getTypeName() + "\" in " + payload.getTypeName()
                            + " stands for no particular class",
                    "Name the class in the parameter or, for a type variable, in the subclass that is the bean;"
                            + " use Object or JsonNode for any JSON");
        }
    }

    /** Returns the type of the payload parameter, or null if there is none. */
    @Nullable Type payloadType() {
        return payloadType;
    }

    /** Returns whether the steps of the job are among the parameters. */
    boolean takesSteps() {
        return steps;
    }

    /**
     * Returns the values for one call.
     *
     * @throws PayloadException if the payload does not fit its parameter
     */
    @Nullable Object[] values(JobContext context, PayloadCodec codec) {
        @Nullable Object[] values = new Object[arguments.length];
        for (int i = 0; i < values.length; i++) {
            values[i] = arguments[i].of(context, codec);
        }
        return values;
    }
}
