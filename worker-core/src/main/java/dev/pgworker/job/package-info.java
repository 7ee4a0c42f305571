/** What a job is, how to enqueue and how to manage one. */
@NullMarked
package dev.pgworker.job;

import org.jspecify.annotations.NullMarked;
