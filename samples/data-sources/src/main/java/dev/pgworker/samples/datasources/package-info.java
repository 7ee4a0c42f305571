/** An application with two databases and a worker for each. */
@NullMarked
package dev.pgworker.samples.datasources;

import org.jspecify.annotations.NullMarked;
