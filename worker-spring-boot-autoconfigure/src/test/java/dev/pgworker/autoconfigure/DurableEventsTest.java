package dev.pgworker.autoconfigure;

import java.math.BigDecimal;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.springframework.boot.LazyInitializationBeanFactoryPostProcessor;
import org.springframework.boot.diagnostics.FailureAnalysis;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.context.ApplicationContext;
import org.springframework.context.ApplicationEvent;
import org.springframework.context.ApplicationEventPublisher;
import org.springframework.context.PayloadApplicationEvent;
import org.springframework.context.event.EventListener;
import org.springframework.context.event.SimpleApplicationEventMulticaster;
import org.springframework.core.ResolvableType;
import org.springframework.core.task.SimpleAsyncTaskExecutor;
import org.springframework.stereotype.Component;
import org.springframework.transaction.annotation.Transactional;

import dev.pgworker.autoconfigure.testing.FailureAnalyses;
import dev.pgworker.autoconfigure.testing.RecordedEvents;
import dev.pgworker.autoconfigure.testing.TestDatabase;
import dev.pgworker.event.WorkerEvent.JobCompleted;
import dev.pgworker.event.WorkerEvent.JobFailed;
import dev.pgworker.task.DurableEventListener;
import dev.pgworker.task.JobContext;
import dev.pgworker.task.JobControlException;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

class DurableEventsTest {

    @RegisterExtension
    final TestDatabase db = new TestDatabase().installed();

    private final RecordedEvents events = new RecordedEvents();

    record OrderPlaced(int id, @Nullable String customer, BigDecimal total) {}

    record Changed<T>(T value) {}

    static final class OfLibrary extends ApplicationEvent {
        private static final long serialVersionUID = 1L;

        OfLibrary(Object source) {
            super(source);
        }
    }

    static class Shop {

        private final ApplicationEventPublisher publisher;

        Shop(ApplicationEventPublisher publisher) {
            this.publisher = publisher;
        }

        @Transactional
        void publish(Object event, boolean refuse) {
            publisher.publishEvent(event);
            if (refuse) {
                throw new IllegalStateException("refused");
            }
        }
    }

    /** Receives what handlers were called with. */
    static class Calls {
        final BlockingQueue<String> made = new LinkedBlockingQueue<>();

        String next() throws InterruptedException {
            String call = made.poll(120, TimeUnit.SECONDS);
            assertThat(call).as("a call within two minutes").isNotNull();
            return call;
        }
    }

    @Component("vip")
    static class Customers {
        public boolean has(String customer) {
            return customer.startsWith("vip");
        }
    }

    static class Listeners {

        private final Calls calls;

        Listeners(Calls calls) {
            this.calls = calls;
        }

        @DurableEventListener("order-mail")
        void mail(OrderPlaced order, JobContext context) {
            calls.made.add("mail " + order + " " + context.job().taskIdentifier());
        }

        @DurableEventListener(
                value = "order-gift",
                condition = "@vip.has(#order.customer) and total > 100",
                queue = "customer-#{customer}",
                key = "order-gift-#{#event.id()}",
                priority = -5,
                maxAttempts = 3)
        void gift(OrderPlaced order) {
            calls.made.add("gift " + order);
            throw JobControlException.failPermanently("no gifts left");
        }

        @DurableEventListener("names")
        void name(Changed<String> name) {
            calls.made.add("name " + name.value());
        }
    }

    private ApplicationContextRunner shop() {
        return db.runner()
                .withBean(RecordedEvents.class, () -> events)
                .withBean(Calls.class)
                .withBean("vip", Customers.class)
                .withBean(Listeners.class)
                .withBean(Shop.class);
    }

    private static final OrderPlaced SMALL = new OrderPlaced(1, "ann", new BigDecimal("9.90"));
    private static final OrderPlaced LARGE = new OrderPlaced(2, "vip bob", new BigDecimal("200"));

    private List<Map<String, @Nullable Object>> jobs() {
        return db.sql("select task_identifier, queue_name, key, priority, max_attempts from {schema}.jobs order by 1")
                .query()
                .listOfRows();
    }

    @Test
    void anEventRunsEachListenerAsAJobOfItsOwn() {
        shop().run(context -> {
            context.getBean(Shop.class).publish(SMALL, false);
            assertThat(context.getBean(Calls.class).next())
                    .isEqualTo("mail OrderPlaced[id=1, customer=ann, total=9.90] order-mail");
            events.await(JobCompleted.class);
            assertThat(db.jobs()).isZero();

            context.getBean(Shop.class).publish(LARGE, false);
            Calls calls = context.getBean(Calls.class);
            assertThat(List.of(calls.next(), calls.next()))
                    .containsExactlyInAnyOrder("mail " + LARGE + " order-mail", "gift " + LARGE);
            assertThat(events.await(JobFailed.class).job().taskIdentifier()).isEqualTo("order-gift");
        });
    }

    @Test
    void itsJobsAreThoseOfTheTransactionOfWhoPublishes() {
        shop().withPropertyValues("pgworker.enabled=false").run(context -> {
            Shop shop = context.getBean(Shop.class);
            assertThatThrownBy(() -> shop.publish(LARGE, true)).hasMessage("refused");
            assertThat(db.jobs()).isZero();

            shop.publish(LARGE, false);
            assertThat(jobs())
                    .extracting(Map::toString)
                    .containsExactly(
                            "{task_identifier=order-gift, queue_name=customer-vip bob, key=order-gift-2, priority=-5,"
                                    + " max_attempts=25}",
                            "{task_identifier=order-mail, queue_name=null, key=null, priority=0, max_attempts=25}");

            shop.publish(LARGE, false);
            assertThat(jobs()).as("one gift for an order").hasSize(3);
        });
    }

    @Test
    void withoutATransactionTheyAreCommittedAtOnce() {
        shop().withPropertyValues("pgworker.enabled=false").run(context -> {
            context.publishEvent(LARGE);
            assertThat(db.jobs()).isEqualTo(2);
        });
    }

    @Test
    void itIsInTheTransactionWhereEventsAreMulticastByOtherThreads() {
        shop().withPropertyValues("pgworker.enabled=false")
                .withBean("applicationEventMulticaster", SimpleApplicationEventMulticaster.class, () -> {
                    SimpleApplicationEventMulticaster multicaster = new SimpleApplicationEventMulticaster();
                    multicaster.setTaskExecutor(new SimpleAsyncTaskExecutor());
                    return multicaster;
                })
                .run(context -> {
                    Shop shop = context.getBean(Shop.class);
                    assertThatThrownBy(() -> shop.publish(SMALL, true)).hasMessage("refused");
                    assertThat(db.jobs()).isZero();
                    shop.publish(SMALL, false);
                    assertThat(db.jobs()).isEqualTo(1);
                });
    }

    @Test
    void genericTypesSelectEvents() {
        shop().withPropertyValues("pgworker.enabled=false").run(context -> {
            publishTyped(context, new Changed<>(5), Integer.class);
            assertThat(db.jobs()).isZero();
            publishTyped(context, new Changed<>("ann"), String.class);
            assertThat(jobs()).hasSize(1);
        });
    }

    private static void publishTyped(ApplicationContext context, Changed<?> event, Class<?> value) {
        context.publishEvent(new PayloadApplicationEvent<>(
                context, event, ResolvableType.forClassWithGenerics(Changed.class, value)));
    }

    @Test
    void whatCannotBeStoredFailsTheTransaction() {
        shop().withPropertyValues("pgworker.enabled=false").run(context -> {
            Shop shop = context.getBean(Shop.class);
            assertThatThrownBy(() ->
                            shop.publish(new OrderPlaced(3, "vip " + "x".repeat(200), new BigDecimal(500)), false))
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessageContainingAll("queue", "Listeners.gift(OrderPlaced)", "128");
            assertThatThrownBy(() -> shop.publish(new OrderPlaced(3, null, new BigDecimal(500)), false))
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessageContainingAll("condition", "Listeners.gift(OrderPlaced)");
            assertThat(db.jobs()).isZero();
        });
    }

    static class WithoutEvent {
        @DurableEventListener("lonely")
        void on() {}
    }

    static class OnApplicationEvent {
        @DurableEventListener("library")
        void on(OfLibrary event) {}
    }

    static class BadCondition {
        @DurableEventListener(value = "bad", condition = "#event.")
        void on(OrderPlaced event) {}
    }

    static class BadKey {
        @DurableEventListener(value = "bad", key = "#{id")
        void on(OrderPlaced event) {}
    }

    static class BadPriority {
        @DurableEventListener(value = "bad", priority = 40_000)
        void on(OrderPlaced event) {}
    }

    static class Unnamed {
        @DurableEventListener("")
        void on(OrderPlaced event) {}
    }

    static class Twins {
        @DurableEventListener("twin")
        void one(OrderPlaced event) {}

        @DurableEventListener("twin")
        void two(OrderPlaced event) {}
    }

    static Stream<Arguments> mistakes() {
        return Stream.of(
                Arguments.of(WithoutEvent.class, "WithoutEvent.on() has no parameter for the event"),
                Arguments.of(
                        OnApplicationEvent.class, "OnApplicationEvent.on(OfLibrary) listens to an ApplicationEvent"),
                Arguments.of(BadCondition.class, "BadCondition.on(OrderPlaced) has a condition that cannot be read"),
                Arguments.of(BadKey.class, "BadKey.on(OrderPlaced) has a key that cannot be read"),
                Arguments.of(BadPriority.class, "BadPriority.on(OrderPlaced) has the priority 40000"),
                Arguments.of(Unnamed.class, "Unnamed.on(OrderPlaced) has no valid task identifier"),
                Arguments.of(Twins.class, "Two durable event listeners have the identifier \"twin\""));
    }

    @ParameterizedTest
    @MethodSource("mistakes")
    void aMistakeFailsTheStart(Class<?> bean, String problem) {
        db.runner().withPropertyValues("pgworker.enabled=false").withBean(bean).run(context -> {
            FailureAnalysis analysis = FailureAnalyses.of(context.getStartupFailure());
            assertThat(analysis.getDescription()).contains(problem);
            assertThat(analysis.getAction()).isNotEmpty();
        });
    }

    @Test
    void lazyInitializationOfTheApplicationChangesNothing() {
        shop().withInitializer(context ->
                        context.addBeanFactoryPostProcessor(new LazyInitializationBeanFactoryPostProcessor()))
                .run(context -> {
                    context.publishEvent(SMALL);
                    events.await(JobCompleted.class);
                    assertThat(context.getBean(Calls.class).next()).startsWith("mail ");
                });
    }

    static class Observer {

        final BlockingQueue<JobFailed> failures = new LinkedBlockingQueue<>();

        @EventListener(condition = "#event.permanently")
        void on(JobFailed event) {
            failures.add(event);
        }
    }

    @Test
    void eventsOfTheWorkerAreApplicationEventsWherePropertySaysSo() {
        shop().withBean(Observer.class)
                .withPropertyValues("pgworker.application-events=true")
                .run(context -> {
                    context.publishEvent(LARGE);
                    JobFailed failed = context.getBean(Observer.class).failures.poll(120, TimeUnit.SECONDS);
                    assertThat(failed).isNotNull();
                    assertThat(failed.job().taskIdentifier()).isEqualTo("order-gift");
                });
        assertThat(events.all(JobFailed.class)).isNotEmpty();
    }
}
