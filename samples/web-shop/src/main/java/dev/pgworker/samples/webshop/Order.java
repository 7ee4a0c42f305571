package dev.pgworker.samples.webshop;

import jakarta.persistence.Entity;
import jakarta.persistence.GeneratedValue;
import jakarta.persistence.GenerationType;
import jakarta.persistence.Id;
import jakarta.persistence.Table;
import org.jspecify.annotations.Nullable;

/** A row of {@code orders}. */
@Entity
@Table(name = "orders")
class Order {

    @Id
    @GeneratedValue(strategy = GenerationType.IDENTITY)
    private @Nullable Long id;

    private String customer;
    private String item;
    private boolean paid;

    /** Null until there is an invoice. */
    private @Nullable Integer invoiceNumber;

    /** For JPA, which sets the fields. */
    @SuppressWarnings("NullAway.Init")
    protected Order() {}

    Order(String customer, String item) {
        this.customer = customer;
        this.item = item;
    }

    void invoice(int number) {
        invoiceNumber = number;
    }

    void pay() {
        paid = true;
    }

    /** Returns null before the order is saved. */
    public @Nullable Long getId() {
        return id;
    }

    public String getCustomer() {
        return customer;
    }

    public String getItem() {
        return item;
    }

    public boolean isPaid() {
        return paid;
    }

    public @Nullable Integer getInvoiceNumber() {
        return invoiceNumber;
    }
}
