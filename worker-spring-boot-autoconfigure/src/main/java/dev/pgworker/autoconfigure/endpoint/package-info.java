/** An actuator endpoint that shows and changes jobs. */
@NullMarked
package dev.pgworker.autoconfigure.endpoint;

import org.jspecify.annotations.NullMarked;
