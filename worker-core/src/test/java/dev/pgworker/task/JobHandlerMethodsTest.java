package dev.pgworker.task;

import java.io.IOException;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import java.lang.reflect.Proxy;
import java.lang.reflect.UndeclaredThrowableException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.stream.IntStream;

import kotlin.Unit;
import kotlin.coroutines.Continuation;
import org.aopalliance.intercept.MethodInterceptor;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.springframework.aop.framework.ProxyFactory;
import org.springframework.core.annotation.AliasFor;
import org.springframework.scheduling.annotation.Async;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

import dev.pgworker.job.Job;
import dev.pgworker.job.Task;
import dev.pgworker.task.elsewhere.PackagePrivateBase;
import dev.pgworker.task.elsewhere.PublicBase;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

@Tag("any-postgres")
class JobHandlerMethodsTest {

    record Greeting(String name) {}

    private static final Running RUNNING = Running.with("{\"name\": \"Ada\"}");
    private static final Greeting ADA = new Greeting("Ada");

    private static TaskRegistration only(Object bean) {
        List<TaskRegistration> found = JobHandlerMethods.find(bean);
        assertThat(found).hasSize(1);
        return found.get(0);
    }

    private static HandlerDefinitionException refused(Object bean) {
        return catchThrowableOfType(HandlerDefinitionException.class, () -> JobHandlerMethods.find(bean));
    }

    private static String in(Object bean, String method) {
        return bean.getClass().getName() + "." + method;
    }

    /** What handlers were called with. */
    abstract static class Recording {
        final List<Object> calls = new ArrayList<>();

        void called(@Nullable Object... arguments) {
            calls.add(Arrays.asList(arguments));
        }
    }

    // Parameters

    static class Combinations extends Recording {
        @JobHandler("none")
        void none() {
            called();
        }

        @JobHandler("payload")
        void payload(Greeting greeting) {
            called(greeting);
        }

        @JobHandler("context")
        void context(JobContext context) {
            called(context);
        }

        @JobHandler("job")
        void job(Job job) {
            called(job);
        }

        @JobHandler("json")
        protected void json(JsonNode json) {
            called(json);
        }

        @JobHandler("all")
        public void all(JsonNode json, JobContext context, Greeting greeting, Job job) {
            called(json, context, greeting, job);
        }
    }

    @Test
    void everyParameterIsOptionalAndInAnyOrder() throws Exception {
        Combinations bean = new Combinations();
        JsonNode json = JsonMapper.shared().readTree(RUNNING.job().payload());
        Map<String, List<Object>> expected = Map.of(
                "none", List.of(),
                "payload", List.of(ADA),
                "context", List.of(RUNNING),
                "job", List.of(RUNNING.job()),
                "json", List.of(json),
                "all", List.of(json, RUNNING, ADA, RUNNING.job()));

        List<TaskRegistration> found = JobHandlerMethods.find(bean);

        assertThat(found)
                .extracting(TaskRegistration::identifier)
                .containsExactlyInAnyOrderElementsOf(expected.keySet());
        for (TaskRegistration registration : found) {
            bean.calls.clear();
            RUNNING.run(registration);
            assertThat(bean.calls)
                    .as(registration.identifier())
                    .containsExactly(expected.get(registration.identifier()));
        }
    }

    @Test
    void theSourceNamesClassAndMethod() {
        Combinations bean = new Combinations();

        assertThat(JobHandlerMethods.find(bean))
                .extracting(TaskRegistration::source)
                .contains(in(bean, "all(JsonNode, JobContext, Greeting, Job)"), in(bean, "none()"))
                .isSorted();
    }

    static class Primitive extends Recording {
        @JobHandler("send")
        void send(int count) {
            called(count);
        }
    }

    @Test
    void primitivePayload() throws Exception {
        Primitive bean = new Primitive();

        Running.with("5").run(only(bean));

        assertThat(bean.calls).containsExactly(List.of(5));
        assertThatThrownBy(() -> Running.with("null").run(only(bean)))
                .isInstanceOf(PayloadException.class)
                .hasMessageContainingAll("job 7", "int", "the payload is null");
    }

    @Test
    void aPayloadThatDoesNotFitNeverReachesTheMethod() {
        Combinations bean = new Combinations();
        TaskRegistration all = JobHandlerMethods.find(bean).get(0);

        assertThat(all.identifier()).isEqualTo("all");
        assertThatThrownBy(() -> Running.with("{\"name\": {}}").run(all))
                .isInstanceOf(PayloadException.class)
                .hasMessageContaining(" at $.name: ");
        assertThat(bean.calls).isEmpty();
    }

    @Test
    void aBeanWithoutHandlersHasNone() {
        assertThat(JobHandlerMethods.find(new Object())).isEmpty();
        assertThat(JobHandlerMethods.find(ADA)).isEmpty();
    }

    @Test
    void nullIsRefused() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> JobHandlerMethods.find((Object) null))
                .withMessageContaining("bean");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> JobHandlerMethods.find(Combinations.class, null))
                .withMessageContaining("bean");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> JobHandlerMethods.find(null, Combinations::new))
                .withMessageContaining("targetClass");
    }

    // Generic types

    static class Generic extends Recording {
        @JobHandler("list")
        void list(List<Greeting> greetings) {
            called(greetings);
        }

        @JobHandler("map")
        void map(Map<String, ? extends Greeting> greetings) {
            called(greetings);
        }

        @JobHandler("array")
        void array(List<Greeting>[] greetings) {
            called((Object) greetings[0]);
        }
    }

    @Test
    void genericPayloads() throws Exception {
        Generic bean = new Generic();
        Map<String, String> payloads = Map.of(
                "list", "[{\"name\": \"Ada\"}]",
                "map", "{\"a\": {\"name\": \"Ada\"}, \"_cron\": {}}",
                "array", "[[{\"name\": \"Ada\"}]]");

        for (TaskRegistration registration : JobHandlerMethods.find(bean)) {
            Running.with(payloads.get(registration.identifier())).run(registration);
        }

        assertThat(bean.calls)
                .containsExactlyInAnyOrder(List.of(List.of(ADA)), List.of(Map.of("a", ADA)), List.of(List.of(ADA)));
    }

    abstract static class Base<T> extends Recording {
        @JobHandler("one")
        void one(T value) {
            called(value);
        }

        @JobHandler("nested")
        void nested(Map<String, List<T>> values) {
            called(values);
        }

        @JobHandler("array")
        void array(T[] values) {
            called(values[0]);
        }
    }

    abstract static class Middle<A, B> extends Base<List<B>> {}

    static class Concrete extends Middle<String, Greeting> {}

    @Test
    void typeVariablesAreThoseOfTheConcreteClass() throws Exception {
        Concrete bean = new Concrete();
        Map<String, String> payloads = Map.of(
                "one", "[{\"name\": \"Ada\"}]",
                "nested", "{\"x\": [[{\"name\": \"Ada\"}]]}",
                "array", "[[{\"name\": \"Ada\"}]]");

        for (TaskRegistration registration : JobHandlerMethods.find(bean)) {
            Running.with(payloads.get(registration.identifier())).run(registration);
        }

        assertThat(bean.calls)
                .containsExactlyInAnyOrder(
                        List.of(List.of(ADA)), List.of(Map.of("x", List.of(List.of(ADA)))), List.of(List.of(ADA)));
    }

    static class JsonVariable extends Base<JsonNode> {
        @Override
        @JobHandler("nested")
        void nested(Map<String, List<JsonNode>> values) {}

        @Override
        void array(JsonNode[] values) {}
    }

    @Test
    void aVariableMayStandForJsonNode() throws Exception {
        JsonVariable bean = new JsonVariable();

        for (TaskRegistration registration : JobHandlerMethods.find(bean)) {
            if (registration.identifier().equals("one")) {
                Running.with("null").run(registration);
            }
        }

        assertThat(bean.calls).hasSize(1);
    }

    // Where the annotation stands

    @Target(ElementType.METHOD)
    @Retention(RetentionPolicy.RUNTIME)
    @JobHandler("")
    @interface MailHandler {
        @AliasFor(annotation = JobHandler.class, attribute = "value")
        String task();
    }

    static class Composed extends Recording {
        @MailHandler(task = "mail")
        void send(Greeting greeting) {
            called(greeting);
        }
    }

    @Test
    void composedAnnotation() throws Exception {
        Composed bean = new Composed();
        TaskRegistration registration = only(bean);

        RUNNING.run(registration);

        assertThat(registration.identifier()).isEqualTo("mail");
        assertThat(bean.calls).containsExactly(List.of(ADA));
    }

    interface Sender<T> {
        @JobHandler("send")
        void send(T payload) throws Exception;
    }

    static class GreetingSender extends Recording implements Sender<Greeting> {
        @Override
        public void send(Greeting payload) throws Exception {
            called(payload);
            if (payload.name().isEmpty()) {
                throw new IOException("no name");
            }
        }
    }

    @Test
    void annotatedInterfaceMethodWithoutItsBridge() throws Exception {
        GreetingSender bean = new GreetingSender();

        RUNNING.run(only(bean));

        assertThat(bean.calls).containsExactly(List.of(ADA));
    }

    interface WithDefault<T> {
        void called(@Nullable Object... arguments);

        @JobHandler("send")
        default void send(T payload) {
            called(payload);
        }
    }

    static class UsesDefault extends Recording implements WithDefault<Greeting> {
        @Override
        public void called(@Nullable Object... arguments) {
            super.called(arguments);
        }
    }

    @Test
    void annotatedDefaultMethod() throws Exception {
        UsesDefault bean = new UsesDefault();

        RUNNING.run(only(bean));

        assertThat(bean.calls).containsExactly(List.of(ADA));
    }

    static class Inherits extends Composed {}

    static class Overrides extends Composed {
        @Override
        void send(Greeting greeting) {
            called("overridden");
        }
    }

    @Test
    void inheritedAndOverriddenMethods() throws Exception {
        Inherits inherits = new Inherits();
        Overrides overrides = new Overrides();

        RUNNING.run(only(inherits));
        RUNNING.run(only(overrides));

        assertThat(inherits.calls).containsExactly(List.of(ADA));
        assertThat(overrides.calls).containsExactly(List.of("overridden"));
    }

    // Beans that are proxies

    private static Object classProxy(Object target, MethodInterceptor interceptor) {
        ProxyFactory factory = new ProxyFactory(target);
        factory.setProxyTargetClass(true);
        factory.addAdvice(interceptor);
        return factory.getProxy();
    }

    private static Object jdkProxy(Object target, MethodInterceptor interceptor) {
        ProxyFactory factory = new ProxyFactory(target);
        factory.addAdvice(interceptor);
        Object proxy = factory.getProxy();
        assertThat(Proxy.isProxyClass(proxy.getClass())).isTrue();
        return proxy;
    }

    @Test
    void classProxiesAreCalledAndNotPassedBy() throws Exception {
        List<String> intercepted = new ArrayList<>();
        Combinations target = new Combinations();
        Object proxy = classProxy(target, invocation -> {
            intercepted.add(invocation.getMethod().getName());
            return invocation.proceed();
        });

        for (TaskRegistration registration : JobHandlerMethods.find(proxy)) {
            assertThat(registration.source()).startsWith(Combinations.class.getName() + ".");
            RUNNING.run(registration);
        }

        assertThat(intercepted).containsExactlyInAnyOrder("none", "payload", "context", "job", "json", "all");
        assertThat(target.calls).hasSize(6);
    }

    @Test
    void jdkProxiesAreCalledThroughTheirInterface() throws Exception {
        List<String> intercepted = new ArrayList<>();
        GreetingSender target = new GreetingSender();
        Object proxy = jdkProxy(target, invocation -> {
            intercepted.add(invocation.getMethod().getName());
            return invocation.proceed();
        });

        RUNNING.run(only(proxy));

        assertThat(intercepted).containsExactly("send");
        assertThat(target.calls).containsExactly(List.of(ADA));
    }

    interface Unrelated {
        void other();
    }

    static class NotInInterface implements Unrelated {
        @Override
        public void other() {}

        @JobHandler("send")
        public void send(Greeting greeting) {}
    }

    @Test
    void aJdkProxyWithoutTheMethodIsRefused() {
        NotInInterface target = new NotInInterface();
        Object proxy = jdkProxy(target, invocation -> invocation.proceed());

        HandlerDefinitionException refusal = refused(proxy);

        assertThat(refusal.problem()).contains(in(target, "send(Greeting)"), "JDK proxy");
        assertThat(refusal.action()).contains("interface", "proxy-target-class=true");
        TaskRegistration lazy =
                JobHandlerMethods.find(NotInInterface.class, () -> proxy).get(0);
        assertThatThrownBy(() -> RUNNING.run(lazy)).isInstanceOf(HandlerDefinitionException.class);
    }

    static class FinalMethod {
        @JobHandler("send")
        public final void send() {}
    }

    @Test
    void aFinalMethodIsRefusedOnAProxyOnly() throws Exception {
        FinalMethod target = new FinalMethod();

        RUNNING.run(only(target));
        HandlerDefinitionException refusal = refused(classProxy(target, invocation -> invocation.proceed()));

        assertThat(refusal.problem()).contains(in(target, "send()"), "final");
        assertThat(refusal.action()).isEqualTo("Remove final");
    }

    static class PackagePrivateElsewhere extends PackagePrivateBase {}

    @Test
    void aPackagePrivateMethodOfAnotherPackageIsRefusedOnAProxyOnly() throws Exception {
        PackagePrivateElsewhere target = new PackagePrivateElsewhere();

        RUNNING.run(only(target));
        HandlerDefinitionException refusal = refused(classProxy(target, invocation -> invocation.proceed()));

        assertThat(refusal.problem()).contains(in(target, "send()"), "package-private");
    }

    static class PublicElsewhere extends PublicBase {}

    @Test
    void aPublicMethodOfAnotherPackageIsCalledOnAProxy() throws Exception {
        List<Object> intercepted = new ArrayList<>();
        Object proxy = classProxy(new PublicElsewhere(), invocation -> {
            intercepted.add(invocation.getMethod().getName());
            return invocation.proceed();
        });

        RUNNING.run(only(proxy));

        assertThat(intercepted).containsExactly("send");
    }

    @Test
    void theClassOfAProxyStandsForItsTarget() {
        Object proxy = classProxy(new Overrides(), invocation -> invocation.proceed());

        assertThat(JobHandlerMethods.find(proxy.getClass(), () -> proxy))
                .extracting(TaskRegistration::source)
                .containsExactly(Overrides.class.getName() + ".send(Greeting)");
    }

    @Test
    void aSuppliedBeanIsAskedForAtEveryRunAndNotBefore() throws Exception {
        List<GreetingSender> beans = new ArrayList<>();
        List<TaskRegistration> found = JobHandlerMethods.find(GreetingSender.class, () -> {
            GreetingSender bean = new GreetingSender();
            beans.add(bean);
            return beans.size() == 2 ? jdkProxy(bean, invocation -> invocation.proceed()) : bean;
        });
        assertThat(beans).isEmpty();

        for (int i = 0; i < 3; i++) {
            RUNNING.run(found.get(0));
        }

        assertThat(beans).hasSize(3).allSatisfy(bean -> assertThat(bean.calls).containsExactly(List.of(ADA)));
    }

    // Exceptions

    static class Throwing {
        final Throwable thrown;

        Throwing(Throwable thrown) {
            this.thrown = thrown;
        }

        @JobHandler("send")
        void send() throws Throwable {
            throw thrown;
        }
    }

    @Test
    void whatTheHandlerThrowsIsThrown() {
        for (Throwable thrown : List.of(
                new IOException("x"),
                new IllegalStateException("x"),
                new StackOverflowError("x"),
                new UndeclaredThrowableException(new IOException("x")))) {
            assertThatThrownBy(() -> RUNNING.run(only(new Throwing(thrown)))).isSameAs(thrown);
        }
    }

    interface Quiet {
        @JobHandler("send")
        void send();
    }

    static class QuietImpl implements Quiet {
        @Override
        public void send() {}
    }

    @Test
    void whatAProxyCouldNotDeclareIsUnwrapped() {
        IOException thrown = new IOException("x");
        MethodInterceptor failing = invocation -> {
            throw thrown;
        };

        assertThatThrownBy(() -> RUNNING.run(only(jdkProxy(new QuietImpl(), failing))))
                .isSameAs(thrown);
        assertThatThrownBy(() -> RUNNING.run(only(classProxy(new QuietImpl(), failing))))
                .isSameAs(thrown);
    }

    // Refused methods

    static class TwoPayloads {
        @JobHandler("send")
        void send(Greeting a, JobContext context, String b) {}
    }

    static class TwoContexts {
        @JobHandler("send")
        void send(JobContext a, JobContext b) {}
    }

    static class TwoTrees {
        @JobHandler("send")
        void send(JsonNode a, JsonNode b) {}
    }

    @Test
    void aParameterTwiceIsRefused() {
        assertThat(refused(new TwoPayloads()).problem())
                .startsWith(in(new TwoPayloads(), "send(Greeting, JobContext, String)"))
                .contains("two payload parameters", Greeting.class.getName(), "java.lang.String");
        assertThat(refused(new TwoContexts()).problem()).contains("send(JobContext, JobContext)", "two parameters");
        assertThat(refused(new TwoTrees()).problem()).contains("send(JsonNode, JsonNode)", "two parameters");
    }

    static class Future {
        @JobHandler("send")
        CompletableFuture<Void> send() {
            return CompletableFuture.completedFuture(null);
        }
    }

    static class Lazy {
        @JobHandler("send")
        IntStream send() {
            return IntStream.empty();
        }
    }

    static class Value {
        @JobHandler("send")
        int send() {
            return 1;
        }
    }

    static class Nothing extends Recording {
        @JobHandler("void")
        @Nullable Void boxed() {
            called();
            return null;
        }

        @JobHandler("unit")
        @Nullable Unit unit() {
            called();
            return null;
        }
    }

    @Test
    void aResultThatOnlyPromisesWorkIsRefused() throws Exception {
        assertThat(refused(new Future()).problem())
                .contains(in(new Future(), "send()"), "returns CompletableFuture", "before the work is done");
        assertThat(refused(new Future()).action()).contains("Wait in the method");
        assertThat(refused(new Lazy()).problem()).contains("returns IntStream");
        assertThat(JobHandlerMethods.find(new Value())).hasSize(1);

        Nothing nothing = new Nothing();
        for (TaskRegistration registration : JobHandlerMethods.find(nothing)) {
            RUNNING.run(registration);
        }
        assertThat(nothing.calls).hasSize(2);
    }

    static class Suspending extends Recording {
        @JobHandler("send")
        public @Nullable Object send(Greeting greeting, Continuation<? super Unit> continuation) {
            called(greeting);
            return Unit.INSTANCE;
        }
    }

    static class SuspendingWithResult {
        @JobHandler("send")
        @Nullable Object send(Continuation<? super String> continuation) {
            return "sent";
        }
    }

    static class SuspendingWithFuture {
        @JobHandler("send")
        @Nullable Object send(Continuation<? super CompletableFuture<String>> continuation) {
            return null;
        }
    }

    static class SuspendingThatFails {
        @JobHandler("send")
        @Nullable Object send(Greeting greeting, Continuation<? super Unit> continuation) throws IOException {
            throw new IOException("no mail today");
        }
    }

    /** Suspensions, timeouts and batches are tried in Kotlin, in samples/kotlin. */
    @Test
    void aSuspendFunctionIsCalledWithAContinuation() throws Exception {
        Suspending bean = new Suspending();

        RUNNING.run(only(bean));

        assertThat(bean.calls).containsExactly(List.of(ADA));
        assertThatThrownBy(() -> RUNNING.run(only(new SuspendingThatFails())))
                .isInstanceOf(IOException.class)
                .hasMessage("no mail today");
        assertThat(SuspendFunctions.returnType(
                        SuspendingWithResult.class.getDeclaredMethod("send", Continuation.class)))
                .isEqualTo(String.class);
        assertThat(refused(new SuspendingWithFuture()).problem()).contains("returns CompletableFuture");
    }

    @Test
    void aSuspendFunctionOfAProxyIsRefused() {
        HandlerDefinitionException refusal = refused(classProxy(new Suspending(), invocation -> invocation.proceed()));

        assertThat(refusal.problem())
                .contains(in(new Suspending(), "send(Greeting, Continuation)"), "suspend function", "proxy");
        assertThat(refusal.action()).contains("transactional = true");
    }

    @Test
    void aSuspendFunctionNeedsALibrary() throws Exception {
        ClassLoader withoutCoroutines = new ClassLoader(null) {};

        assertThatThrownBy(() -> SuspendFunctions.requireCallable(
                        Suspending.class.getMethod("send", Greeting.class, Continuation.class),
                        "Mails.send()",
                        withoutCoroutines))
                .isInstanceOfSatisfying(HandlerDefinitionException.class, refusal -> {
                    assertThat(refusal.problem()).contains("Mails.send()", "no library for coroutines");
                    assertThat(refusal.action()).contains("kotlinx-coroutines-core");
                });
    }

    static class AsyncMethod {
        @Async
        @JobHandler("send")
        void send() {}
    }

    @Async
    static class AsyncClass {
        @JobHandler("send")
        void send() {}
    }

    static class BelowAsyncClass extends AsyncClass {}

    interface AsyncInterface {
        @Async
        void send();
    }

    static class ImplementsAsync implements AsyncInterface {
        @Override
        @JobHandler("send")
        public void send() {}
    }

    @Test
    void asyncIsRefused() {
        for (Object bean : List.of(new AsyncMethod(), new AsyncClass(), new BelowAsyncClass(), new ImplementsAsync())) {
            HandlerDefinitionException refusal = refused(bean);
            assertThat(refusal.problem()).contains(in(bean, "send()"), "@Async", "completed before the work is done");
            assertThat(refusal.action()).contains("Remove @Async");
        }
    }

    static class OpenBase<T> {
        @JobHandler("send")
        void send(T payload) {}
    }

    static class OpenMethod {
        @JobHandler("send")
        <T extends Greeting> void send(List<T> payload) {}
    }

    static class Wildcard {
        @JobHandler("send")
        void send(Map<String, List<?>> payload) {}
    }

    static class LowerBound {
        @JobHandler("send")
        void send(List<? super Greeting> payload) {}
    }

    static class OpenArray<T> {
        @JobHandler("send")
        void send(T[] payload) {}
    }

    @SuppressWarnings("rawtypes")
    static class RawSubclass extends OpenBase {}

    @Test
    void anUnboundedWildcardIsReadAsObject() {
        assertThat(JobHandlerMethods.find(new Wildcard())).hasSize(1);
    }

    @Test
    void anOpenPayloadTypeIsRefused() {
        for (Object bean : List.of(
                new OpenBase<String>(),
                new OpenMethod(),
                new LowerBound(),
                new OpenArray<String>(),
                new RawSubclass())) {
            HandlerDefinitionException refusal = refused(bean);
            assertThat(refusal).as(bean.toString()).isNotNull();
            assertThat(refusal.problem()).contains(in(bean, "send("), "leaves its payload type open");
            assertThat(refusal.action()).contains("Name the class");
        }
        assertThat(refused(new OpenBase<String>()).problem()).contains("\"T\"");
    }

    static class StaticMethod {
        @JobHandler("send")
        static void send() {}
    }

    static class PrivateMethod {
        @SuppressWarnings("UnusedMethod")
        @JobHandler("send")
        private void send() {}
    }

    @Test
    void staticAndPrivateMethodsAreRefused() {
        assertThat(refused(new StaticMethod()).problem()).contains(in(new StaticMethod(), "send()"), "static");
        assertThat(refused(new PrivateMethod()).problem()).contains(in(new PrivateMethod(), "send()"), "private");
    }

    static class EmptyIdentifier {
        @JobHandler("")
        void send() {}
    }

    static class LongIdentifier {
        static final String TEN = "0123456789";
        static final String SIXTY = TEN + TEN + TEN + TEN + TEN + TEN;

        @JobHandler(SIXTY + SIXTY + "012345678")
        void send() {}
    }

    static class LongestIdentifier {
        @JobHandler(LongIdentifier.SIXTY + LongIdentifier.SIXTY + "01234567")
        void send() {}
    }

    @Test
    void anInvalidIdentifierIsRefused() {
        assertThat(refused(new EmptyIdentifier()).problem())
                .contains(in(new EmptyIdentifier(), "send()"), "must not be empty");
        assertThat(refused(new LongIdentifier()).problem())
                .contains(in(new LongIdentifier(), "send()"), "at most 128 characters");
        assertThat(only(new LongestIdentifier()).identifier()).hasSize(128);
    }

    @Test
    void theMessageIsProblemAndAction() {
        HandlerDefinitionException refusal = refused(new StaticMethod());

        assertThat(refusal).hasMessage(refusal.problem() + ". " + refusal.action() + ".");
    }

    // Functions

    @Test
    void aFunctionGetsThePayloadOfItsTask() throws Exception {
        List<Object> calls = new ArrayList<>();
        TaskRegistration registration = TaskRegistration.of(Task.of("send", Greeting.class), (greeting, context) -> {
            calls.add(greeting);
            calls.add(context);
        });

        RUNNING.run(registration);

        assertThat(calls).containsExactly(ADA, RUNNING);
        assertThat(registration.identifier()).isEqualTo("send");
        assertThat(registration.source()).contains(JobHandlerMethodsTest.class.getName());
        assertThatIllegalArgumentException()
                .isThrownBy(() -> TaskRegistration.of(Task.of("send", Greeting.class), null))
                .withMessageContaining("handler");
    }
}
