/** An application that runs as an API without a worker, as a worker without a web server, or as both. */
@NullMarked
package dev.pgworker.samples.apiandworker;

import org.jspecify.annotations.NullMarked;
