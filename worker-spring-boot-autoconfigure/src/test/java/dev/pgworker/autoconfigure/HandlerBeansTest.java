package dev.pgworker.autoconfigure;

import java.io.IOException;
import java.io.InputStream;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicInteger;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.springframework.aop.support.AopUtils;
import org.springframework.beans.factory.FactoryBean;
import org.springframework.beans.factory.support.RootBeanDefinition;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.diagnostics.FailureAnalysis;
import org.springframework.boot.test.context.assertj.AssertableApplicationContext;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.context.ApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Lazy;
import org.springframework.context.annotation.Scope;
import org.springframework.context.annotation.ScopedProxyMode;
import org.springframework.context.support.GenericApplicationContext;
import org.springframework.context.support.SimpleThreadScope;
import org.springframework.transaction.annotation.Transactional;
import org.springframework.transaction.support.TransactionSynchronizationManager;

import dev.pgworker.Worker;
import dev.pgworker.autoconfigure.testing.FailureAnalyses;
import dev.pgworker.autoconfigure.testing.RecordedEvents;
import dev.pgworker.autoconfigure.testing.TestDatabase;
import dev.pgworker.event.WorkerEvent.JobCompleted;
import dev.pgworker.job.JobScheduler;
import dev.pgworker.job.Task;
import dev.pgworker.task.JobHandler;

import static org.assertj.core.api.Assertions.assertThat;

class HandlerBeansTest {

    private static final AtomicInteger created = new AtomicInteger();
    private static final AtomicInteger called = new AtomicInteger();

    @RegisterExtension
    final TestDatabase db = new TestDatabase().installed();

    private final RecordedEvents events = new RecordedEvents();

    private ApplicationContextRunner with(Class<?>... configurations) {
        created.set(0);
        called.set(0);
        return db.runner().withBean(RecordedEvents.class, () -> events).withUserConfiguration(configurations);
    }

    /** Counts its instances and the calls of its handlers. */
    public static class Counting {

        Counting() {
            created.incrementAndGet();
        }

        @JobHandler("count")
        public void count() {
            called.incrementAndGet();
        }
    }

    private void runsOneJob(ApplicationContext context) throws InterruptedException {
        context.getBean(JobScheduler.class).addJob("count");
        events.await(JobCompleted.class);
        assertThat(called).hasValue(1);
    }

    @Test
    void findsHandlersOfBeanMethods() {
        with(OfBeanMethod.class).run(this::runsOneJob);
    }

    static class OfBeanMethod {

        @Bean
        Counting counting() {
            return new Counting();
        }
    }

    record Order(int number) {}

    static class Orders {

        @JobHandler("order")
        void order(Order order) {}
    }

    static class OrderService {
        static final Task<Integer> ORDER = Task.of("order", Integer.class);
    }

    static class OrderTask {

        @Bean
        Task<Integer> orderTask() {
            return Task.of("order", Integer.class);
        }
    }

    @Test
    void aTaskConstantOfAnotherPayloadTypeStopsTheStart() {
        with(Orders.class, OrderService.class)
                .run(context -> assertMismatch(context, OrderService.class.getName() + ".ORDER"));
        with(Orders.class, OrderTask.class).run(context -> assertMismatch(context, "bean \"orderTask\""));
        with(Orders.class).run(context -> assertThat(context).hasNotFailed());
        with(OrderService.class).run(context -> assertThat(context).hasNotFailed());
    }

    private static void assertMismatch(AssertableApplicationContext context, String constant) {
        assertThat(context).hasFailed();
        FailureAnalysis analysis = FailureAnalyses.of(context.getStartupFailure());
        assertThat(analysis.getDescription())
                .contains(
                        constant + " of task \"order\" has java.lang.Integer",
                        Orders.class.getName() + ".order(Order) takes " + Order.class.getName());
        assertThat(analysis.getAction()).contains("same type");
    }

    @Test
    void findsHandlersBehindABeanMethodThatDeclaresAnInterface() {
        with(OfInterface.class).run(this::runsOneJob);
    }

    @Test
    void findsHandlersOfBeansThatAreCreatedAfterTheWorkersTurn() {
        with().withConfiguration(AutoConfigurations.of(LaterAutoConfiguration.class))
                .run(this::runsOneJob);
    }

    @AutoConfiguration(after = WorkerAutoConfiguration.class)
    static class LaterAutoConfiguration {

        @Bean
        Marker counting() {
            return new MarkedCounting();
        }
    }

    interface Marker {}

    static class MarkedCounting extends Counting implements Marker {}

    static class OfInterface {

        @Bean
        Marker counting() {
            return new MarkedCounting();
        }
    }

    @Test
    void refusesAWorkerThatWasBuiltTooEarlyToSeeAllHandlers() {
        with(EarlyWorker.class)
                .run(context -> assertThat(context)
                        .getFailure()
                        .hasStackTraceContaining("ObjectProvider<Worker>")
                        .hasStackTraceContaining("MarkedCounting"));
    }

    static class EarlyWorker {

        @Bean
        String early(Worker worker) {
            return worker.tasks().toString();
        }

        @Bean
        Marker counting() {
            return new MarkedCounting();
        }
    }

    @Test
    void findsHandlersOfConfigurationClasses() {
        with(HandlingConfiguration.class).run(this::runsOneJob);
    }

    @Configuration
    static class HandlingConfiguration {

        @JobHandler("count")
        void count() {
            called.incrementAndGet();
        }
    }

    @Test
    void findsHandlersByAComposedAnnotation() {
        with(Composed.class).run(this::runsOneJob);
    }

    @JobHandler("count")
    @Retention(RetentionPolicy.RUNTIME)
    @interface CountHandler {}

    static class Composed {

        @CountHandler
        void count() {
            called.incrementAndGet();
        }
    }

    @Test
    void callsHandlersThroughAClassProxy() {
        with(TransactionalHandler.class).run(context -> {
            assertThat(AopUtils.isCglibProxy(context.getBean(TransactionalHandler.class)))
                    .isTrue();
            runsOneJob(context);
        });
    }

    static class TransactionalHandler {

        @Transactional
        @JobHandler("count")
        void count() {
            assertThat(TransactionSynchronizationManager.isActualTransactionActive())
                    .isTrue();
            called.incrementAndGet();
        }
    }

    @Test
    void callsHandlersThroughAnInterfaceProxy() {
        with(TransactionalByInterface.class)
                .withPropertyValues("spring.aop.proxy-target-class=false")
                .run(context -> {
                    assertThat(AopUtils.isJdkDynamicProxy(context.getBean(CountingInterface.class)))
                            .isTrue();
                    runsOneJob(context);
                });
    }

    public interface CountingInterface {
        void count();
    }

    static class TransactionalByInterface implements CountingInterface {

        @Override
        @Transactional
        @JobHandler("count")
        public void count() {
            assertThat(TransactionSynchronizationManager.isActualTransactionActive())
                    .isTrue();
            called.incrementAndGet();
        }
    }

    @Test
    void refusesAnInterfaceProxyThatDoesNotOfferTheHandler() {
        with(HiddenByInterface.class)
                .withPropertyValues("spring.aop.proxy-target-class=false")
                .run(context -> {
                    FailureAnalysis analysis = FailureAnalyses.of(context.getStartupFailure());
                    assertThat(analysis.getDescription()).contains("HiddenByInterface.hidden()");
                    assertThat(analysis.getAction()).contains("spring.aop.proxy-target-class=true");
                });
    }

    static class HiddenByInterface implements CountingInterface {

        @Override
        @Transactional
        public void count() {}

        @JobHandler("count")
        public void hidden() {}
    }

    @Test
    void createsALazyBeanWhenItsFirstJobRuns() {
        with(LazyCounting.class).run(context -> {
            assertThat(created).hasValue(0);
            runsOneJob(context);
            assertThat(created).hasValue(1);
        });
    }

    static class LazyCounting {

        @Bean
        @Lazy
        Counting counting() {
            return new Counting();
        }
    }

    @Test
    void createsAPrototypeForEveryJob() {
        with(PrototypeCounting.class).run(context -> {
            context.getBean(JobScheduler.class).addJob("count");
            context.getBean(JobScheduler.class).addJob("count");
            events.await(JobCompleted.class);
            events.await(JobCompleted.class);
            assertThat(created).hasValue(2);
        });
    }

    static class PrototypeCounting {

        @Bean
        @Scope("prototype")
        Counting counting() {
            return new Counting();
        }
    }

    @Test
    void countsAScopedProxyOnce() {
        with(ScopedCounting.class)
                .withInitializer(context -> context.getBeanFactory().registerScope("thread", new SimpleThreadScope()))
                .run(context -> {
                    runsOneJob(context);
                    assertThat(AopUtils.isAopProxy(context.getBean("counting"))).isTrue();
                });
    }

    static class ScopedCounting {

        @Bean
        @Scope(scopeName = "thread", proxyMode = ScopedProxyMode.TARGET_CLASS)
        Counting counting() {
            return new Counting();
        }
    }

    @Test
    void findsHandlersOfWhatAFactoryBeanMakes() {
        with(MadeCounting.class).run(this::runsOneJob);
    }

    static class MadeCounting {

        @Bean
        FactoryBean<Counting> counting() {
            return new CountingFactory();
        }
    }

    static class CountingFactory implements FactoryBean<Counting> {

        @Override
        public Counting getObject() {
            return new Counting();
        }

        @Override
        public Class<?> getObjectType() {
            return Counting.class;
        }
    }

    @Test
    void findsHandlersOfSingletonsRegisteredByHand() {
        with().withInitializer(context -> context.getBeanFactory().registerSingleton("byHand", new Counting()))
                .run(this::runsOneJob);
    }

    /** Of an optional dependency. */
    public static class Absent {}

    public static class Partial {

        @JobHandler("partial")
        public void run() {}

        public void mentions(Absent absent) {}
    }

    /** Has everything but {@link Absent}. */
    private static final class WithoutDependency extends ClassLoader {

        WithoutDependency() {
            super(HandlerBeansTest.class.getClassLoader());
        }

        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            if (name.equals(Absent.class.getName())) {
                throw new ClassNotFoundException(name);
            } else if (!name.equals(Partial.class.getName())) {
                return super.loadClass(name, resolve);
            }
            try (InputStream file = Objects.requireNonNull(getResourceAsStream(name.replace('.', '/') + ".class"))) {
                byte[] bytes = file.readAllBytes();
                return defineClass(name, bytes, 0, bytes.length);
            } catch (IOException e) {
                throw new ClassNotFoundException(name, e);
            }
        }
    }

    @Test
    @ExtendWith(OutputCaptureExtension.class)
    void warnsOfHandlersThatCannotBeRead(CapturedOutput output) throws Exception {
        // Spring refuses such a class itself when it makes the bean.
        RootBeanDefinition lazy = new RootBeanDefinition(new WithoutDependency().loadClass(Partial.class.getName()));
        lazy.setLazyInit(true);
        with().withInitializer(context -> ((GenericApplicationContext) context).registerBeanDefinition("partial", lazy))
                .run(context -> assertThat(context).hasNotFailed());

        assertThat(output)
                .containsOnlyOnce("The handlers of bean partial are not registered")
                .contains(Absent.class.getName());
    }

    @Test
    void refusesTwoHandlersOfOneTask() {
        with(OfBeanMethod.class, TransactionalHandler.class).run(context -> {
            FailureAnalysis analysis = FailureAnalyses.of(context.getStartupFailure());
            assertThat(analysis.getDescription())
                    .contains("\"count\"")
                    .contains("Counting.count()")
                    .contains("TransactionalHandler.count()");
            assertThat(analysis.getAction()).contains("its own identifier");
        });
    }

    @Test
    void refusesAMethodThatCannotBeAHandler() {
        with(Static.class).run(context -> {
            FailureAnalysis analysis = FailureAnalyses.of(context.getStartupFailure());
            assertThat(analysis.getDescription()).contains("Static.count() is static");
            assertThat(analysis.getAction()).isEqualTo("Remove static.");
        });
    }

    static class Static {

        @JobHandler("count")
        static void count() {}
    }
}
