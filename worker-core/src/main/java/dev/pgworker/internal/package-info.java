/** What users must not touch: everything below may change at any time. */
@NullMarked
package dev.pgworker.internal;

import org.jspecify.annotations.NullMarked;
