/** An application whose jobs are added by SQL triggers. */
@NullMarked
package dev.pgworker.samples.triggers;

import org.jspecify.annotations.NullMarked;
