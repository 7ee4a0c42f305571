/** Workers: building, starting and stopping them, and their settings and status. */
@NullMarked
package dev.pgworker;

import org.jspecify.annotations.NullMarked;
