package dev.pgworker.task;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.Proxy;
import java.lang.reflect.UndeclaredThrowableException;
import java.util.function.Supplier;

import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.springframework.aop.SpringProxy;
import org.springframework.aop.support.AopUtils;
import org.springframework.core.BridgeMethodResolver;
import org.springframework.util.ReflectionUtils;

import dev.pgworker.internal.failure.WorkerLog;

/**
 * Calls an annotated method on its bean, through the bean's proxy where it has one.
 *
 * <p>The bean is asked for at every call, so that it may be lazy, scoped or a prototype.
 */
final class MethodInvoker implements TaskRegistration.Invoker {

    private static final Logger log = WorkerLog.of(MethodInvoker.class);

    private final Method method;
    private final Class<?> targetClass;
    private final String source;
    private final HandlerParameters parameters;
    private final Supplier<?> bean;
    private final boolean suspends;
    private final boolean batch;
    private final boolean returns;

    /** Whether it has been logged that a result is not kept. */
    private volatile boolean told;

    /** Null before the first call. A race of first calls only looks the same method up twice. */
    private volatile @Nullable Target target;

    /** The method as the class of the bean, which may be a proxy, offers it. */
    private record Target(Class<?> beanClass, Method method, boolean proxy) {}

    MethodInvoker(Method method, Class<?> targetClass, String source, HandlerParameters parameters, Supplier<?> bean) {
        this.method = method;
        this.targetClass = targetClass;
        this.source = source;
        this.parameters = parameters;
        this.bean = bean;
        Class<?> returned = SuspendFunctions.returnType(method);
        this.suspends = SuspendFunctions.isOne(method);
        this.batch = returned == BatchResult.class;
        this.returns = !batch && !HandlerResults.isNothing(returned);
    }

    @Override
    public @Nullable BatchResult invoke(JobContext context, PayloadCodec codec) throws Exception {
        if (batch) {
            codec.requireItems(context.job());
        }
        @Nullable Object[] values = parameters.values(context, codec);
        Object receiver = bean.get();
        Target current = target(receiver.getClass());
        try {
            Object result = suspends
                    ? SuspendFunctions.call(current.method(), receiver, values)
                    : current.method().invoke(receiver, values);
            if (batch && result == null) {
                throw new IllegalStateException(source + " returned null instead of a BatchResult");
            }
            if (returns && result != null) {
                keep(context, result);
            }
            return batch ? (BatchResult) result : null;
        } catch (InvocationTargetException e) {
            ReflectionUtils.rethrowException(thrownByHandler(e, current.proxy()));
            throw new AssertionError("unreachable", e);
        }
    }

    /**
     * Makes what the handler has returned the result of the run. Its work is done, so that nothing that is wrong with the result may have
     * it done again.
     */
    private void keep(JobContext context, Object result) {
        HandlerResults.requireFinished(source, result);
        try {
            context.result(result);
        } catch (Throwable e) {
            if (!told) {
                told = true;
                log.warn(
                        "{} has succeeded, but its result is not kept: {}. Others of the task \"{}\" that cannot be kept are"
                                + " dropped silently",
                        context.job(),
                        e instanceof PayloadException
                                ? e.getMessage()
                                : e.getClass().getName(),
                        context.job().taskIdentifier());
            }
        }
    }

    /**
     * Finds the method that can be called on beans of the given class.
     *
     * @throws HandlerDefinitionException if a proxy does not pass the call on to the handler
     */
    void resolve(Class<?> beanClass) {
        target(beanClass);
    }

    private Target target(Class<?> beanClass) {
        Target current = target;
        if (current == null || current.beanClass() != beanClass) {
            current = find(beanClass);
            target = current;
        }
        return current;
    }

    private Target find(Class<?> beanClass) {
        boolean jdkProxy = Proxy.isProxyClass(beanClass);
        boolean classProxy = !jdkProxy && SpringProxy.class.isAssignableFrom(beanClass);
        if (suspends && (jdkProxy || classProxy)) {
            throw new HandlerDefinitionException(
                    source
                            + " is a suspend function, but its bean is a proxy, such as that of @Transactional, whose work would"
                            + " end at the first suspension",
                    "Move the method to a bean without such annotations; for a transaction around the handler, set"
                            + " @JobHandler(transactional = true)");
        }
        if (classProxy) {
            requireOverridable(beanClass);
        }
        Method callable = jdkProxy ? onInterfaces(beanClass) : AopUtils.selectInvocableMethod(method, beanClass);
        ReflectionUtils.makeAccessible(callable);
        return new Target(beanClass, callable, jdkProxy || classProxy);
    }

    /** A method that the proxy class cannot override would run on the proxy itself, whose fields are all null. */
    private void requireOverridable(Class<?> beanClass) {
        int modifiers = method.getModifiers();
        if (Modifier.isFinal(modifiers)) {
            throw new HandlerDefinitionException(
                    source + " is final, but its bean is a proxy that has to override it", "Remove final");
        }
        Class<?> owner = method.getDeclaringClass();
        boolean packagePrivate = (modifiers & (Modifier.PUBLIC | Modifier.PROTECTED | Modifier.PRIVATE)) == 0;
        if (packagePrivate
                && !(owner.getPackage() == beanClass.getPackage()
                        && owner.getClassLoader() == beanClass.getClassLoader())) {
            throw new HandlerDefinitionException(
                    source + " is package-private, but its bean is a proxy of another package or class loader,"
                            + " which cannot override it",
                    "Make the method public or protected");
        }
    }

    private Method onInterfaces(Class<?> proxyClass) {
        try {
            return AopUtils.selectInvocableMethod(method, proxyClass);
        } catch (IllegalStateException e) {
            // An interface with type variables declares the method with other parameter types.
            for (Class<?> type : proxyClass.getInterfaces()) {
                for (Method candidate : type.getMethods()) {
                    if (candidate.getName().equals(method.getName())
                            && BridgeMethodResolver.getMostSpecificMethod(candidate, targetClass)
                                    .equals(method)) {
                        return candidate;
                    }
                }
            }
            throw new HandlerDefinitionException(
                    source + " cannot be called: its bean is a JDK proxy, and no interface of the bean has the method",
                    "Declare the method in an interface of the bean, or have the bean proxied by class"
                            + " (proxyTargetClass = true; spring.aop.proxy-target-class=true)");
        }
    }

    private static Throwable thrownByHandler(InvocationTargetException exception, boolean proxy) {
        Throwable thrown = exception.getTargetException();
        if (proxy
                && thrown instanceof UndeclaredThrowableException wrapper
                && wrapper.getUndeclaredThrowable() != null) {
            // What a proxy makes of a checked exception that its interface does not declare.
            return wrapper.getUndeclaredThrowable();
        }
        return thrown;
    }
}
