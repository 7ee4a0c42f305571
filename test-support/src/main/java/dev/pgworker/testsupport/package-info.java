/** A real PostgreSQL for tests and samples. */
@NullMarked
package dev.pgworker.testsupport;

import org.jspecify.annotations.NullMarked;
