/** Orders whose changes reach a message broker if and only if they are committed. */
@NullMarked
package dev.pgworker.samples.outbox;

import org.jspecify.annotations.NullMarked;
