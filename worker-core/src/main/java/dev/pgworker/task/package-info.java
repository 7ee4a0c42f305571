/** Tasks: handlers, their context and options, and the registry of tasks. */
@NullMarked
package dev.pgworker.task;

import org.jspecify.annotations.NullMarked;
