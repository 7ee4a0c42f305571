/** What applications call: adding and managing jobs and recurring jobs by SQL. */
@NullMarked
package dev.pgworker.internal.client;

import org.jspecify.annotations.NullMarked;
