package dev.pgworker.autoconfigure;

import java.math.BigDecimal;

import org.springframework.context.ApplicationEventPublisher;
import org.springframework.context.event.EventListener;
import org.springframework.stereotype.Component;
import org.springframework.stereotype.Service;
import org.springframework.transaction.annotation.Transactional;

import dev.pgworker.event.WorkerEvent;
import dev.pgworker.task.DurableEventListener;

/** The code of the page about durable events. */
class DocumentedDurableEvents {

    interface OrderRepository {
        void insert(long id, String customer, BigDecimal total);
    }

    interface Mails {
        void confirm(String customer, long order);
    }

    interface Gifts {
        void send(String customer, long order);
    }

    interface Pager {
        void call(String message);
    }

    record OrderPlaced(long id, String customer, BigDecimal total) {}

    @Service
    static class Orders {

        private final OrderRepository repository;
        private final ApplicationEventPublisher events;

        Orders(OrderRepository repository, ApplicationEventPublisher events) {
            this.repository = repository;
            this.events = events;
        }

        @Transactional
        void place(long id, String customer, BigDecimal total) {
            repository.insert(id, customer, total);
            events.publishEvent(new OrderPlaced(id, customer, total));
        }
    }

    @Component
    static class OrderListeners {

        private final Mails mails;
        private final Gifts gifts;

        OrderListeners(Mails mails, Gifts gifts) {
            this.mails = mails;
            this.gifts = gifts;
        }

        @DurableEventListener("order-mail")
        void sendMail(OrderPlaced order) {
            mails.confirm(order.customer(), order.id());
        }

        @DurableEventListener(value = "order-gift", condition = "total > 100", queue = "gifts-#{customer}")
        void sendGift(OrderPlaced order) {
            gifts.send(order.customer(), order.id());
        }
    }

    @Component
    static class Alarm {

        private final Pager pager;

        Alarm(Pager pager) {
            this.pager = pager;
        }

        @EventListener(condition = "#failed.permanently")
        void on(WorkerEvent.JobFailed failed) {
            pager.call("Job " + failed.job().id() + " failed: " + failed.error().getMessage());
        }
    }
}
