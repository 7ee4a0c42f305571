/** Pages in the browser that show the jobs of an application, and mend them. */
@NullMarked
package dev.pgworker.dashboard;

import org.jspecify.annotations.NullMarked;
