package dev.pgworker.samples.datasources;

import org.springframework.http.HttpStatus;
import org.springframework.http.ResponseEntity;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.PutMapping;
import org.springframework.web.bind.annotation.RequestBody;
import org.springframework.web.bind.annotation.ResponseStatus;
import org.springframework.web.bind.annotation.RestController;

@RestController
class ShopController {

    private final SaleService sales;
    private final ReportService reports;

    ShopController(SaleService sales, ReportService reports) {
        this.sales = sales;
        this.reports = reports;
    }

    @PostMapping("/sales")
    @ResponseStatus(HttpStatus.ACCEPTED)
    void sell(@RequestBody Sale sale) {
        sales.sell(sale);
    }

    @PutMapping("/reports/{month}")
    @ResponseStatus(HttpStatus.ACCEPTED)
    void request(@PathVariable String month) {
        reports.request(month);
    }

    @GetMapping("/reports/{month}")
    ResponseEntity<Long> report(@PathVariable String month) {
        return ResponseEntity.of(reports.find(month));
    }
}
