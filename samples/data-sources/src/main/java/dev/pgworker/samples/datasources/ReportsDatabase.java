package dev.pgworker.samples.datasources;

import javax.sql.DataSource;

import org.springframework.beans.factory.annotation.Qualifier;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.boot.jdbc.DataSourceBuilder;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.core.io.ClassPathResource;
import org.springframework.jdbc.core.simple.JdbcClient;
import org.springframework.jdbc.datasource.init.DataSourceInitializer;
import org.springframework.jdbc.datasource.init.ResourceDatabasePopulator;
import org.springframework.jdbc.support.JdbcTransactionManager;

/**
 * The second database. None of these beans is injected without its qualifier, so that Spring Boot configures the main
 * database as if it were the only one.
 */
@Configuration(proxyBeanMethods = false)
class ReportsDatabase {

    @Bean(defaultCandidate = false)
    @Qualifier("reports") DataSource reportsDataSource(@Value("${app.reports-database.url}") String url) {
        return DataSourceBuilder.create().url(url).build();
    }

    @Bean(defaultCandidate = false)
    @Qualifier("reports") JdbcTransactionManager reportsTransactionManager(@Qualifier("reports") DataSource reportsDataSource) {
        return new JdbcTransactionManager(reportsDataSource);
    }

    @Bean(defaultCandidate = false)
    @Qualifier("reports") JdbcClient reportsJdbc(@Qualifier("reports") DataSource reportsDataSource) {
        return JdbcClient.create(reportsDataSource);
    }

    @Bean(defaultCandidate = false)
    DataSourceInitializer reportsTables(@Qualifier("reports") DataSource reportsDataSource) {
        DataSourceInitializer tables = new DataSourceInitializer();
        tables.setDataSource(reportsDataSource);
        tables.setDatabasePopulator(new ResourceDatabasePopulator(new ClassPathResource("db/reports.sql")));
        return tables;
    }
}
