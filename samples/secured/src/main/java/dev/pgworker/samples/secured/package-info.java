/** An application behind Spring Security, with the actuator endpoint for its jobs. */
@NullMarked
package dev.pgworker.samples.secured;

import org.jspecify.annotations.NullMarked;
