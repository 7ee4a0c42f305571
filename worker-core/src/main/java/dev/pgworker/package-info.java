/** Builds, starts and stops workers. */
@NullMarked
package dev.pgworker;

import org.jspecify.annotations.NullMarked;
