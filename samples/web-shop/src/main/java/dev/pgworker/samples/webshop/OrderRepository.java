package dev.pgworker.samples.webshop;

import java.util.List;

import org.springframework.data.jpa.repository.JpaRepository;

interface OrderRepository extends JpaRepository<Order, Long> {

    List<Order> findByCustomerAndPaidFalseOrderById(String customer);

    int countByCustomerAndInvoiceNumberNotNull(String customer);
}
