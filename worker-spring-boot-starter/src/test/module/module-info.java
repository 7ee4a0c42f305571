/** An application of named modules that runs jobs. */
module application {
    requires dev.pgworker.core;
    requires dev.pgworker.spring.boot.starter;
    requires spring.beans;
    requires spring.boot;
    requires spring.boot.autoconfigure;
    requires spring.context;

    opens application;
}
