/**
 * What applications call: adding and managing jobs and recurring jobs by SQL.
 *
 * <p>All of it goes through Spring's {@code JdbcClient}, except adding jobs: that is plain JDBC, because through the client a
 * short statement takes half as long again, up to twice as long.
 */
@NullMarked
package dev.pgworker.internal.client;

import org.jspecify.annotations.NullMarked;
