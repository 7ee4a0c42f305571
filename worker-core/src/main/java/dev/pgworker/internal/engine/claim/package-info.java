/** Decides what to claim and when, and claims it. */
@NullMarked
package dev.pgworker.internal.engine.claim;

import org.jspecify.annotations.NullMarked;
