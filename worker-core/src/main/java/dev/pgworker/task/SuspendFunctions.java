package dev.pgworker.task;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Type;
import java.util.Arrays;

import kotlin.coroutines.EmptyCoroutineContext;
import kotlinx.coroutines.BuildersKt;
import org.jspecify.annotations.Nullable;
import org.springframework.core.ResolvableType;
import org.springframework.util.ClassUtils;

/** Handlers that are Kotlin's suspend functions. Nothing of Kotlin has to be there as long as there are none. */
final class SuspendFunctions {

    private static final String CONTINUATION = "kotlin.coroutines.Continuation";

    private SuspendFunctions() {}

    /** Returns whether a method is a suspend function, which the compiler gives one more parameter. */
    static boolean isOne(Method method) {
        Class<?>[] parameters = method.getParameterTypes();
        return parameters.length > 0
                && parameters[parameters.length - 1].getName().equals(CONTINUATION);
    }

    /** Returns the parameters that the source has. */
    static Type[] parameters(Method method) {
        Type[] all = method.getGenericParameterTypes();
        return isOne(method) ? Arrays.copyOf(all, all.length - 1) : all;
    }

    /** Returns what the source returns: that of a suspend function is in the type of its continuation. */
    static Class<?> returnType(Method method) {
        return isOne(method)
                ? ResolvableType.forMethodParameter(method, method.getParameterCount() - 1)
                        .getGeneric()
                        .toClass()
                : method.getReturnType();
    }

    /** @throws HandlerDefinitionException if a suspend function cannot be called, because the application has no coroutines */
    static void requireCallable(Method method, String source, @Nullable ClassLoader loader) {
        if (isOne(method) && !ClassUtils.isPresent("kotlinx.coroutines.BuildersKt", loader)) {
            throw new HandlerDefinitionException(
                    source + " is a suspend function, but the application has no library for coroutines",
                    "Add the dependency org.jetbrains.kotlinx:kotlinx-coroutines-core, or remove suspend");
        }
    }

    /**
     * Calls a suspend function and returns when its work is done. Unless it changes its dispatcher, all of it runs on this thread.
     *
     * @throws InterruptedException if this thread is interrupted, which cancels the function
     */
    static @Nullable Object call(Method method, Object bean, @Nullable Object[] values) throws InterruptedException {
        return Coroutines.run(method, bean, values);
    }

    /** Apart, so that the outer class loads without Kotlin. */
    private static final class Coroutines {

        static @Nullable Object run(Method method, Object bean, @Nullable Object[] values) throws InterruptedException {
            return BuildersKt.runBlocking(EmptyCoroutineContext.INSTANCE, (scope, continuation) -> {
                @Nullable Object[] all = Arrays.copyOf(values, values.length + 1);
                all[values.length] = continuation;
                try {
                    return method.invoke(bean, all);
                } catch (InvocationTargetException e) {
                    throw Coroutines.<RuntimeException>asItIs(e.getTargetException());
                } catch (IllegalAccessException e) {
                    throw new IllegalStateException(e);
                }
            });
        }

        /** Coroutines declare no exceptions. */
        @SuppressWarnings("unchecked")
        private static <E extends Throwable> RuntimeException asItIs(Throwable thrown) throws E {
            throw (E) thrown;
        }
    }
}
