package dev.pgworker.samples.webshop;

import java.util.List;
import java.util.stream.Collectors;

import org.springframework.stereotype.Component;

import dev.pgworker.samples.webshop.OrderService.Customer;
import dev.pgworker.samples.webshop.OrderService.OrderId;
import dev.pgworker.task.JobHandler;

/** Runs the jobs of orders. */
@Component
class OrderHandlers {

    private final OrderRepository orders;
    private final Mailer mailer;

    OrderHandlers(OrderRepository orders, Mailer mailer) {
        this.orders = orders;
        this.mailer = mailer;
    }

    @JobHandler("confirm_order")
    void confirm(OrderId orderId) {
        Order order = orders.findById(orderId.id()).orElseThrow();
        mailer.send(order.getCustomer(), "Thank you for ordering " + order.getItem());
    }

    /**
     * Gives the order the customer's next number. The entity is managed, so its change is written when the transaction ends,
     * together with the end of the job.
     */
    @JobHandler(value = "invoice_order", transactional = true)
    void invoice(OrderId orderId) {
        Order order = orders.findForChangeById(orderId.id()).orElseThrow();
        order.invoice(1 + orders.countByCustomerAndInvoiceNumberNotNull(order.getCustomer()));
    }

    @JobHandler("remind_of_payment")
    void remind(Customer customer) {
        List<Order> unpaid = orders.findByCustomerAndPaidFalseOrderById(customer.name());
        if (!unpaid.isEmpty()) {
            String items = unpaid.stream().map(Order::getItem).collect(Collectors.joining(", "));
            mailer.send(customer.name(), "Please pay for " + items);
        }
    }
}
