package dev.pgworker.samples.dashboard;

import java.math.BigDecimal;
import java.util.List;

import dev.pgworker.job.Task;

/** The tasks of the shop and their payloads. */
final class Jobs {

    static final Task<Order> CONFIRM_ORDER = Task.of("confirm_order", Order.class);
    static final Task<Charge> CHARGE_CARD = Task.of("charge_card", Charge.class);
    static final Task<Invoice> SEND_INVOICE = Task.of("send_invoice", Invoice.class);
    static final Task<Reminder> REMIND_UNPAID = Task.of("remind_unpaid", Reminder.class);
    static final Task<Photos> RESIZE_PHOTOS = Task.of("resize_photos", Photos.class);
    static final Task<Catalog> IMPORT_CATALOG = Task.of("import_catalog", Catalog.class);
    static final Task<Report> SALES_REPORT = Task.of("sales_report", Report.class);
    static final Task<Campaign> SEND_NEWSLETTER = Task.of("send_newsletter", Campaign.class);
    static final Task<Index> REBUILD_INDEX = Task.of("rebuild_search_index", Index.class);

    /** The warehouse runs this one, with a worker of its own that is not part of this application. */
    static final Task<Label> PRINT_LABEL = Task.of("print_shipping_label", Label.class);

    private Jobs() {}

    record Customer(long id, String name, String email, String country) {}

    record Item(String sku, String name, int quantity, BigDecimal price) {}

    record Order(String number, Customer customer, List<Item> items, BigDecimal total, String currency) {}

    record Charge(String order, String card, BigDecimal amount, String currency) {}

    record Invoice(String order, String customer, BigDecimal total, String language) {}

    record Reminder(long customerId, List<String> unpaid) {}

    record Photos(String product, List<String> files, List<Integer> widths) {}

    record Catalog(String partner, String url, int pages) {}

    record Stock(String partner) {}

    record Report(String period, String format) {}

    record Campaign(String campaign, String audience) {}

    record Index(String language, boolean drop) {}

    record Label(String order, String carrier, double kilograms) {}

    record Carts(int olderThanDays) {}
}
