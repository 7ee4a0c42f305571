/** What the application writes to run jobs: handlers, their context, and the registry of tasks. */
@NullMarked
package dev.pgworker.task;

import org.jspecify.annotations.NullMarked;
