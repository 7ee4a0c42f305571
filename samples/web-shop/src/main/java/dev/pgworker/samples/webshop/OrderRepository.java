package dev.pgworker.samples.webshop;

import java.util.List;
import java.util.Optional;

import jakarta.persistence.LockModeType;
import org.springframework.data.jpa.repository.JpaRepository;
import org.springframework.data.jpa.repository.Lock;

interface OrderRepository extends JpaRepository<Order, Long> {

    /** Locks the row until the transaction ends: a request and a job may change the same order, and JPA writes all of it. */
    @Lock(LockModeType.PESSIMISTIC_WRITE)
    Optional<Order> findForChangeById(Long id);

    List<Order> findByCustomerAndPaidFalseOrderById(String customer);

    int countByCustomerAndInvoiceNumberNotNull(String customer);
}
